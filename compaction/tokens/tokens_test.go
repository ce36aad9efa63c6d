package tokens

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// counter is loaded once: the table takes a second under the race detector.
var counter = sync.OnceValue(func() *Counter {
	c, err := NewCounter()
	if err != nil {
		panic(err)
	}
	return c
})

// Each text has 64 KB. Counting takes some 20 ms; without bounded pieces, one letter alone takes seconds.
func unbroken() map[string]string {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same texts in each run
	from := func(alphabet string) string {
		runes, b := []rune(alphabet), strings.Builder{}
		for b.Len() < 64<<10 {
			b.WriteRune(runes[random.IntN(len(runes))])
		}
		return b.String()
	}
	span := func(first, last rune) string {
		var b strings.Builder
		for r := first; r < last; r++ {
			b.WriteRune(r)
		}
		return b.String()
	}
	invalid := make([]byte, 64<<10)
	for i := range invalid {
		invalid[i] = byte(random.IntN(256))
	}
	return map[string]string{
		"one letter": from("a"), "one digit": from("7"), "one sign": from("="), "spaces": from(" "), "newlines": from("\n"), "one character": from("好"),
		"base64": from(span('A', 'Z') + span('a', 'z') + span('0', '9') + "+/"), "hex": from("0123456789abcdef"), "digits": from(span('0', '9')),
		"small": from(span('a', 'z')), "capitals": from(span('A', 'Z')), "signs": from("!@#$%^&*()_+-=[]{}"), "white space": from(" \t\r\n"),
		"chinese": from(span(0x4e00, 0x9fff)), "kana": from(span(0x3041, 0x30fa)), "emoji": from(span(0x1f300, 0x1f600)), "marks": from(span(0x300, 0x360)),
		"apostrophes": from("a'b"), "invalid": string(invalid), "replacement": from("\ufffd"), "any": from(span(0x20, 0x3000)),
	}
}

// The library's work is quadratic in a piece. Pieces of bounded length, each counted once, make it linear in the text.
func TestCountOfUnbrokenRunsIsLinearWork(t *testing.T) {
	t.Parallel()
	for name, text := range unbroken() {
		work := 0
		for rest := text; len(rest) > 0; {
			end := pieceLength(rest)
			if end < 1 || end > maxPiece+utf8.UTFMax {
				t.Fatalf("%s: a piece of %d bytes", name, end)
			}
			work += end * end
			rest = rest[end:]
		}
		if work > (maxPiece+utf8.UTFMax)*len(text) {
			t.Errorf("%s: the library's work is %d for %d bytes", name, work, len(text))
		}
		if got := counter().Count(text); got < len(text)/400 || got > 3*len(text) {
			t.Errorf("%s: %d tokens for %d bytes", name, got, len(text))
		}
	}
}

// Laws: any bytes are counted, a byte has at most three tokens (of the replacement character), and two texts have about as many
// tokens together as apart.
func FuzzCount(f *testing.F) {
	for _, text := range unbroken() {
		f.Add(text[:300], text[300:700])
	}
	f.Add("\xff\xfe\xe4\xbd", "don't 1234 <|endoftext|>")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a)+len(b) > 4<<10 {
			return
		}
		ca, cb, both := counter().Count(a), counter().Count(b), counter().Count(a+b)
		if ca < 0 || ca > 3*len(a) || a != "" && ca == 0 {
			t.Fatalf("%d tokens for %d bytes", ca, len(a))
		}
		// Beside the seam, the cuts of a long run may lie elsewhere.
		if slack := 12 + (len(a)+len(b))/16; both > ca+cb+slack || both < ca+cb-slack {
			t.Fatalf("%d and %d tokens apart, %d together", ca, cb, both)
		}
	})
}

func TestCalibrate(t *testing.T) {
	t.Parallel()
	if got := Calibrate(1, 0, 100); got != 1 {
		t.Errorf("a provider that says nothing moved the factor to %v", got)
	}
	if got := Calibrate(1, -5, 100); got != 1 {
		t.Errorf("a negative count moved the factor to %v", got)
	}
	f := 1.0
	for range 30 {
		f = Calibrate(f, 150, 100)
	}
	if f < 1.49 || f > 1.51 {
		t.Errorf("steady reports of 1.5 x lead to %v", f)
	}
	for range 100 {
		f = Calibrate(f, 1<<40, 1)
	}
	if f > calMax {
		t.Errorf("absurd reports lead to %v, above the limit", f)
	}
}

func TestIsMeasured(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		observed, estimated int
		want                bool
	}{
		{1500, 13_280, false},
		{4096, 13_280, false}, // a server's default context
		{9000, 13_280, true},
		{0, 100, false},
		{-5, 100, false},
		{40, 600, true}, // the difference is small
		{1_200, 300, true},
		{1_000_000_000, 13_280, false},
		{60_000, 30_000, true},
	} {
		if got := IsMeasured(c.observed, c.estimated); got != c.want {
			t.Errorf("%d of %d: %v", c.observed, c.estimated, got)
		}
	}
}

func BenchmarkCountProse(b *testing.B) {
	text := "We ship on Friday; 周五上线，别忘了回滚方案。The owner is Li Na. 三台八核机器，单机 1200 TPS 时平均响应 38 毫秒，瓶颈在风控规则加载。"
	c := counter()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c.Count(text)
	}
}

func BenchmarkCountUnbroken(b *testing.B) {
	for name, text := range unbroken() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				c := counter()
				c.words.Purge()
				c.Count(text)
			}
		})
	}
}
