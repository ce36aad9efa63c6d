package config

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"ebb/compaction"
)

// settingsOf loads keys of agent.compaction in an environment and returns the common settings.
func settingsOf(t *testing.T, keys string, vars ...string) compaction.Settings {
	t.Helper()
	cfg, err := parseConfig("f.jsonc", []byte(compactionFile(keys)), env(vars...), NeedNothing)
	if err != nil {
		t.Fatalf("loading %s: %v", keys, err)
	}
	s, _ := cfg.Policies()
	return s
}

func TestPoliciesKeepTheirOwnRules(t *testing.T) {
	t.Parallel()
	for name, own := range compaction.Policies {
		// null, zero and empty all leave what the policy is.
		for _, keys := range []string{
			"", `, "tail_messages": 0, "mode": "", "cooldown": "0s", "tail_share": 0`, `, "tail_messages": null, "mode": null, "cooldown": null, "tail_share": null`,
		} {
			if got := settingsOf(t, fmt.Sprintf(`"policy": %q%s`, name, keys)).Policy; got != own {
				t.Errorf("%s with %q is\n%+v\nwant\n%+v", name, keys, got, own)
			}
		}
	}
	s := settingsOf(t, "")
	if s.Policy.Name != "token_budget" || s.Window.Summary != 1200 || s.DailyTokens != 2_000_000 || !s.Enabled {
		t.Errorf("without a key the settings are %+v", s)
	}
	if got := settingsOf(t, `"policy": "offload"`).Window.Summary; got != 8000 {
		t.Errorf("the summary of offload aims at %d tokens, want its own 8000", got)
	}
}

func TestKeysSetRules(t *testing.T) {
	t.Parallel()
	p := settingsOf(t, `"policy": "sliding_window", "mode": "summary_plus_prune", "flush": "on", "tail_messages": 20, "tail_turns": 2,
		"tail_share": 0.3, "context_size": 50, "window_messages": 7, "hard_limit": 9, "cooldown": "5m", "max_messages": 60,
		"roll_up_tokens": 700, "roll_up_segments": 5, "cache_price": 0.2, "summary_tokens": 333`).Policy
	want := compaction.Policies["sliding_window"]
	want.Mode, want.Flush, want.TailMessages, want.TailTurns, want.TailShare = compaction.SummaryPlusPrune, true, 20, 2, 0.3
	want.ContextSize, want.Window, want.HardLimit, want.Cooldown, want.MaxMessages = 50, 7, 9, 5*time.Minute, 60
	want.RollUpTokens, want.RollUpSegments, want.CachePrice, want.SummaryTokens = 700, 5, 0.2, 333
	if p != want {
		t.Errorf("got\n%+v\nwant\n%+v", p, want)
	}
	if p := settingsOf(t, `"policy": "turns", "full_context_turns": 6, "cached_context_turns": 5, "flush": "off"`).Policy; p.TailTurns != 6 || p.Segment != 5 || p.Flush {
		t.Errorf("A 6 and B 5 give %d and %d, flush %t", p.TailTurns, p.Segment, p.Flush)
	}
	if p := settingsOf(t, `"mode": "offload_then_compact", "offload_at": 0.5`).Policy; p.OffloadOver != 2000 || p.OffloadAt != 0.5 || p.OffloadEnough != 15000 {
		t.Errorf("a policy without thresholds moves results out by %+v", p)
	}
	if p := settingsOf(t, `"policy": "offload", "mode": "summary_only"`).Policy; p.OffloadOver != 0 || p.Mode != compaction.SummaryOnly {
		t.Errorf("without the mode results are moved out all the same: %+v", p)
	}
}

