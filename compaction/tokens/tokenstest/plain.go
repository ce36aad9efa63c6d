// Package tokenstest counts with the unchanged library, for comparison.
package tokenstest

import (
	"fmt"

	"github.com/pkoukk/tiktoken-go"

	"ebb/compaction/tokens"
)

// Plain is the reference of [tokens.Counter]: the library without bounds. Its time is quadratic in an unbroken run, so
// it must not count people's text.
type Plain struct{ library *tiktoken.Tiktoken }

// NewPlain has the library load its table.
func NewPlain() (*Plain, error) {
	if _, err := tokens.NewCounter(); err != nil { // the library reads its table from the program from here on
		return nil, fmt.Errorf("prepare the library: %w", err)
	}
	library, err := tiktoken.GetEncoding(tiktoken.MODEL_O200K_BASE)
	if err != nil {
		return nil, fmt.Errorf("have the library load its token table: %w", err)
	}
	return &Plain{library: library}, nil
}

// Count is the number of tokens of a text.
func (p *Plain) Count(text string) int { return len(p.library.EncodeOrdinary(text)) }
