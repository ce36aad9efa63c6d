package tokens

import (
	"strings"
	"sync"
	"testing"
)

// counter is loaded once: the table takes a second under the race detector.
var counter = sync.OnceValue(func() *Counter {
	c, err := NewCounter()
	if err != nil {
		panic(err)
	}
	return c
})

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