// The names that older bots used mean the same as ours.
func TestOlderNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ older, ours string }{
		{
			`"policy": "sliding_window", "context_size": 70, "compression_window_size": 10, "tail_keep_size": 30, "compression_cooldown_sec": 600, "compression_hard_limit": 25`,
			`"policy": "sliding_window", "context_size": 70, "window_messages": 10, "tail_messages": 30, "cooldown": "10m", "hard_limit": 25`,
		},
		{`"policy": "archive", "keep_last": 5`, `"policy": "archive", "tail_messages": 5`},
		{`"policy": "turns", "fullContextTurns": 2, "cachedContextTurns": 6`, `"policy": "turns", "full_context_turns": 2, "cached_context_turns": 6`},
		{
			`"policy": "offload", "trigger_threshold": 9000, "target_tokens": 500, "preserve_count": 7`,
			`"policy": "offload", "offload_enough": 9000, "summary_tokens": 500, "tail_messages": 7`,
		},
		{`"policy": "offload", "targetTokens": 600, "preserveCount": 8`, `"policy": "offload", "summary_tokens": 600, "tail_messages": 8`},
	} {
		if got, want := settingsOf(t, tt.older), settingsOf(t, tt.ours); got != want {
			t.Errorf("%s is\n%+v\nwant\n%+v", tt.older, got, want)
		}
	}
	if got := mustParse(t, compactionFile(`"retryCount": 5`)).Agent.Compaction.Retries; got != 5 {
		t.Errorf("retryCount 5 is %d retries", got)
	}
	s, _ := mustParse(t, `{"agent": {"compaction": {"policy": "turns"}, "contextWindow": {"fullContextTurns": 2, "cachedContextTurns": 6}}}`).Policies()
	if s.Policy.TailTurns != 2 || s.Policy.Segment != 6 {
		t.Errorf("agent.contextWindow gives A %d and B %d, want 2 and 6", s.Policy.TailTurns, s.Policy.Segment)
	}
}

func TestGroupsStandOnTheCommonSettings(t *testing.T) {
	t.Parallel()
	cfg := mustParse(t, `{
		"groups": {"cidA==": {"compaction": {"policy": "turns", "cachedContextTurns": 5}}, "b.c": {"compaction": {"enabled": false, "auto_compact_threshold": 9000, "flush": null}}},
		"agent": {"compaction": {"auto_compact_threshold": 40000, "flush": "off"}, "contextWindow": {"fullContextTurns": 2}}}`)
	common, groups := cfg.Policies()
	if len(groups) != 2 || common.Policy.Name != "token_budget" {
		t.Fatalf("got %+v and %d groups", common, len(groups))
	}
	a, b := groups["cidA=="], groups["b.c"]
	if a.Policy.Name != "turns" || a.Policy.TailTurns != 2 || a.Policy.Segment != 5 || a.Policy.Flush || a.Window != common.Window {
		t.Errorf("the first group has %+v, want its policy with the common threshold and flush", a)
	}
	if b.Enabled || !b.Policy.Flush || b.Window.Threshold != 9000 || b.Policy.Name != "token_budget" {
		t.Errorf("the second group has %+v", b)
	}
	cfg = mustParse(t, groupsFile(`"a": {"compaction": {"reserve_tokens": 3000}}`))
	if got := cfg.LLM.Models[0].MaxOutput; got != 3000-answerMargin {
		t.Errorf("max_output is %d, which a group's reserve of 3000 has no room for", got)
	}
}

// The environment of older bots changes what their policy is by itself; the file has the last word.
func TestOlderEnvironment(t *testing.T) {
	t.Parallel()
	vars := []string{
		fullTurnsVariable, "7", cachedTurnsVariable, "2", enoughVariable, "9000", targetVariable, "500", preserveVariable, "6",
		modelVariable, "qwen-plus", retriesVariable, "5",
	}
	p := settingsOf(t, `"policy": "turns"`, vars...).Policy
	if p.TailTurns != 7 || p.Segment != 2 {
		t.Errorf("turns has A %d and B %d, want those of the environment", p.TailTurns, p.Segment)
	}
	if p := settingsOf(t, `"policy": "turns", "full_context_turns": 3`, vars...).Policy; p.TailTurns != 3 || p.Segment != 2 {
		t.Errorf("turns has A %d and B %d, want A of the file", p.TailTurns, p.Segment)
	}
	if p := settingsOf(t, `"policy": "offload"`, vars...).Policy; p.OffloadEnough != 9000 || p.SummaryTokens != 500 || p.TailMessages != 6 {
		t.Errorf("offload is %+v, want the environment's 9000, 500 and 6", p)
	}
	if got, want := settingsOf(t, "", vars...), settingsOf(t, ""); got != want {
		t.Errorf("the environment changes another policy: %+v", got)
	}
	for _, tt := range []struct {
		keys, model string
		retries     int
	}{
		{`"policy": "offload"`, "main", 5}, {`"policy": "offload", "retries": 2`, "main", 2}, {`"policy": "archive"`, "", 3},
	} {
		cfg, err := parseConfig("f.jsonc", []byte(compactionFile(tt.keys)), env(vars...), NeedNothing)
		if err != nil {
			t.Fatal(err)
		}
		if c := cfg.Agent.Compaction; c.Model != tt.model || c.Retries != tt.retries {
			t.Errorf("%s: model %q, %d retries, want %q and %d", tt.keys, c.Model, c.Retries, tt.model, tt.retries)
		}
	}
	for _, tt := range []struct{ name, value, want string }{
		{fullTurnsVariable, "four", `environment: PRIZM_FULL_CONTEXT_TURNS: got "four", want a whole number from 1 to`},
		{cachedTurnsVariable, "0", `environment: PRIZM_CACHED_CONTEXT_TURNS: got "0", want a whole number from 1 to`},
		{retriesVariable, "11", `environment: SYNAPSE_COMPACT_RETRY_COUNT: got "11", want a whole number from 1 to 10`},
		{modelVariable, "gpt", `environment: SYNAPSE_COMPACT_MODEL: got "gpt", want the name of a model in llm.models: "main"`},
	} {
		_, err := parseConfig("f.jsonc", []byte(compactionFile(`"policy": "offload"`)), env(tt.name, tt.value), NeedNothing)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s=%s: got %v, want %s", tt.name, tt.value, err, tt.want)
		}
	}
}

