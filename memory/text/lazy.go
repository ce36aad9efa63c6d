package text

import (
	"regexp"
	"sync"
)

// LazyRegexp compiles an expression at its first use. To compile all rules takes longer than a command line that needs
// none of them.
func LazyRegexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
