// Package tokens counts and shortens text by the tokens of a model. A byte pair table that is linked into the program stands in
// for the tokenizers of all providers; [Calibrate] corrects it by what they report.
package tokens

import (
	"fmt"
	"unicode/utf8"

	loader "github.com/pkoukk/tiktoken-go-loader"
)

// MessageOverhead is what a chat message costs besides its text, in tokens.
const MessageOverhead = 4

// Counter counts tokens with a byte pair table that is linked into the program. It is safe for concurrent use.
type Counter struct{ ranks *ranks }

// tokenTable is the table's name with the loader, which looks it up in what it brings along.
const tokenTable = "o200k_base.tiktoken" //nolint:gosec // a table of tokens, none of which opens anything

// NewCounter loads the o200k_base table. It stands in for the tokenizers of other providers too, whose own counts
// correct it through [Calibrate].
func NewCounter() (*Counter, error) {
	table, err := loader.NewOfflineLoader().LoadTiktokenBpe(tokenTable)
	if err != nil {
		return nil, fmt.Errorf("load token table: %w", err)
	}
	return &Counter{ranks: newRanks(table)}, nil
}

// Count is the number of tokens of a text. Its time grows linearly with the text, whatever is in it, and it allocates
// nothing.
func (c *Counter) Count(text string) int {
	if !utf8.ValidString(text) {
		text = string([]rune(text)) // each byte that is no character counts as the sign for that
	}
	n, cut := 0, cutter{table: classes(), text: text}
	for i := 0; i < len(text); {
		end := cut.piece(i)
		n += c.ranks.count(text[i:end])
		i = end
	}
	return n
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
