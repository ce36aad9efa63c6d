package bot

import (
	"ebb/compaction/tokens"
	"sync"
)

// counted remembers the counts of texts that stand in request after request: names, pinned memory, summaries.
type counted struct {
	counter *tokens.Counter
	mu      sync.Mutex
	known   map[string]int
}

// countedTexts bounds what is remembered; the map is emptied when it is full.
const countedTexts = 1024

func (c *counted) count(text string) int {
	c.mu.Lock()
	n, ok := c.known[text]
	c.mu.Unlock()
	if ok {
		return n
	}
	n = c.counter.Count(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= countedTexts {
		clear(c.known)
	}
	c.known[text] = n
	return n
}
