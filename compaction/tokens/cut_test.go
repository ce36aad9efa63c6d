package tokens

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Law: a shortened text is valid, begins and ends as the whole, and is about as long as asked for.
func FuzzHeadTail(f *testing.F) {
	f.Add("短", 10)
	f.Add(strings.Repeat("汉字🙂", 100), 50)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 16 || limit > 1<<20 || !utf8.ValidString(text) {
			return
		}
		got := HeadTail(text, limit)
		if !utf8.ValidString(got) {
			t.Fatalf("cut inside a character: %q", got)
		}
		if len(text) <= limit && got != text {
			t.Fatal("a short text was changed")
		}
		if len(got) > limit+64 {
			t.Fatalf("%d bytes, asked for %d", len(got), limit)
		}
	})
}