// A variable of an older bot that no conversation goes by is warned of, whatever it says.
func TestOlderEnvironmentWithoutEffect(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ keys, group, name, value, want string }{
		{`"policy": "archive"`, ``, modelVariable, "gpt", `environment: SYNAPSE_COMPACT_MODEL: does nothing without policy "offload"`},
		{`"policy": "archive"`, ``, enoughVariable, "9000", `environment: SYNAPSE_COMPACT_TRIGGER_THRESHOLD: does nothing without policy "offload"`},
		{`"policy": "offload"`, ``, fullTurnsVariable, "3", `environment: PRIZM_FULL_CONTEXT_TURNS: does nothing without policy "turns"`},
		{`"policy": "archive"`, `"policy": "offload"`, enoughVariable, "9000", ""},
		{`"policy": "archive"`, `"policy": "offload"`, retriesVariable, "5", `environment: SYNAPSE_COMPACT_RETRY_COUNT: does nothing without policy "offload"`},
		{`"policy": "offload"`, ``, modelVariable, "main", ""},
	} {
		cfg, err := parseConfig("f.jsonc", []byte(groupCompactionFile(tt.keys, tt.group)), env(tt.name, tt.value), NeedNothing)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(cfg.Warnings, "\n"); got != tt.want {
			t.Errorf("%s with %s: warnings %q, want %q", tt.keys, tt.name, got, tt.want)
		}
	}
}

