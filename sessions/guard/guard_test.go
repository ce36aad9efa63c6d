package guard_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"ebb/sessions/guard"
)

// A panic becomes an error, one line with its stack, and a count. An error stays as it is.
func TestPanicBecomesAnError(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	log := zerolog.New(&lines)
	ctx, before := log.WithContext(context.Background()), guard.Panics(guard.Notice)
	if err := guard.Do(ctx, guard.Notice, func() error { panic("broken") }); !errors.Is(err, guard.ErrPanicked) {
		t.Errorf("a panic returns %v", err)
	}
	if n := guard.Panics(guard.Notice) - before; n != 1 {
		t.Errorf("%d panics are counted", n)
	}
	if s := lines.String(); !strings.Contains(s, "broken") || !strings.Contains(s, "guard_test.go") || strings.Count(s, "\n") != 1 {
		t.Errorf("it is logged as %s", s)
	}
	fault := errors.New("fault")
	if err := guard.Do(ctx, guard.Notice, func() error { return fault }); !errors.Is(err, fault) {
		t.Errorf("an error returns %v", err)
	}
	ran := false
	guard.Run(ctx, guard.Notice, func() { ran = true; panic("once more") })
	if !ran {
		t.Error("the work did not run")
	}
}
