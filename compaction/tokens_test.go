package compaction

import (
	"strings"
	"sync"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	"pgregory.net/rapid"
)

// counter is loaded once: the table takes a second under the race detector.
var counter = sync.OnceValue(func() *Counter {
	c, err := NewCounter()
	if err != nil {
		panic(err)
	}
	return c
})

func TestCountAgreesWithTheTokenizerOnProse(t *testing.T) {
	t.Parallel()
	counter() // sets the library's loader, which GetEncoding reads
	enc, err := tiktoken.GetEncoding("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", "a", "Hello, world! The release is on 2026-03-05, order A-10086.",
		"发布定在三月五日，负责人是李娜，订单号 A-10086。\n\n\t有问题找张伟。",
		strings.Repeat("We ship on Friday. 周五上线，别忘了回滚方案。 ", 200),
		"🙂👩‍👩‍👧 emoji и кириллица, 日本語も",
	} {
		if got, want := counter().Count(text), len(enc.EncodeOrdinary(text)); got != want {
			t.Errorf("Count(%.40q) = %d, the tokenizer says %d", text, got, want)
		}
	}
}

// Law: what is cut off at once is all of the text, and no part holds a longer run than the tokenizer can bear.
func TestBoundedPrefixesAreTheText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("aA9 \n。，汉字🙂é_-")), 0, 300, -1), 0, 6).Draw(t, "parts")
		repeat := rapid.IntRange(1, 40).Draw(t, "repeat")
		text := strings.Repeat(strings.Join(parts, ""), repeat)
		rest, joined := text, ""
		for rest != "" {
			n := boundedPrefix(rest)
			if n <= 0 || n > len(rest) {
				t.Fatalf("prefix of %d bytes of %d", n, len(rest))
			}
			run, class := 0, -1
			for _, r := range rest[:n] {
				if c := classOf(r); c != class {
					run, class = 0, c
				}
				if run++; run > maxRun {
					t.Fatalf("a run of %d runes is left", run)
				}
			}
			joined, rest = joined+rest[:n], rest[n:]
		}
		if joined != text {
			t.Fatal("the parts joined are not the text")
		}
	})
}

func TestCountOfUnbrokenRunsStaysPlausible(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{"letter": "a", "digit": "7", "blank": " ", "sign": "=", "han": "好", "invalid": "\xff"} {
		text := strings.Repeat(unit, 64<<10/len(unit))
		got := counter().Count(text)
		if got < len(text)/400 || got > 3*len(text) {
			t.Errorf("%s: %d tokens for %d bytes", name, got, len(text))
		}
	}
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

func BenchmarkCountProse(b *testing.B) {
	text := strings.Repeat("We ship on Friday; 周五上线，别忘了回滚方案。The owner is Li Na. ", 400)
	c := counter()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c.Count(text)
	}
}

func BenchmarkCountUnbroken(b *testing.B) {
	text := strings.Repeat("a", 64<<10)
	c := counter()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c.Count(text)
	}
}
