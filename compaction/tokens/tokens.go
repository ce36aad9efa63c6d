// Package tokens counts and shortens text by one byte pair table for all providers; [Calibrate] corrects it by their
// reports.
package tokens

import (
	"fmt"
	"unicode/utf8"

	loader "github.com/pkoukk/tiktoken-go-loader"
)

// MessageOverhead is the tokens of a chat message besides its text.
const MessageOverhead = 4

// Counter counts tokens. It is safe for concurrent use.
type Counter struct{ ranks *rankTable }

const tokenTable = "o200k_base.tiktoken" //nolint:gosec // a table of tokens, none of which opens anything

// NewCounter loads the o200k_base table.
func NewCounter() (*Counter, error) {
	table, err := loader.NewOfflineLoader().LoadTiktokenBpe(tokenTable)
	if err != nil {
		return nil, fmt.Errorf("load token table: %w", err)
	}
	return &Counter{ranks: newRanks(table)}, nil
}

// Count is the number of tokens of a text, in linear time and without allocations.
func (c *Counter) Count(text string) int {
	if !utf8.ValidString(text) {
		text = string([]rune(text)) // invalid bytes count as the replacement character
	}
	n, cut := 0, textSplitter{table: classes(), text: text}
	for i := 0; i < len(text); {
		end := cut.pieceEnd(i)
		n += c.ranks.countTokens(text[i:end])
		i = end
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
