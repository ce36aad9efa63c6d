package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"ebb/bot/config/strict"
)

// A change is named by the path of its value, and stands on the list of its kind.
func TestChangesAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ live, restart []string }{
		`{}`: {},
		`{"agent": {"limits": {"tokens_per_day": 5}, "admins": ["u1"]}}`:                                             {live: []string{"agent.admins", "agent.limits.tokens_per_day"}},
		`{"access": {"deny": ["c1"]}, "log": {"level": "debug"}}`:                                                    {live: []string{"access.deny", "log.level"}},
		`{"log": {"format": "json"}, "cluster": {"replica_id": "a"}}`:                                                {restart: []string{"cluster.replica_id", "log.format"}},
		`{"schedule": {"enabled": false, "quiet_hours": "22:00-08:00"}}`:                                             {live: []string{"schedule.enabled", "schedule.quiet_hours"}},
		`{"llm": {"currency": "¥"}}`:                                                                                 {live: []string{"llm.currency"}},
		`{"llm": {"max_concurrent": 3}}`:                                                                             {restart: []string{"llm.max_concurrent"}},
		`{"agent": {"compaction": {"notify": true, "policy": "balanced"}}}`:                                          {live: []string{"agent.compaction.policy"}, restart: []string{"agent.compaction.notify"}},
		`{"groups": {"c1": {"compaction": {"policy": "turns"}}}}`:                                                    {live: []string{"groups"}},
		`{"llm": {"models": [{"name": "main", "base_url": "http://127.0.0.1/v1", "api_key": "new", "model": "m"}]}}`: {live: []string{"llm.models"}},
	} {
		base, err := parseConfig("", []byte(`{}`), env(), NeedNothing)
		if err != nil {
			t.Fatal(err)
		}
		next, err := parseConfig("", []byte(text), env(), NeedNothing)
		if err != nil {
			t.Fatal(err)
		}
		live, restart := base.Changes(next)
		slices.Sort(live)
		slices.Sort(restart)
		if !slices.Equal(live, want.live) || !slices.Equal(restart, want.restart) {
			t.Errorf("%s: %q and %q, want %q and %q", text, live, restart, want.live, want.restart)
		}
	}
}

// The lists of what a reload takes over name keys that exist.
func TestReloadedKeysExist(t *testing.T) {
	t.Parallel()
	for _, path := range slices.Concat(reloaded, fixed) {
		at := reflect.TypeFor[Config]()
		for key := range strings.SplitSeq(path, ".") {
			if at == robotsType {
				at = at.Elem()
			}
			set := strict.FieldsOf(at)
			if set.Index[key] == nil {
				t.Fatalf("%s: there is no %s", path, key)
			}
			at = at.FieldByIndex(set.Index[key]).Type
		}
	}
}
