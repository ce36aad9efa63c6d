package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// memoryFile is a config with these keys of agent.memory.
func memoryFile(keys string) string { return fmt.Sprintf(`{"agent": {"memory": {%s}}}`, keys) }

func TestLoadRefusesMemory(t *testing.T) {
	t.Parallel()
	for _, tt := range []errorCase{
		{"recall", memoryFile(`"recall": ^"sometimes"`), `agent.memory.recall: got "sometimes", want "questions" or "always" or "off"`},
		{"recall_tokens", memoryFile(`"recall_tokens": ^5`), "agent.memory.recall_tokens: got 5, want 100 to 8000"},
		{"pinned_tokens", memoryFile(`"pinned_tokens": ^-1`), "agent.memory.pinned_tokens: got -1, want 0 to 8000"},
		{"extract", memoryFile(`"extract": ^"never"`), `agent.memory.extract: got "never", want "flush" or "every_turn"`},
		{"candidates", memoryFile(`"candidates": ^-1`), "agent.memory.candidates: got -1, want 0 to 1000"},
		{"max_per_scope", memoryFile(`"max_per_scope": ^3`), "agent.memory.max_per_scope: got 3, want 20 to 100000"},
		{"task_ttl", memoryFile(`"task_ttl": ^"5m"`), "agent.memory.task_ttl: got 5m, want at least 1h"},
		{"digest", memoryFile(`"digest": ^"25:00"`), `agent.memory.digest: got "25:00", want "HH:MM" or ""`},
		{"digest switched off", memoryFile(`"digest": ^false`), `agent.memory.digest: got true or false, want "HH:MM" or ""`},
		{
			"task_ttl in weeks", memoryFile(`"task_ttl": ^"2w"`),
			`agent.memory.task_ttl: got "2w", want a duration such as "20s", "5m", "30d" or a number of seconds`,
		},
		{"task_ttl without a unit", memoryFile(`"task_ttl": ^14`), `agent.memory.task_ttl: got 14s, want at least 1h; two weeks are "336h"`},
		{
			"address of the call", memoryFile(`"embeddings": {"base_url": ^"http://h/v1/embeddings/", "model": "m"}`),
			`agent.memory.embeddings.base_url: got "http://h/v1/embeddings/", want it without /embeddings, which is added to it: "http://h/v1"`,
		},
		{"digest in words", memoryFile(`"digest": ^"4 am"`), `agent.memory.digest: got "4 am"`},
		{"no such key", memoryFile(`^"recal": "off"`), "agent.memory.recal: no such key"},
		{"url", memoryFile(`"embeddings": {"base_url": ^"host", "model": "m"}`), "agent.memory.embeddings.base_url: got \"host\""},
		{"no model", memoryFile(`"embeddings": ^{"base_url": "http://h/v1"}`), "agent.memory.embeddings.model: is empty"},
		{"weight", memoryFile(`"embeddings": {"weight": ^2}`), "agent.memory.embeddings.weight: got 2, want 0 to 1"},
		{"batch", memoryFile(`"embeddings": {"batch": ^0}`), "agent.memory.embeddings.batch: got 0, want 1 to 2048"},
		{"pace", memoryFile(`"embeddings": {"requests_per_minute": ^0}`), "agent.memory.embeddings.requests_per_minute: got 0"},
		{"key of the wrong type", memoryFile(`"embeddings": {"api_key": ^["hunter2"]}`), "agent.memory.embeddings.api_key: got a list, want a string"},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestLoadMemory(t *testing.T) {
	t.Parallel()
	m := mustParse(t, memoryFile(`"recall": "always", "digest": "", "task_ttl": "24h", "candidates": 0,
		"embeddings": {"base_url": "http://h/v1", "model": "m", "api_key": "hunter2", "weight": 1}`)).Agent.Memory
	if m.Recall != "always" || m.Digest != "" || m.TaskTTL != 24*time.Hour || m.Candidates != 0 || m.MaxPerScope != 500 {
		t.Errorf("got %+v", m)
	}
	if e := m.Embeddings; e.BaseURL != "http://h/v1" || e.Batch != 64 || e.Weight != 1 || e.APIKey.Reveal() != "hunter2" {
		t.Errorf("got %+v", e)
	}
}

// The settings in force are printed, but for the key.
func TestPrintMemory(t *testing.T) {
	t.Parallel()
	text, err := mustParse(t, memoryFile(`"embeddings": {"base_url": "http://h/v1", "model": "m", "api_key": "hunter2"}`)).JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"recall": "questions"`, `"task_ttl": "336h"`, `"api_key": "***"`, `"digest": "04:00"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "hunter2") {
		t.Error("the key is printed")
	}
}

// A setting without its apparent effect is reported, and nothing else.
func TestMemoryWarnings(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		`"base_url": "http://h/v1", "model": "m", "api_key": "${NO_SUCH_KEY}"`: "embeddings.api_key: NO_SUCH_KEY is not set",
		`"base_url": "http://h/v1", "model": "m", "api_key": "${NO_SUCH:-}"`:   "",
		`"base_url": "http://h/v1", "model": "m"`:                              "",
		`"model": "m"`:                "embeddings.model: does nothing without a base_url",
		`"api_key": "${NO_SUCH_KEY}"`: "",
	} {
		got := strings.Join(mustParse(t, memoryFile(`"embeddings": {`+keys+`}`)).Warnings, "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: warned %q, want %q", keys, got, want)
		}
	}
}

// A file of an earlier build still loads: its removed keys are named in warnings, with the place and the reason.
func TestRemovedKeysAreWarnedOf(t *testing.T) {
	t.Parallel()
	cfg := mustParse(t, `{"agent": {"memory": {"order": ["raw"]}, "compaction": {"retry_backoff": "2s", "compression_cooldown_min": 4,
		"groups": {"a": {"policy": "turns"}}}}, "groups": {"b": {"compaction": {"cooldown_min": 3}}}}`)
	w := strings.Join(cfg.Warnings, "\n")
	for _, want := range []string{
		"1:23: agent.memory.order: ", "agent.compaction.retry_backoff: ", "half of window_messages", "groups.b.compaction.cooldown_min: ",
		`2:3: agent.compaction.groups: does nothing any more: the settings of a group are in groups, as "groups": {"ID": {"compaction": {…}}}`,
	} {
		if !strings.Contains(w, want) {
			t.Errorf("%q is not in %q", want, w)
		}
	}
	if n := strings.Count(w, "does nothing any more"); n != 5 {
		t.Errorf("%d warnings, want 5: %q", n, w)
	}
}
