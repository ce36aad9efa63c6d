package view

import (
	"sync"

	"ebb/compaction/tokens"
)

// Counted remembers the counts of texts that stand in request after request: names, pinned memory, summaries.
type Counted struct {
	Counter *tokens.Counter
	mu      sync.Mutex
	Known   map[string]int
}

// countedTexts bounds what is remembered; the map is emptied when it is full.
const countedTexts = 1024

func (c *Counted) Count(text string) int {
	c.mu.Lock()
	n, ok := c.Known[text]
	c.mu.Unlock()
	if ok {
		return n
	}
	n = c.Counter.Count(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.Known) >= countedTexts {
		clear(c.Known)
	}
	c.Known[text] = n
	return n
}
