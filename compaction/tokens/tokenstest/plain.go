// Package tokenstest counts with the unchanged library, for comparison.
package tokenstest

import (
	"fmt"
	"sync"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// Plain is the reference of [tokens.Counter]. Its time is quadratic in an unbroken run, so it must not count people's
// text.
type Plain struct{ enc *tiktoken.Tiktoken }

// offline keeps the library from fetching tables; it sets a variable of the library.
var offline = sync.OnceFunc(func() { tiktoken.SetBpeLoader(loader.NewOfflineLoader()) })

// NewPlain has the library load its table.
func NewPlain() (*Plain, error) {
	offline()
	enc, err := tiktoken.GetEncoding("o200k_base")
	if err != nil {
		return nil, fmt.Errorf("have the library load its token table: %w", err)
	}
	return &Plain{enc: enc}, nil
}

// Count is the number of tokens of a text.
func (p *Plain) Count(text string) int { return len(p.enc.EncodeOrdinary(text)) }
