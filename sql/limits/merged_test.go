package limits_test

import (
	"slices"
	"testing"

	"ebb/sessions"
)

// The long words of one person cost the other askers of their turn nothing.
func TestMergedTurnLendsNoTokens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tokens    int
		own, want []int
	}{
		{1000, []int{10, 900}, []int{55, 945}},
		{1001, []int{0, 0}, []int{501, 500}},
		{100, []int{10, 990}, []int{1, 99}},
		{7, []int{5, 5, 5}, []int{3, 2, 2}},
		{0, []int{5, 5}, []int{0, 0}},
		{9, []int{3}, []int{9}},
		{9, nil, []int{}},
	} {
		if got := sessions.SharesOf(c.tokens, c.own); !slices.Equal(got, c.want) {
			t.Errorf("%d tokens of the words %v are divided as %v, want %v", c.tokens, c.own, got, c.want)
		}
	}
}