func TestLoadRefusesCompaction(t *testing.T) {
	t.Parallel()
	for _, tt := range []errorCase{
		{"policy", compactionFile(`"policy": ^"x"`), `agent.compaction.policy: got "x", want "archive" or "balanced" or `},
		{"mode", compactionFile(`"mode": ^"x"`), `agent.compaction.mode: got "x", want "summary_only" or "summary_plus_prune" or "prune_only" or "offload_then_compact"`},
		{"flush", compactionFile(`"flush": ^"yes"`), `agent.compaction.flush: got "yes", want "auto" or "on" or "off"`},
		{"negative rule", compactionFile(`"tail_messages": ^-1`), "agent.compaction.tail_messages: got -1, want more than 0, or 0 for the policy's own"},
		{"negative cooldown", compactionFile(`"cooldown": ^"-1s"`), "agent.compaction.cooldown: got -1s, want more than 0s"},
		{"negative share", compactionFile(`"tail_share": ^-0.5`), "agent.compaction.tail_share: got -0.5, want more than 0"},
		{"share", compactionFile(`"tail_share": ^1.5`), "agent.compaction.tail_share: got 1.5, want "},
		{"daily", compactionFile(`"daily_tokens": ^-1`), "agent.compaction.daily_tokens: got -1, want 0 (no bound) or more"},
		{"null where there is no own", compactionFile(`"context_window": ^null`), "agent.compaction.context_window: got null, want a whole number"},
		{"tail over context", compactionFile(`"policy": "sliding_window", "tail_messages": ^80`), "agent.compaction.tail_messages: got 80, want less than context_size (75)"},
		{"tail over context, by an older name", compactionFile(`"policy": "sliding_window", "tail_keep_size": ^75`), "agent.compaction.tail_keep_size: got 75, want less than context_size (75)"},
		{"tail of the policy", compactionFile(`"policy": "sliding_window", "context_size": ^40`), `agent.compaction.tail_messages: got 40 (of policy "sliding_window"), want less than context_size (40)`},
		{"default over window", compactionFile(`"context_window": ^32000`), "agent.compaction.auto_compact_threshold: got 80000 (the default), want at most context_window (32000)"},
		{"window of reserve", compactionFile(`"auto_compact_threshold": 9000, "context_window": ^20001`), "agent.compaction.reserve_tokens: got 20000 (the default), want at most 18572: a conversation needs 1429 of context_window (20001)"},
		{"reserve of window", compactionFile(`"auto_compact_threshold": 9000, "context_window": 30000, "reserve_tokens": ^29000`), "agent.compaction.reserve_tokens: got 29000, want at most 28571"},
		{"share of a few tokens", compactionFile(`"max_history_share": ^0.001`), "agent.compaction.max_history_share: got 0.001, want at least 0.0079, which is 1000 tokens of context_window (128000)"},
		{"threshold of a few tokens", compactionFile(`"auto_compact_threshold": ^100`), "agent.compaction.auto_compact_threshold: got 100, want at least 1429: "},
		{"group's threshold of a few tokens", `{"groups": {"a": {"compaction": {"auto_compact_threshold": ^100}}}}`, "groups.a.compaction.auto_compact_threshold: got 100, want at least 1429: "},
		{"group's window", `{"agent": {"compaction": {"auto_compact_threshold": 70000}}, "groups": {"a": {"compaction": {"context_window": ^32000}}}}`, "groups.a.compaction.auto_compact_threshold: got 70000 (taken over from agent.compaction), want at most context_window (32000)"},
		{"older name first", compactionFile(`"preserve_count": 5, ^"tail_messages": 6`), "agent.compaction.tail_messages: the same as preserve_count, which is given in line 1"},
		{"both names", compactionFile(`"window_messages": 3, ^"compression_window_size": 4`), "agent.compaction.compression_window_size: the same as window_messages, which is given in line 1"},
		{"two older names", compactionFile(`"keep_last": 3, ^"preserve_count": 4`), "agent.compaction.preserve_count: the same as keep_last, which is given in line 1"},
		{"older name twice", compactionFile(`"keep_last": 3, ^"keep_last": 4`), "agent.compaction.keep_last: given twice, first in line 1"},
		{"older object", `{"agent": {"compaction": {"full_context_turns": 3}, "contextWindow": {"fullContextTurns": ^4}}}`, "agent.contextWindow.fullContextTurns: the same as agent.compaction.full_context_turns, which is given in line 1"},
		{"older object's keys", `{"agent": {"contextWindow": {^"turns": 4}}}`, "agent.contextWindow.turns: no such key, want one of cachedContextTurns, fullContextTurns"},
		{"older object's value", `{"agent": {"contextWindow": {"fullContextTurns": ^-4}}}`, "agent.contextWindow.fullContextTurns: got -4, want more than 0"},

		{"group's key", `{"groups": {"a": {"compaction": {^"deadline": 3}}}}`, "groups.a.compaction.deadline: no such key, want one of auto_compact_threshold,"},
		{"group's policy", `{"groups": {"cid+/=": {"compaction": {"policy": ^"x"}}}}`, `groups."cid+/=".compaction.policy: got "x", want "archive"`},
		{"group's reserve", `{"groups": {"a": {"compaction": {"reserve_tokens": ^128000}}}}`, "groups.a.compaction.reserve_tokens: got 128000, want less than context_window (128000)"},
		{"group's share", `{"groups": {"a": {"compaction": {"max_history_share": ^0}}}}`, "groups.a.compaction.max_history_share: got 0, want more than 0"},
		{"group's tail", `{"agent": {"compaction": {"tail_messages": 80}}, "groups": {"a": {"compaction": {"policy": ^"sliding_window"}}}}`, "groups.a.compaction.tail_messages: got 80 (taken over from agent.compaction), want less than context_size (75)"},
	} {
		t.Run(tt.name, tt.run)
	}
}

