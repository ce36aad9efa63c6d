package text

import (
	"regexp"
	"sync"
)

// LazyRegexp compiles an expression at its first use, so that commands without rules start faster.
func LazyRegexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
