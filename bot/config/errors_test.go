package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"ebb/bot/config/strict"
)

// errorCase is a file with one mistake: ^ stands before the place that the error has to name, want is how its message starts.
type errorCase struct{ name, text, want string }

func (c errorCase) run(t *testing.T) {
	t.Parallel()
	before, after, marked := strings.Cut(c.text, "^")
	if !marked {
		t.Fatal("the case does not mark the place")
	}
	_, err := parseConfig("f.jsonc", []byte(before+after), env(), NeedNothing)
	if err == nil {
		t.Fatal("no error")
	}
	line := 1 + strings.Count(before, "\n")
	col := 1 + utf8.RuneCountInString(before[strings.LastIndex(before, "\n")+1:])
	if want := fmt.Sprintf("f.jsonc:%d:%d: %s", line, col, c.want); !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error shows a secret: %v", err)
	}
}

// compactionFile is a config with these keys of agent.compaction.
func compactionFile(keys string) string { return fmt.Sprintf(`{"agent": {"compaction": {%s}}}`, keys) }

// groupCompactionFile is a config with these keys of agent.compaction, and these of the compaction of group a.
func groupCompactionFile(keys, group string) string {
	return fmt.Sprintf(`{"agent": {"compaction": {%s}}, "groups": {"a": {"compaction": {%s}}}}`, keys, group)
}

// modelFile is a config with one model that has these keys beside the required ones.
func modelFile(keys string) string {
	return fmt.Sprintf(`{"llm": {"models": [{"name": "main", "base_url": "http://h/v1", "model": "m", %s}]}}`, keys)
}

