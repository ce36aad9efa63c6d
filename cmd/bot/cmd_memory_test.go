package main

import (
	"strings"
	"testing"
	"time"

	"ebb/memory"
)

// What can't be made the team's is refused with the reason, each in its own words.
func TestShareable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		m   memory.Memory
		why string
	}{
		"a group's":        {memory.Memory{Scope: memory.ScopeGroup, Kind: memory.KindDecision}, ""},
		"the team's":       {memory.Memory{Scope: memory.ScopeTeam, Kind: memory.KindDecision}, "is the team's already"},
		"superseded":       {memory.Memory{Scope: memory.ScopeGroup, Kind: memory.KindDecision, SupersededBy: 9}, "is superseded by 9"},
		"superseded, team": {memory.Memory{Scope: memory.ScopeTeam, SupersededBy: 9}, "is superseded by 9"},
		"expired":          {memory.Memory{Scope: memory.ScopeGroup, ExpiresAt: time.Unix(1, 0)}, "is expired"},
		"work in progress": {memory.Memory{Scope: memory.ScopeGroup, Kind: memory.KindTask}, "work in progress"},
		"a digest":         {memory.Memory{Scope: memory.ScopeGroup, Kind: memory.KindDigest}, "summarizes a group's whole day"},
		"a person's":       {memory.Memory{Scope: memory.ScopeUser, Kind: memory.KindProfile}, "is one person's"},
		"a session's":      {memory.Memory{Scope: memory.ScopeSession, Kind: memory.KindFact}, "belongs to its session alone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := shareable(c.m)
			if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
				t.Errorf("refused with %v, want %q", err, c.why)
			}
		})
	}
}
