package gate

import (
	"fmt"
	"testing"
)

func want[T any](tb testing.TB, what string, got, wanted T) {
	tb.Helper()
	if g, w := fmt.Sprintf("%v", got), fmt.Sprintf("%v", wanted); g != w {
		tb.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}
