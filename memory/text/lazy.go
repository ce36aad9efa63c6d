package text

import (
	"regexp"
	"sync"
)

// LazyRegexp compiles an expression at its first use: a command line that needs no rule starts faster.
func LazyRegexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
