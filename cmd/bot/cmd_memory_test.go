package main

import (
	"testing"
	"time"

	"ebb/bot/manage"
	"ebb/memory"
)

// A memory that can't be made the team's is refused with the reason, each in its own words.
func TestUnshareable(t *testing.T) {
	t.Parallel()
	for why, c := range map[manage.Refusal]struct {
		m    memory.Memory
		want string
	}{
		manage.TeamAlready: {memory.Memory{}, "is the team's already"},
		manage.Superseded:  {memory.Memory{SupersededBy: 9}, "is superseded by 9"},
		manage.Expired:     {memory.Memory{ExpiresAt: time.Unix(1, 0)}, "is expired"},
		manage.OfATask:     {memory.Memory{}, "is about work in progress, which belongs to its session alone"},
		manage.OfADay:      {memory.Memory{}, "summarizes a group's whole day"},
		manage.OfAPerson:   {memory.Memory{}, "is one person's"},
		manage.OfASession:  {memory.Memory{}, "belongs to its session alone"},
	} {
		if got := unshareable(why, c.m); got != c.want {
			t.Errorf("%s: %q, want %q", why, got, c.want)
		}
	}
}
