package blame

import (
	"context"
	"errors"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Any set of guilty parts is found, and all innocent ones remain. The questions are bounded: one guilty part is found by halves.
func TestAllGuiltyPartsAreFoundAndNoOther(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		bad := rapid.SliceOfN(rapid.Bool(), 0, 200).Draw(rt, "guilty")
		if rapid.Bool().Draw(rt, "few") {
			for i := range bad {
				bad[i] = bad[i] && i%40 == 7
			}
		}
		var want []int
		for i, guilty := range bad {
			if guilty {
				want = append(want, i)
			}
		}
		got, err := Find(t.Context(), len(bad), 10_000, func(_ context.Context, with []bool) (bool, error) {
			for i := range with {
				if with[i] && bad[i] {
					return true, nil
				}
			}
			return false, nil
		})
		if err != nil || !slices.Equal(got.Guilty, want) || got.Sound != len(bad) {
			rt.Fatalf("found %+v, want %v: %v", got, want, err)
		}
		log := bits.Len(uint(len(bad)))
		if most := 2 + len(want)*(2+log) + max(0, len(want)-1)*log; got.Asked > most {
			rt.Fatalf("%d questions for %d of %d parts, want at most %d", got.Asked, len(want), len(bad), most)
		}
		if len(want) == 1 && got.Asked > log+2 {
			rt.Fatalf("%d questions for one of %d parts", got.Asked, len(bad))
		}
	})
}

// A search with too few questions, or one that an error ends, goes on later from its end, and finds the same.
func TestSearchGoesOnFromItsEnd(t *testing.T) {
	t.Parallel()
	errAway := errors.New("away")
	rapid.Check(t, func(rt *rapid.T) {
		bad := rapid.SliceOfN(rapid.Bool(), 1, 60).Draw(rt, "guilty")
		most := rapid.IntRange(8, 20).Draw(rt, "most") // 60 parts need 8
		out := make([]bool, len(bad))
		var at, rounds int
		for at < len(bad) {
			if rounds++; rounds > 10*len(bad) {
				rt.Fatal("no end")
			}
			fails := rapid.IntRange(0, 30).Draw(rt, "fails at")
			asked := 0
			got, err := Find(t.Context(), len(bad)-at, most, func(_ context.Context, with []bool) (bool, error) {
				if asked++; asked == fails {
					return false, errAway
				}
				for i := range with {
					if with[i] && bad[at+i] {
						return true, nil
					}
				}
				return false, nil
			})
			if err != nil && !errors.Is(err, errAway) || got.Asked > most {
				rt.Fatalf("%+v: %v", got, err)
			}
			for _, i := range got.Guilty {
				out[at+i] = true
			}
			at += got.Sound
		}
		if !slices.Equal(out, bad) {
			rt.Fatalf("found %v, want %v", out, bad)
		}
	})
}

// Parts that are refused only together lose the last of them: the rest is accepted.
func TestPartsRefusedTogether(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 80).Draw(rt, "parts")
		a, b := rapid.IntRange(0, n-1).Draw(rt, "a"), rapid.IntRange(0, n-1).Draw(rt, "b")
		got, err := Find(t.Context(), n, 1000, func(_ context.Context, with []bool) (bool, error) { return with[a] && with[b], nil })
		if err != nil || !slices.Equal(got.Guilty, []int{max(a, b)}) || got.Sound != n {
			rt.Fatalf("found %+v: %v", got, err)
		}
	})
}

// A provider that accepts the whole request has no guilty part, for one question.
func TestNothingIsGuiltyWhereAllIsAccepted(t *testing.T) {
	t.Parallel()
	got, err := Find(t.Context(), 100, 10, func(context.Context, []bool) (bool, error) { return false, nil })
	if err != nil || len(got.Guilty) > 0 || got.Sound != 100 || got.Asked != 1 {
		t.Errorf("found %+v: %v", got, err)
	}
}