// All faults of the compaction section are reported at once, each at its place; an inherited one is reported once.
func TestAllCompactionFaultsAreReported(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"agent": {"compaction": {
"cache_price": 2,
"roll_up_segments": 1,
"offload_at": 1.2,
"tail_share": 2}}}`: `f.jsonc:2:16: agent.compaction.cache_price: got 2
f.jsonc:3:21: agent.compaction.roll_up_segments: got 1
f.jsonc:4:15: agent.compaction.offload_at: got 1.2
f.jsonc:5:15: agent.compaction.tail_share: got 2`,
		`{"agent": {"compaction": {
"policy": "x",
"max_history_share": 2}},
"groups": {
"a": {"compaction": {"policy": "archive", "roll_up_segments": 1}},
"b": {"compaction": {"tail_share": 3}},
"c": {"compaction": {"policy": "sliding_window", "tail_messages": 90}}}}`: `f.jsonc:2:11: agent.compaction.policy: got "x"
f.jsonc:3:22: agent.compaction.max_history_share: got 2
f.jsonc:5:63: groups.a.compaction.roll_up_segments: got 1
f.jsonc:6:36: groups.b.compaction.tail_share: got 3
f.jsonc:7:67: groups.c.compaction.tail_messages: got 90`,
		groupCompactionFile(`"tail_share": 4`, ""): "f.jsonc:1:41: agent.compaction.tail_share: got 4",
	} {
		_, err := parseConfig("f.jsonc", []byte(text), env(), NeedNothing)
		if err == nil {
			t.Errorf("%s was taken", text)
			continue
		}
		got, wants := strings.Split(err.Error(), "\n"), strings.Split(want, "\n")
		if len(got) != len(wants) {
			t.Errorf("got %d errors, want %d:\n%v", len(got), len(wants), err)
			continue
		}
		for i := range wants {
			if !strings.HasPrefix(got[i], wants[i]+", want ") {
				t.Errorf("line %d is %q, want %q", i+1, got[i], wants[i])
			}
		}
	}
}

// A config that was made in code has no file in which a number can't be NaN.
func TestNaNIsRefused(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*CompactionSettings){
		"max_history_share": func(s *CompactionSettings) { s.MaxHistoryShare = math.NaN() },
		"flush_ratio":       func(s *CompactionSettings) { s.FlushRatio = math.NaN() },
		"tail_share":        func(s *CompactionSettings) { s.TailShare = math.NaN() },
		"cache_price":       func(s *CompactionSettings) { s.CachePrice = math.NaN() },
	} {
		cfg := Default()
		set(&cfg.Agent.Compaction.CompactionSettings)
		if err := checkBuilt(cfg); err == nil || !strings.Contains(err.Error(), name+": got NaN") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A fault in a flag is reported by the flag's name, and the flag overrides every group.
func TestOverrides(t *testing.T) {
	t.Parallel()
	text := []byte(groupCompactionFile(`"policy": "archive"`, `"policy": "offload"`))
	set := func(name string) Override {
		return Override{Flag: "--policy", Key: "policy", Set: func(s *CompactionSettings) { s.Policy = name }}
	}
	cfg, err := parseConfig("f.jsonc", text, env(), NeedNothing, set("turns"))
	if err != nil {
		t.Fatal(err)
	}
	if common, groups := cfg.Policies(); common.Policy.Name != "turns" || groups["a"].Policy.Name != "turns" {
		t.Errorf("got %s and %s, want turns", common.Policy.Name, groups["a"].Policy.Name)
	}
	_, err = parseConfig("f.jsonc", text, env(), NeedNothing, set("x"))
	if err == nil || !strings.HasPrefix(err.Error(), `--policy: got "x", want "archive"`) {
		t.Errorf("got %v, want an error about the flag", err)
	}
}

func TestPrintShowsTheSettingsInForce(t *testing.T) {
	t.Parallel()
	cfg := mustParse(t, `{"agent": {"compaction": {"policy": "turns"}}, "groups": {"b": {"compaction": {"policy": "sliding_window"}}, "a": {"compaction": {"mode": "offload_then_compact"}}}}`)
	out, err := cfg.JSON()
	if err != nil {
		t.Fatal(err)
	}
	common, groups, found := strings.Cut(string(out), `"groups": {`)
	if !found {
		t.Fatalf("printed without groups:\n%s", out)
	}
	for _, want := range []string{`"mode": "summary_only"`, `"flush": "on"`, `"full_context_turns": 4`, `"cached_context_turns": 3`, `"summary_tokens": 1200`} {
		if !strings.Contains(common, want) {
			t.Errorf("%s is not in\n%s", want, common)
		}
	}
	a, b, _ := strings.Cut(groups, `"b": {`)
	for _, want := range []string{`"offload_over": 2000`, `"offload_at": 0.7`, `"full_context_turns": 4`} {
		if !strings.Contains(a, want) {
			t.Errorf("%s is not in\n%s", want, a)
		}
	}
	for _, want := range []string{`"cooldown": "15m"`, `"window_messages": 12`, `"full_context_turns": 0`, `"flush": "off"`} {
		if !strings.Contains(b, want) {
			t.Errorf("%s is not in\n%s", want, b)
		}
	}
}

func TestIdleRulesAreWarnedOf(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		`"cached_context_turns": 3`:                                  `test.jsonc:1:51: agent.compaction.cached_context_turns: does nothing without policy "turns"`,
		`"trigger_threshold": 9000`:                                  `test.jsonc:1:48: agent.compaction.trigger_threshold: does nothing without mode "offload_then_compact"`,
		`"trigger_threshold": 9000, "policy": "offload"`:             "",
		`"cache_price": 0.2`:                                         `test.jsonc:1:42: agent.compaction.cache_price: does nothing without policy "balanced"`,
		`"cache_price": 0.2, "policy": "balanced"`:                   "",
		`"policy": "sliding_window", "hard_limit": 9`:                `test.jsonc:1:69: agent.compaction.hard_limit: 9 is not more than window_messages (12): an answer waits for every compaction`,
		`"policy": "sliding_window", "window_messages": 31`:          `test.jsonc:1:74: agent.compaction.window_messages: 31 is not less than hard_limit (30): it does nothing`,
		`"policy": "sliding_window", "context_size": 51`:             `test.jsonc:1:71: agent.compaction.context_size: context_size (51) is less than tail_messages (40) + window_messages (12): an answer waits for every compaction`,
		`"policy": "sliding_window", "context_size": 52`:             "",
		`"policy": "sliding_window", "tail_keep_size": 70`:           `test.jsonc:1:73: agent.compaction.tail_keep_size: context_size (75) is less than tail_messages (70) + window_messages (12): an answer waits for every compaction`,
		`"policy": "archive", "max_messages": 60`:                    `test.jsonc:1:64: agent.compaction.max_messages: context_size (60) is not more than max_messages (60): an answer waits for every compaction`,
		`"policy": "archive", "context_size": 31`:                    "",
		`"policy": "sliding_window", "hard_limit": 0`:                `test.jsonc:1:69: agent.compaction.hard_limit: 0 does not turn the rule off, it stands for the policy's own, 30; say null, or leave the key out`,
		`"policy": "sliding_window", "compression_cooldown_sec": 0`:  `test.jsonc:1:83: agent.compaction.compression_cooldown_sec: 0 does not turn the rule off, it stands for the policy's own, 15m; say null, or leave the key out`,
		`"policy": "sliding_window", "hard_limit": null, "mode": ""`: "",
		`"policy": "archive", "hard_limit": 0`:                       "",
	} {
		if got := strings.Join(mustParse(t, compactionFile(keys)).Warnings, "\n"); got != want {
			t.Errorf("%s: warnings %q, want %q", keys, got, want)
		}
	}
}

func TestIdleRulesOfAGroupAreWarnedOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ keys, group, want string }{
		{`"cached_context_turns": 3`, `"policy": "turns"`, ""},
		{``, `"cache_price": 0.2`, `test.jsonc:1:78: groups.a.compaction.cache_price: does nothing without policy "balanced"`},
		{`"cache_price": 0.2`, `"policy": "balanced"`, ""},
		{`"tail_share": 0`, `"policy": "archive"`, `test.jsonc:1:41: agent.compaction.tail_share: 0 does not turn the rule off, it stands for the policy's own, 0.6; say null, or leave the key out`},
		{``, `"policy": "turns", "fullContextTurns": 0`, `test.jsonc:1:102: groups.a.compaction.fullContextTurns: 0 does not turn the rule off, it stands for the policy's own, 4; say null, or leave the key out`},
	} {
		if got := strings.Join(mustParse(t, groupCompactionFile(tt.keys, tt.group)).Warnings, "\n"); got != tt.want {
			t.Errorf("%s, %s: warnings %q, want %q", tt.keys, tt.group, got, tt.want)
		}
	}
}
