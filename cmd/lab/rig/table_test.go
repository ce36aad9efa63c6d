package rig

import (
	"strings"
	"testing"
	"time"
)

func TestQuantileIsAValueThatOccurred(t *testing.T) {
	t.Parallel()
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i) // 100 to 1: the order does not matter
	}
	for _, tt := range []struct {
		name   string
		values []float64
		q      float64
		want   float64
	}{
		{"nothing", nil, 0.5, 0},
		{"one value", []float64{7}, 0.99, 7},
		{"the median of an even number is the lower one", []float64{1, 2, 3, 4}, 0.5, 2},
		{"the median of an odd number", []float64{9, 1, 5}, 0.5, 5},
		{"p50 of a hundred", hundred, 0.5, 50},
		{"p99 of a hundred", hundred, 0.99, 99},
		{"p100", hundred, 1, 100},
		{"p0 is the smallest", hundred, 0, 1},
		{"p99 of ten is the largest", hundred[:10], 0.99, 100},
	} {
		if got := Quantile(tt.values, tt.q); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("the values given were put into another order")
	}
}

func TestVerdictsSayHowFarATargetIsMissed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		got  Figure
		want string
	}{
		{"at the limit", Figure{}.AtMost(8, 8), "yes"},
		{"over the limit", Figure{}.AtMost(10, 8), "not reached: 1.25 x the limit"},
		{"none allowed, none there", Figure{}.AtMost(0, 0), "yes"},
		{"none allowed, one there", Figure{}.AtMost(1, 0), "not reached"},
		{"at the target", Figure{}.AtLeast(0.25, 0.25), "yes"},
		{"below the target", Figure{}.AtLeast(0.2, 0.25), "not reached: 80 % of the target"},
		{"nothing measured", Figure{}.AtLeast(Ratio(0, 0)/Ratio(0, 0), 0.25), "not reached: NaN % of the target"},
	} {
		if tt.got.Reached != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got.Reached, tt.want)
		}
	}
	if f := (Figure{}).AtMost(4, 8); f.Ratio != "0.50 of the limit" {
		t.Errorf("the ratio is %q", f.Ratio)
	}
	if f := (Figure{Ratio: "2 x"}).AtMost(4, 8); f.Ratio != "2 x" {
		t.Errorf("a ratio that was given became %q", f.Ratio)
	}
}

func TestTableColumnsLineUp(t *testing.T) {
	t.Parallel()
	got := FormatFigures([]Figure{
		{Name: "turns/s", Measured: "400 turns/s", Ratio: "30 %", Target: ">= 25 %", Reached: "yes"},
		{Name: "token counting, 测试", Measured: "3", Target: "0", Reached: "not reached"},
	})
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines, want 4:\n%s", len(lines), got)
	}
	for _, l := range lines {
		var at []int
		for i, r := range []rune(l) {
			if r == '|' {
				at = append(at, i)
			}
		}
		if len(at) != 4 || at[0] != 19 || at[1] != 33 || at[2] != 49 || at[3] != 59 {
			t.Errorf("bars at %v in %q", at, l)
		}
		if strings.HasSuffix(l, " ") {
			t.Errorf("%q ends in blanks", l)
		}
	}
}

func TestMillisKeepsThreeDigits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		1234 * time.Microsecond: "1.23 ms", 12_340 * time.Microsecond: "12.3 ms", 1234 * time.Millisecond: "1234 ms", 0: "0.00 ms",
	} {
		if got := FormatMillis(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