func TestLoadRefusesForm(t *testing.T) {
	t.Parallel()
	for _, tt := range []errorCase{
		{"empty file", "^", "got an empty file, want an object"},
		{"not an object", "^[]", "got a list, want an object"},
		{"syntax", "{\n  \"agent\": {\"name\": ^oops}}", "invalid literal: oops"},
		{"bad escape", `{"admin": {"token": ^"hunter2\q"}}`, "invalid string"},
		{"not UTF-8", "{\n\"log\": \"^\xff\"}", "got a byte that is not UTF-8"},
		{"unknown key", "{\n  \"agent\": {\n    ^\"nme\": \"x\"}}", `agent.nme: no such key, did you mean "name"?`},
		{"unlike any key", "{\n  \"agent\": {\n    ^\"xyz\": \"x\"}}", "agent.xyz: no such key, want one of admins, busy_note, compaction,"},
		{"other letter case", `{^"Agent": {}}`, `Agent: no such key, did you mean "agent"?`},
		{"key with a line break", `{^"a\nb": 1}`, `"a\nb": no such key`},
		{"repeated key", "{\"log\": {\"level\": \"info\",\n ^\"level\": \"warn\"}}", "log.level: given twice, first in line 1"},
		{"repeated by an escape", `{"log": {}, ^"l\u006fg": {}}`, "log: given twice"},
		{"column in characters", `{/* 中文 */ ^"agnt": 1}`, "agnt: no such key"},
		{"number for text", `{"agent": {"name": ^3}}`, "agent.name: got a number, want a string"},
		{"text for number", `{"agent": {"max_merged": ^"3"}}`, "agent.max_merged: got a string, want a whole number"},
		{"fraction", `{"agent": {"max_merged": ^1.5}}`, "agent.max_merged: got 1.5, want a whole number"},
		{"number beyond bounds", compactionFile(`"context_window": ^99999999999999999999`), "agent.compaction.context_window: got 99999999999999999999, want a whole number"},
		{"float beyond bounds", compactionFile(`"flush_ratio": ^1e999`), "agent.compaction.flush_ratio: got 1e999, want a number"},
		{"text for a switch", `{"database": {"migrate": ^"yes"}}`, "database.migrate: got a string, want true or false"},
		{"null", `{"log": ^null}`, "log: got null, want an object"},
		{"list for text", `{"agent": {"name": ^[]}}`, "agent.name: got a list, want a string"},
		{"text for a list", `{"agent": {"admins": ^"me"}}`, "agent.admins: got a string, want a list"},
		{"duration without unit", `{"shutdown": {"drain": ^"20"}}`, `shutdown.drain: got "20", want a duration such as "20s"`},
		{"endless duration", `{"shutdown": {"drain": ^1e300}}`, "shutdown.drain: got 1e300, want a duration"},
		{"negative duration", `{"shutdown": {"flush": ^"-1s"}}`, "shutdown.flush: got -1s, want more than 0s"},
		{"bad variable", `{"agent": {"name": ^"${"}}`, "agent.name: got ${ without }"},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestLoadRefusesValues(t *testing.T) {
	t.Parallel()
	for _, tt := range []errorCase{
		{"card without a template", `{"dingtalk": {"reply": "card", "card_template_id": ^""}}`, `dingtalk.card_template_id: is empty, want the id of a card template, because dingtalk.reply is "card"`},
		{"card stream", `{"dingtalk": {"card_stream": ^"sometimes"}}`, `dingtalk.card_stream: got "sometimes", want "auto" or "always" or "never"`},
		{"reaction", `{"dingtalk": {"reaction": ^"thinking"}}`, `dingtalk.reaction: got "thinking", want "off" or "on"`},
		{"card interval", `{"dingtalk": {"card_interval": ^"10ms"}}`, `dingtalk.card_interval: got 10ms, want 100ms to 1m`},
		{"reply", `{"dingtalk": {"reply": ^"fax"}}`, `dingtalk.reply: got "fax", want "markdown"`},
		{"connections", `{"dingtalk": {"connections": ^"two"}}`, `dingtalk.connections: got "two", want "all" or "one"`},
		{"keepalive low", `{"dingtalk": {"keepalive": ^14}}`, "dingtalk.keepalive: got 14s, want 15s to 30s"},
		{"keepalive high", `{"dingtalk": {"keepalive": ^"31s"}}`, "dingtalk.keepalive: got 31s, want 15s to 30s"},
		{"a picture's address", `{"dingtalk": {"picture_hosts": ["a.example", ^"https://a.example/x"]}}`, `dingtalk.picture_hosts[1]: got "https://a.example/x", want a host such as "img.example.com", or "*.example.com"`},
		{"replies", `{"dingtalk": {"replies_per_minute": ^-1}}`, "dingtalk.replies_per_minute: got -1, want 0 (no limit) or more"},
		{"API calls", `{"dingtalk": {"api_calls_per_month": ^-1}}`, "dingtalk.api_calls_per_month: got -1, want 0 (no bound) or more"},
		{"URL", `{"dingtalk": {"api_base": ^"api.dingtalk.com"}}`, `dingtalk.api_base: got "api.dingtalk.com", want the URL of a server`},
		{"URL with a password", `{"dingtalk": {"api_base": ^"https://u:hunter2@h"}}`, "dingtalk.api_base: got a user name in the URL"},

		{"no model", `{"llm": {"models": ^[]}}`, "llm.models: got none, want at least one model"},
		{"no such model", `{"llm": {"default": ^"x"}}`, `llm.default: got "x", want the name of a model in llm.models: "main"`},
		{"no currency", `{"llm": {"currency": ^"CNY per token"}}`, `llm.currency: got "CNY per token", want a code such as CNY or a sign such as ¥`},
		{"no calls of the model", `{"llm": {"max_concurrent": ^0}}`, "llm.max_concurrent: got 0, want 1 to 10000"},
		{"model without endpoint", `{"llm": {"models": [^{"name": "main", "model": "m"}]}}`, "llm.models[0].base_url: is empty, want the URL of a server"},
		{"temperature", modelFile(`"temperature": ^2.1`), "llm.models[0].temperature: got 2.1, want 0 to 2, or null"},
		{"max_output", modelFile(`"max_output": ^0`), "llm.models[0].max_output: got 0, want more than 0"},
		{"price", modelFile(`"price_in": ^-1`), "llm.models[0].price_in: got -1, want 0 or more"},
		{"price of cached tokens", modelFile(`"price_cached": ^-1`), "llm.models[0].price_cached: got -1, want 0 or more"},
		{"timeout", modelFile(`"timeout": ^0`), "llm.models[0].timeout: got 0s, want more than 0s"},
		{"retries", modelFile(`"retries": ^11`), "llm.models[0].retries: got 11, want 0 to 10"},
		{"name twice", `{"llm": {"models": [{"name": "main", "base_url": "http://h/v1", "model": "m"},` + "\n" + `{"name": ^"main", "base_url": "http://h/v1", "model": "m"}]}}`, `llm.models[1].name: got "main", which is also the name of llm.models[0]`},

		{"language", `{"agent": {"language": ^"fr"}}`, `agent.language: got "fr", want "zh" or "en"`},
		{"scope", `{"agent": {"session_scope": ^"all"}}`, `agent.session_scope: got "all", want "group" or "member"`},
		{"zone", `{"agent": {"timezone": ^"Mars"}}`, `agent.timezone: got "Mars", want the name of a time zone`},
		{"quiet hours", `{"schedule": {"quiet_hours": ^"night"}}`, `schedule.quiet_hours: got "night", want hours such as "22:00-08:00", or "" for none`},
		{"no zone", `{"agent": {"timezone": ^""}}`, `agent.timezone: got "", want the name of a time zone`},
		{"merged", `{"agent": {"max_merged": ^0}}`, "agent.max_merged: got 0, want 1 to 100"},
		{"key with Bearer", modelFile(`"api_key": ^"Bearer hunter2"`), "llm.models[0].api_key: got a text with blanks or other letters than ASCII, want the key of the endpoint alone"},
		{"key with a line break", modelFile(`"api_key": ^"hunter2\n"`), "llm.models[0].api_key: got a text with blanks"},
		{"key as an example has it", modelFile(`"api_key": ^"sk-你的密钥"`), "llm.models[0].api_key: got a text with blanks"},
		{"name of the app", `{"dingtalk": {"client_id": ^"我的应用"}}`, "dingtalk.client_id: got a text with blanks"},
		{"secret with a blank", `{"dingtalk": {"client_secret": ^" hunter2"}}`, "dingtalk.client_secret: got a text with blanks"},
		{"admin as a mention", `{"agent": {"admins": [^"@manager1"]}}`, `agent.admins[0]: got "@manager1", want a staff id`},
		{"admin", `{"agent": {"admins": ["a", ^""]}}`, "agent.admins[1]: is empty, want a staff id"},

		{"limit", `{"agent": {"limits": {"tokens_per_day": ^-1}}}`, "agent.limits.tokens_per_day: got -1, want 0 (no limit) or more"},
		{"command", `{"access": {"commands": {"compac": ^"admin"}}}`, `access.commands.compac: no such command, did you mean "compact"?`},
		{"strange command", `{"access": {"commands": {"dance": ^"admin"}}}`, "access.commands.dance: no such command, want one of approve, compact, export,"},
		{"right", `{"access": {"commands": {"compact": ^"boss"}}}`, `access.commands.compact: got "boss", want "anyone" or "owner" or "admin"`},
		{"command twice", `{"access": {"commands": {"compact": "admin", "压缩": ^"owner"}}}`, `access.commands."压缩": the same command as "compact", want one of the two`},
		{"empty id", `{"access": {"deny": ["a", ^""]}}`, `access.deny[1]: is empty, want a staff id`},
		{"one id for a list", `{"access": {"groups": ^"*"}}`, "access.groups: got a string, want a list"},

		{"reserve", compactionFile(`"reserve_tokens": ^200000`), "agent.compaction.reserve_tokens: got 200000, want less than context_window (128000)"},
		{"no reserve", compactionFile(`"reserve_tokens": ^0`), "agent.compaction.reserve_tokens: got 0, want more than 0"},
		{"window", compactionFile(`"context_window": ^-1, "auto_compact_threshold": -1, "reserve_tokens": -2`), "agent.compaction.context_window: got -1, want more than 0"},
		{"threshold", compactionFile(`"auto_compact_threshold": ^0`), "agent.compaction.auto_compact_threshold: got 0, want more than 0"},
		{"threshold over window", compactionFile(`"auto_compact_threshold": ^128001`), "agent.compaction.auto_compact_threshold: got 128001, want at most context_window (128000)"},
		{"share 0", compactionFile(`"max_history_share": ^0`), "agent.compaction.max_history_share: got 0, want more than 0 and at most 1"},
		{"share 1.01", compactionFile(`"max_history_share": ^1.01`), "agent.compaction.max_history_share: got 1.01, want more than 0 and at most 1"},
		{"ratio", compactionFile(`"flush_ratio": ^-0.1`), "agent.compaction.flush_ratio: got -0.1, want more than 0 and less than 1"},
		{"ratio at the threshold", compactionFile(`"flush_ratio": ^1`), "agent.compaction.flush_ratio: got 1, want more than 0 and less than 1"},
		{"no retries", compactionFile(`"retries": ^0`), "agent.compaction.retries: got 0, want 1 to 10"},
		{"no drain", `{"shutdown": {"drain": ^0}}`, "shutdown.drain: got 0s, want more than 0s"},
		{"no flush", `{"shutdown": {"drain": 1, "flush": ^"0s"}}`, "shutdown.flush: got 0s, want more than 0s"},
		{"inline deadline", compactionFile(`"inline_deadline": ^0`), "agent.compaction.inline_deadline: got 0s, want more than 0s"},
		{"summary model", compactionFile(`"model": ^"x"`), `agent.compaction.model: got "x", want empty (llm.default) or the name of a model in llm.models: "main"`},

		{"lease", `{"cluster": {"lease_ttl": ^0.5}}`, "cluster.lease_ttl: got 500ms, want at least 1s"},
		{"replica", `{"cluster": {"replica_id": ^"a b"}}`, `cluster.replica_id: got "a b", want at most 63 letters`},
		{"database", `{"database": {"url": ^"hunter2"}}`, "database.url: got a text that is no address, want postgres://"},
		{"password with a slash", `{"database": {"url": ^"postgres://u:hunter2/x@h/d"}}`, "database.url: got an address with a / in its user or password, want postgres://user:password@host:5432/name, with / @ # ? of a password as %2F"},
		{"password with an @", `{"database": {"url": "postgres://h/d", "direct_url": ^"postgres://u:x@hunter2@h/d"}}`, "database.direct_url: got an address with a @ in its user or password, want postgres://"},
		{"no folder", `{"database": {"dir": ^""}}`, "database.dir: is empty, want a folder"},
		{"pool", `{"database": {"max_conns": ^1}}`, "database.max_conns: got 1, want 2 to 1000"},
		{"listen", `{"admin": {"listen": ^"8080"}}`, `admin.listen: got "8080", want host:port`},
		{"port", `{"admin": {"listen": ^":65536"}}`, `admin.listen: got ":65536", want host:port`},
		{"level", `{"log": {"level": ^"loud"}}`, `log.level: got "loud", want "trace" or`},
		{"format", `{"log": {"format": ^"xml"}}`, `log.format: got "xml", want "auto" or`},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestLoadReportsEverything(t *testing.T) {
	t.Parallel()
	_, err := parseConfig("f.jsonc", []byte(`{
  "log": {"level": "loud", "colour": true},
  "agent": {"max_merged": "x", "compaction": {"reserve_tokens": 0, "flush_ratio": 2}},
  "shutdown": {"drain": "soon"},
}`), credentials(), NeedServe)
	want := `f.jsonc:2:20: log.level: got "loud"
f.jsonc:2:28: log.colour: no such key
f.jsonc:3:27: agent.max_merged: got a string
f.jsonc:3:65: agent.compaction.reserve_tokens: got 0
f.jsonc:3:83: agent.compaction.flush_ratio: got 2
f.jsonc:4:25: shutdown.drain: got "soon"`
	if err == nil {
		t.Fatal("no error")
	}
	got, wants := strings.Split(err.Error(), "\n"), strings.Split(want, "\n")
	if len(got) != len(wants) {
		t.Fatalf("got %d errors, want %d:\n%v", len(got), len(wants), err)
	}
	for i := range wants {
		if !strings.HasPrefix(got[i], wants[i]) {
			t.Errorf("line %d is %q, want %q", i+1, got[i], wants[i])
		}
	}
}

func TestNeed(t *testing.T) {
	t.Parallel()
	reference, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	id, secret, key := "set DINGTALK_CLIENT_ID in", "set DINGTALK_CLIENT_SECRET in", "set LLM_API_KEY in"
	for _, tt := range []struct {
		name, text string
		need       Need
		want       []string
	}{
		{"serve", string(reference), NeedServe, []string{id, secret, key}},
		{"serve with an empty file", "{}", NeedServe, []string{id, secret, key}},
		{"chat", string(reference), NeedLLM, []string{key}},
		{"migrate", string(reference), NeedNothing, nil},
		{"own variable", `{"dingtalk": {"client_id": "a", "client_secret": "${MINE}"}}`, NeedDingTalk, []string{"set MINE in"}},
		{"own models", `{"llm": {"models": [{"name": "main", "base_url": "http://h/v1", "model": "m"}]}}`, NeedLLM, nil},
		{"empty in the file", `{"dingtalk": {"client_id": "", "client_secret": "b"}}`, NeedDingTalk, []string{"client_id: is empty, want the Client ID"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parseConfig("f.jsonc", []byte(tt.text), env(), tt.need)
			var config *strict.Error
			if !errors.As(err, &config) {
				config = &strict.Error{}
			}
			if len(config.Fields) != len(tt.want) {
				t.Fatalf("got %v, want %d errors", err, len(tt.want))
			}
			for i, want := range tt.want {
				if got := config.Fields[i].Error(); !strings.Contains(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
}

func TestHugeFileIsRefused(t *testing.T) {
	t.Parallel()
	const size = 256 << 10 // the bound
	for _, text := range []string{strings.Repeat(" ", size+1), strings.Repeat("[", size), strings.Repeat(`{"a":`, size/5)} {
		_, err := parseConfig("f.jsonc", []byte(text), env(), NeedNothing)
		if err == nil || len(err.Error()) > 500 {
			t.Errorf("%.10q...: got %.500v, want a short error", text, err)
		}
	}
}

// A number or a switch may come from the environment, in quotes, which has nothing but texts.
func TestNumbersFromTheEnvironment(t *testing.T) {
	t.Parallel()
	vars := env("N", " 3000 ", "SHARE", "0.25", "OFF", "false", "WORD", "hunter2")
	cfg, err := parseConfig("f.jsonc", []byte(`{"agent": {"merge_pending": "${OFF}", "compaction":
		{"daily_tokens": "${DT:-1000}", "reserve_tokens": "${N}", "max_history_share": "${SHARE}"}}, "groups": {"a": {"compaction": {"daily_tokens": "${N}"}}}}`), vars, NeedNothing)
	if err != nil {
		t.Fatal(err)
	}
	c := cfg.Agent.Compaction
	if cfg.Agent.MergePending || c.DailyTokens != 1000 || c.ReserveTokens != 3000 || c.MaxHistoryShare != 0.25 || cfg.Groups["a"].Compaction.DailyTokens != 3000 {
		t.Errorf("got %+v", c)
	}
	for keys, want := range map[string]string{
		`"daily_tokens": "1000"`:       "agent.compaction.daily_tokens: got a string, want a whole number",
		`"daily_tokens": "${DT}"`:      "agent.compaction.daily_tokens: is empty, want a whole number: set DT in the environment",
		`"daily_tokens": "${WORD}"`:    "agent.compaction.daily_tokens: got another text from the environment, want a whole number",
		`"tail_share": "${WORD}"`:      "agent.compaction.tail_share: got another text from the environment, want a number",
		`"enabled": "${N}"`:            "agent.compaction.enabled: got another text from the environment, want true or false",
		`"daily_tokens": "${DT:-1e99"`: "agent.compaction.daily_tokens: got ${ without }",
	} {
		_, err := parseConfig("f.jsonc", []byte(compactionFile(keys)), vars, NeedNothing)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s", keys, err, want)
		}
	}
}
