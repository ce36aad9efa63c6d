package bot

import (
	"fmt"
	"testing"
)

// Only what a provider says of the request itself is the request's own fault: addresses, keys, and quotas are not.
func TestWhoIsToBlame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		class  ErrorClass
		status int
		own    bool
	}{
		{Refused, 0, true},
		{Refused, 400, true},
		{Refused, 403, true},
		{Malformed, 400, true},
		{Malformed, 413, true},
		{Malformed, 422, true},
		{Malformed, 0, false},
		{Malformed, 302, false},
		{Malformed, 404, false},
		{Malformed, 405, false},
		{Malformed, 410, false},
		{Denied, 400, false},
		{Denied, 401, false},
		{Busy, 429, false},
		{Overflow, 400, false},
	} {
		want(t, fmt.Sprint("blames itself: ", c.class, " ", c.status), (&ModelError{Class: c.class, Status: c.status}).RequestFault(), c.own)
	}
}
