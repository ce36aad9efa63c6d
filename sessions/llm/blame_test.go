package llm_test

import (
	"testing"

	"ebb/sessions/llm"
)

// Only what a provider says of the request itself is the request's own fault: addresses, keys, and quotas are not.
func TestWhoIsToBlame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		class  llm.ErrorClass
		status int
		own    bool
	}{
		{llm.Refused, 0, true},
		{llm.Refused, 400, true},
		{llm.Refused, 403, true},
		{llm.Malformed, 400, true},
		{llm.Malformed, 413, true},
		{llm.Malformed, 422, true},
		{llm.Malformed, 0, false},
		{llm.Malformed, 302, false},
		{llm.Malformed, 404, false},
		{llm.Malformed, 405, false},
		{llm.Malformed, 410, false},
		{llm.Denied, 400, false},
		{llm.Denied, 401, false},
		{llm.Busy, 429, false},
		{llm.Overflow, 400, false},
	} {
		if own := (&llm.CallError{Class: c.class, Status: c.status}).RequestFault(); own != c.own {
			t.Errorf("%s, status %d: the request is at fault: %v, want %v", c.class, c.status, own, c.own)
		}
	}
}
