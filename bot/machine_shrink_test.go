package bot_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A run that ends early without enough data is never reported in place of the law that a longer run broke.
func TestShrinkingKeepsTheLaw(t *testing.T) {
	t.Parallel()
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Join("testdata", "rapid", t.Name())) }) // rapid keeps the failure there
	seen := &failedCheck{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		rapid.Check(seen, func(rt *rapid.T) {
			bubble(t, func(*testing.T) {
				steps := 0
				rt.Repeat(map[string]func(*rapid.T){"step": func(rt *rapid.T) {
					if steps++; steps == 5 {
						rt.Fatal("P0: a fifth step")
					}
				}})
			})
		})
	}()
	<-ended
	if !strings.Contains(seen.report, "failed after") || !strings.Contains(seen.report, "P0: a fifth step") {
		t.Errorf("reported: %s", seen.report)
	}
}

// failedCheck is a test whose failure is expected: it keeps the report and leaves the outer test as it is.
type failedCheck struct {
	testing.TB
	report string
}

func (f *failedCheck) Errorf(format string, args ...any) { f.report += fmt.Sprintf(format, args...) }

func (f *failedCheck) Failed() bool { return f.report != "" }

func (f *failedCheck) FailNow() { runtime.Goexit() }

func (f *failedCheck) Logf(string, ...any) {}

func (f *failedCheck) Log(...any) {}
