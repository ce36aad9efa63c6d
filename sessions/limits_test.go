package sessions_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ebb/sessions"
)

func TestAllowance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ bound, others, want int }{
		{100, 0, 100}, // a person alone uses all
		{100, -3, 100},
		{100, 1, 80}, // others use something: a fifth is kept for them
		{100, 20, 80},
		{100, 50, 50},
		{100, 100, 20}, // and a fifth is the person's, whatever they use
		{100, 5000, 20},
		{7, 1, 5},
		{1, 1, 1},
		{0, 9, 0},
	} {
		if got := sessions.Allowance(c.bound, c.others); got != c.want {
			t.Errorf("of %d, of which others use %d, a person has %d, want %d", c.bound, c.others, got, c.want)
		}
	}
}

// Law: a person has at least a fifth of a bound and never more than it, and more use by others never gives more.
func TestAllowanceIsAShare(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bound, others := rapid.IntRange(0, 1<<40).Draw(t, "bound"), rapid.IntRange(0, 1<<40).Draw(t, "others")
		got := sessions.Allowance(bound, others)
		if got > bound || 5*got < bound {
			t.Fatalf("%d of %d", got, bound)
		}
		if others > 0 && bound > 5 && got == bound {
			t.Fatalf("nothing of %d is kept for others", bound)
		}
		if more := sessions.Allowance(bound, others+rapid.IntRange(0, 1<<20).Draw(t, "more")); more > got {
			t.Fatalf("more use by others raises %d to %d", got, more)
		}
	})
}

// Law: equal shares add up to the whole, and differ by one at most.
func TestSharesAreEqual(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tokens, people := rapid.IntRange(0, 1<<40).Draw(t, "tokens"), rapid.IntRange(1, 20).Draw(t, "people")
		parts, sum := sessions.Shares(tokens, people), 0
		for _, n := range parts {
			sum += n
		}
		if len(parts) != people || sum != tokens || slices.Max(parts)-slices.Min(parts) > 1 {
			t.Fatalf("%d tokens of %d people are %v", tokens, people, parts)
		}
	})
}

// Law: shares by words add up to the tokens, none is negative, and who said more never has less than who said less. The first one
// may have what rounding left.
func TestSharesOfWords(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		own := rapid.SliceOfN(rapid.IntRange(0, 1<<20), 1, 20).Draw(t, "own")
		tokens := rapid.IntRange(0, 1<<22).Draw(t, "tokens")
		parts, sum := sessions.SharesOf(tokens, own), 0
		for i, n := range parts {
			sum += n
			if n < 0 {
				t.Fatalf("the share %d of %v", n, parts)
			}
			for j, m := range parts[1:] {
				if j++; own[i] > own[j] && n+1 < m {
					t.Fatalf("%d words have %d tokens, and %d words %d", own[i], n, own[j], m)
				}
			}
		}
		if sum != tokens {
			t.Fatalf("%d tokens by words %v are %v", tokens, own, parts)
		}
	})
}

func TestSharesOfNoWords(t *testing.T) {
	t.Parallel()
	if parts := sessions.SharesOf(100, nil); len(parts) != 0 {
		t.Errorf("without askers the shares are %v", parts)
	}
	if parts := sessions.SharesOf(10, []int{30, 10}); !slices.Equal(parts, []int{8, 2}) { // a provider counted less than we do
		t.Errorf("the shares are %v, want them in proportion to the words", parts)
	}
}

// Each limit is in the list by which metrics and tests know them.
func TestAllLimitsAreDistinct(t *testing.T) {
	t.Parallel()
	seen := slices.Sorted(slices.Values(sessions.AllLimits))
	if got := len(slices.Compact(seen)); got != 9 || len(sessions.AllLimits) != 9 {
		t.Errorf("%d distinct limits of %d", got, len(sessions.AllLimits))
	}
}
