package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"ebb/bot/manage"
)

// A conversation's own settings are decoded and checked like those of the file, and nothing of the environment gets in.
func TestOwnSettings(t *testing.T) {
	t.Parallel()
	env := map[string]string{"LLM_API_KEY": "sk-secret", "DINGTALK_CLIENT_ID": "a", "DINGTALK_CLIENT_SECRET": "b", "DATABASE_URL": "postgres://x"}
	c, err := parseConfig("bot.jsonc", []byte(`{"agent":{"compaction":{"policy":"balanced"}},"groups":{"cidG":{"policy":"turns"}}}`), func(k string) string { return env[k] }, NeedLLM)
	if err != nil {
		t.Fatal(err)
	}
	for settings, want := range map[string]string{
		`{"policy":"nonsense"}`:                      `policy: got "nonsense", want`,
		`{"tail_turns":-1}`:                          "tail_turns: got -1",
		`{"tail_turns":"four"}`:                      "tail_turns: got a string, want a whole number",
		`{"tailturns":4}`:                            "no such key",
		`{"cooldown_min":4}`:                         "no such key",
		`{"policy":"${LLM_API_KEY}"}`:                "got a value with $",
		`{"auto_compact_threshold":900000}`:          "auto_compact_threshold: got 900000",
		`{"max_history_share":0}`:                    "max_history_share",
		`{"cached_context_turns":3,"policy":"oops"}`: "policy",
	} {
		_, err := c.Own("cidX", settings)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("%s: %v, want %q in it", settings, err, want)
		}
	}
	common, err := c.Own("cidX", `{"tail_turns":7}`)
	if err != nil || common.Policy.Name != "balanced" || common.Policy.TailTurns != 7 {
		t.Errorf("over the common settings: %+v, %v", common, err)
	}
	group, err := c.Own("cidG", `{"full_context_turns":2,"cached_context_turns":5}`)
	if err != nil || group.Policy.Name != "turns" || group.Policy.TailTurns != 2 || group.Policy.Segment != 5 {
		t.Errorf("over the group's settings: %+v, %v", group, err)
	}
	if later, err := c.Own("cidX", `{"policy":"sliding_window"}`); err != nil || later.Policy.Name != "sliding_window" {
		t.Errorf("one after the other: %+v, %v", later, err)
	}
}

// Each key of agent.compaction can be set for one conversation, or the command refuses it as one of the file: no answer says
// that there is no such key.
func TestKeysOfTheFileAreNamedSo(t *testing.T) {
	t.Parallel()
	own := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[CompactionSettings]()) {
		own[f.Tag.Get("json")] = true
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[CompactionConfig]()) {
		key := f.Tag.Get("json")
		if f.Anonymous || own[key] || key == "model" { // a model is chosen by /model
			continue
		}
		if _, err := manage.SettingKey(strings.ToUpper(key)); !errors.Is(err, manage.FileOnly) {
			t.Errorf("%s: got %v, want %v", key, err, manage.FileOnly)
		}
	}
}
