package rank

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestFuse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		words, meaning string
		weight         float64
		want           string
	}{
		{"abc", "", 0.5, "abc"},
		{"", "xyz", 0.5, "xyz"},
		{"abcde", "x", 0.5, "abxcde"},
		{"abcde", "c", 0.5, "cabde"}, // a text in both lists leads
		{"abcdef", "xyz", 1, "axbyczdef"},
		{"ab", "xy", 0, "abxy"},
	} {
		if got := string(Fuse([]byte(tt.words), []byte(tt.meaning), tt.weight)); got != tt.want {
			t.Errorf("%q and %q at %v: %q, want %q", tt.words, tt.meaning, tt.weight, got, tt.want)
		}
	}
}

// For any rankings, the fused one has each item once, and each side has its share of any beginning, give or take one.
func TestFuseKeepsTheBestOfBothSides(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 0, 20, rapid.ID)
		words, meaning := items.Draw(t, "words"), items.Draw(t, "meaning")
		weight := rapid.Float64Range(0, 1).Draw(t, "weight")
		fused := Fuse(words, meaning, weight)
		want := map[int]bool{}
		for _, i := range slices.Concat(words, meaning) {
			want[i] = true
		}
		got := map[int]bool{}
		for _, i := range fused {
			got[i] = true
		}
		if len(fused) != len(want) || len(got) != len(want) {
			t.Fatalf("%v and %v became %v", words, meaning, fused)
		}
		for n := 1; n <= len(fused); n++ {
			for _, side := range []struct {
				list  []int
				share float64
			}{{words, 1 / (1 + weight)}, {meaning, weight / (1 + weight)}} {
				for i := range min(int(float64(n)*side.share)-1, len(side.list)) {
					if !slices.Contains(fused[:n], side.list[i]) {
						t.Fatalf("of %v and %v at %v the first %d of %v lack %d", words, meaning, weight, n, fused, side.list[i])
					}
				}
			}
		}
	})
}
