package compaction

import (
	"fmt"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// MessageOverhead is what a chat message costs besides its text, in tokens.
const MessageOverhead = 4

// maxRun bounds, in runes, the unbroken runs that the tokenizer is given. Byte pair merging is quadratic in such a run:
// 64 KB of one letter would hold a core for seconds. A cut costs at most a token of exactness.
const maxRun = 192

// Counter counts tokens with a byte pair table that is linked into the program. It is safe for concurrent use.
type Counter struct {
	enc *tiktoken.Tiktoken
}

// offline keeps the library from fetching tables; it sets a variable of the library.
var offline = sync.OnceFunc(func() { tiktoken.SetBpeLoader(loader.NewOfflineLoader()) })

// NewCounter loads the o200k_base table. It stands in for the tokenizers of other providers too, whose own counts
// correct it through [Calibrate].
func NewCounter() (*Counter, error) {
	offline()
	enc, err := tiktoken.GetEncoding("o200k_base")
	if err != nil {
		return nil, fmt.Errorf("load token table: %w", err)
	}
	return &Counter{enc: enc}, nil
}

// Count is the number of tokens of a text. Its time grows linearly with the text, whatever is in it.
func (c *Counter) Count(text string) int {
	n := 0
	for len(text) > 0 {
		cut := boundedPrefix(text)
		n += len(c.enc.EncodeOrdinary(text[:cut]))
		text = text[cut:]
	}
	return n
}

// boundedPrefix is the length of the longest prefix of text without a run of more than maxRun runes of one class,
// in bytes; at least one rune of a text that is not empty.
func boundedPrefix(text string) int {
	class, run := -1, 0
	for i, r := range text {
		if c := classOf(r); c != class {
			class, run = c, 0
		}
		if run++; run > maxRun {
			return i
		}
	}
	return len(text)
}

// classOf sorts runes as the tokenizer's splitting pattern does.
func classOf(r rune) int {
	switch {
	case r < utf8.RuneSelf:
		switch {
		case 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
			return 0
		case '0' <= r && r <= '9':
			return 1
		case r == ' ' || '\t' <= r && r <= '\r':
			return 2
		}
		return 3
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return 0
	case unicode.IsNumber(r):
		return 1
	case unicode.IsSpace(r):
		return 2
	}
	return 3
}

// calibration bounds and inertia: one odd report must not swing the budget.
const (
	calMin, calMax = 0.5, 3.0
	calWeight      = 0.3
)

// Calibrate moves factor, the ratio of the provider's counts to ours, towards what one call showed. A count of zero
// means that the provider did not say, and changes nothing.
func Calibrate(factor float64, observed, estimated int) float64 {
	if observed <= 0 || estimated <= 0 {
		return factor
	}
	seen := min(max(float64(observed)/float64(estimated), calMin), calMax)
	return factor + calWeight*(seen-factor)
}
