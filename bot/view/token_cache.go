package view

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"ebb/compaction/tokens"
)

// TokenCache caches token counts of repeated texts: names, pinned memory, summaries.
type TokenCache struct {
	counter *tokens.Counter
	counts  *lru.Cache[string, int] // by text
}

const countedTexts = 1024

func newTokenCache(counter *tokens.Counter) *TokenCache {
	counts, _ := lru.New[string, int](countedTexts) // it fails only without a size
	return &TokenCache{counter: counter, counts: counts}
}

// Count returns the tokens of a text.
func (c *TokenCache) Count(text string) int {
	n, ok := c.counts.Get(text)
	if !ok {
		n = c.counter.Count(text)
		c.counts.Add(text, n)
	}
	return n
}
