package view

import (
	"sync"

	"ebb/compaction/tokens"
)

// TokenCache caches token counts of texts that many requests repeat: names, pinned memory, summaries.
type TokenCache struct {
	Counter *tokens.Counter
	mu      sync.Mutex
	Known   map[string]int
}

// countedTexts bounds the cache, which is emptied when full.
const countedTexts = 1024

// Count returns the tokens of a text.
func (c *TokenCache) Count(text string) int {
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
