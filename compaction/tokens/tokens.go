// Package tokens counts and shortens text by one byte pair table for all providers; [Calibrate] corrects it by their
// reports. The library tiktoken-go counts; this package bounds its work and remembers its answers.
package tokens

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/pkoukk/tiktoken-go"
)

// MessageOverhead is the tokens of a chat message besides its text.
const MessageOverhead = 4

// Counter counts tokens. It is safe for concurrent use.
type Counter struct {
	library *tiktoken.Tiktoken
	words   *lru.Cache[string, int] // tokens by short piece
	counted atomic.Int64            // bytes
}

// Counted is the number of bytes of all texts that were counted.
func (c *Counter) Counted() int64 { return c.counted.Load() }

const countedWords = 1 << 14

// loadLibrary runs once: the library keeps its loader and the table in variables.
var loadLibrary = sync.OnceValues(newLibrary)

// NewCounter loads the o200k_base table, once for the process.
func NewCounter() (*Counter, error) {
	library, err := loadLibrary()
	if err != nil {
		return nil, fmt.Errorf("load token table: %w", err)
	}
	words, _ := lru.New[string, int](countedWords) // it fails only without a size
	return &Counter{library: library, words: words}, nil
}

// Count is the number of tokens of a text, in linear time. Invalid bytes count as the replacement character.
func (c *Counter) Count(text string) int {
	c.counted.Add(int64(len(text)))
	n := 0
	for len(text) > 0 {
		end := pieceLength(text)
		n += c.countPiece(text[:end])
		text = text[end:]
	}
	return n
}

func (c *Counter) countPiece(piece string) int {
	if len(piece) > maxWord {
		return len(c.library.EncodeOrdinary(piece))
	}
	n, ok := c.words.Get(piece)
	if !ok {
		n = len(c.library.EncodeOrdinary(piece))
		c.words.Add(strings.Clone(piece), n) // a part of the text would keep the whole in memory
	}
	return n
}

// Bounds and inertia of the calibration: one odd report must not swing the budget.
const (
	calMin, calMax = 0.5, 3.0
	calWeight      = 0.3
)

// Calibrate moves factor, the provider's counts relative to ours, towards those of one call. A zero count changes
// nothing.
func Calibrate(factor float64, observed, estimated int) float64 {
	if observed <= 0 || estimated <= 0 {
		return factor
	}
	seen := min(max(float64(observed)/float64(estimated), calMin), calMax)
	return factor + calWeight*(seen-factor)
}

// farBelow is the least difference, in tokens, of a report that is far below our own count.
const farBelow = 1000

// IsMeasured reports whether a provider's count of a request can be one, beside our own count. A server that cuts long
// requests in silence reports the rest, and some report constants.
func IsMeasured(observed, estimated int) bool {
	if observed <= 0 {
		return false
	}
	low := float64(observed) < calMin*float64(estimated) && estimated-observed > farBelow
	return !low && float64(observed) <= calMax*float64(estimated)+farAbove
}

// farAbove is the room, in tokens, for instructions that a proxy adds.
const farAbove = 32 << 10
