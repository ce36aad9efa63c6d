package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Odd configurations that can work load, with or without warnings. An installation that has one must start after an update. Other programs have
// servers of their own in the place of DingTalk and the model.
func TestOddConfigurationsLoad(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		// Access: closed doors.
		`{"access": {"people": []}}`, `{"access": {"people": [], "groups": []}}`, `{"access": {"deny": ["*"]}}`,
		`{"agent": {"admins": ["boss"]}, "access": {"deny": ["*", "boss"], "people": ["boss", "*"]}}`, `{"access": {"people": ["` + longID + `"], "groups": ["$:LWCP_v1:$a=="]}}`,
		`{"groups": {"$:group": {"tools": [], "admins": []}}}`,

		// Secrets of tests.
		dingtalkFile(`"client_id": "test", "client_secret": "test"`), dingtalkFile(`"client_id": "xxxx", "client_secret": "your-secret"`), modelFile(`"api_key": "sk-xxxx"`),
		modelFile(`"api_key": "xxxx"`), modelFile(`"api_key": "your-key"`), modelFile(`"api_key": "..."`), modelFile(`"api_key": "<key>"`), modelFile(`"api_key": "undefined"`),
		modelFile(`"api_key": "EMPTY"`), modelFile(`"api_key": "sk-***"`), `{"admin": {"token": "changeme", "viewer_token": "t"}}`, `{"admin": {"token": " a token "}}`,
		embeddingsFile(`"api_key": "test key", "model": "m", "base_url": "http://127.0.0.1:9/v1"`), embeddingsFile(`"api_key": "xxxx"`),

		// Texts that look like variables where none is meant.
		`{"llm": {"currency": "$US"}}`, agentFile(`"prompt": "{{persona}}"`), agentFile(`"prompt": "$HOME"`), groupsFile(`"a": {"prompt": "%NAME%"}`), agentFile(`"name": "{EBB}"`),
		agentFile(`"admins": ["$staff01"]`), modelFile(`"params": {"user": "$USER", "template": "{{ x }}"}`), `{"llm": {"models": [{"name": " main ", "base_url": "https://h/v1", "model": "env:MODEL"}, {"name": "b", "base_url": "https://h/v1", "model": "/data/` + strings.Repeat("m", 300) + `"}]}}`,

		// Addresses.
		modelAt(`"http://127.0.0.1:18080"`), modelAt(`"http://localhost:8080/models"`), modelAt(`"https://x.services.ai.azure.com/models"`), modelAt(`"http://localhost:8080/messages/"`),
		modelAt(`"http://localhost/embeddings"`), modelAt(`"https://api.perplexity.ai"`), modelAt(`"http://[::1]:8080/a/b/c"`), modelAt(`"http://[fe80::1%25eth0]/v1"`), modelAt(`"https://模型.例子/v1"`),
		modelAt(`"https://xn--fsq.example/v1/"`), modelAt(`"http://:8080/v1"`), modelAt(`"http://model_server:80/$5/v1"`),
		dingtalkFile(`"api_base": "http://127.0.0.1:9000/robot/v1.0", "oapi_base": "http://127.0.0.1:9000/topapi"`), dingtalkFile(`"api_base": "http://proxy/dingtalk/robot", "oapi_base": "http://proxy:8080"`),
		`{"database": {"url": "host=db user=ebb dbname=ebb "}}`, `{"database": {"url": "postgres://u:p%24ECRET@h:5433/d?sslmode=disable"}}`,
		`{"database": {"pooler": "transaction", "url": "postgres://h/d", "direct_url": "postgres://h/d"}}`, `{"admin": {"listen": ":0"}}`, `{"admin": {"listen": "bücher:8080"}}`,

		// Limits and times, tiny and huge.
		`{"agent": {"limits": {"tokens_per_day": 1, "person_tokens_per_day": 1000000}, "compaction": {"daily_tokens": 5}}, "groups": {"a": {"compaction": {"daily_tokens": 7}}}}`,
		agentFile(`"limits": {"person_turns_per_minute": 1, "group_turns_per_minute": 1, "unidentified_turns_per_hour": 1000, "compactions_per_day": 1}`),
		agentFile(`"turn_timeout": "1s", "stale_after": "1ms", "busy_note": "1ms", "gather": "0s"`), agentFile(`"turn_timeout": "24h"`), agentFile(`"turn_timeout": "5s", "compaction": {"inline_deadline": "1m", "deadline": "1s"}`),
		compactionFile(`"deadline": "12h", "inline_deadline": "13h"`), modelFile(`"timeout": "20s", "first_token_timeout": "30s"`), modelFile(`"first_token_timeout": "1h"`), modelFile(`"timeout": "50ms"`),
		memoryFile(`"recall_timeout": "1ms"`), memoryFile(`"recall_timeout": "2m"`), `{"cluster": {"lease_ttl": "1h"}}`, `{"retention": {"events": "1s", "audit": "1ms"}}`,
		`{"shutdown": {"drain": "1ms", "flush": "1ms"}}`, `{"database": {"max_conns": 2}}`, agentFile(`"prompt": "` + strings.Repeat("说明", 40_000) + `"`),

		// Names.
		agentFile(`"name": "@Ebb "`), agentFile(`"name": "` + strings.Repeat("你", 300) + `"`),
		dingtalkFile(`"reply": "card", "card_template_id": "my template/1", "card_content_key": "msg content"`), dingtalkFile(`"picture_hosts": [], "replies_per_minute": 1000000`),
	} {
		mustParse(t, text)
	}
}

// A variable or file may hold any secret.
func TestValuesOfVariablesMayLookLikeVariables(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("$ECRET2026"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`{"database": {"url": "${V}"}}`, `{"database": {"url": "postgres://ebb:${W}@db/ebb"}}`, `{"database": {"url": "postgres://ebb:${file:` + file + `}@db/ebb"}}`, "{}",
		modelFile(`"api_key": "${W}"`), `{"admin": {"token": "${file:` + file + `}"}}`, modelAt(`"https://h/${W}/v1"`),
	} {
		url := "postgres://ebb:$ECRET2026@db/ebb"
		if _, err := parseConfig("f.jsonc", []byte(text), env("V", url, "W", "$ECRET2026", "DATABASE_URL", url, "ADMIN_TOKEN", "%HUNTER2%", "LLM_API_KEY", "{{hunter2}}"), NeedNothing); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The reference file is copied and changed in one place.
func TestReferenceFileWithOneChangeLoads(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile("../../config.jsonc")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"timeout": "120s"`, `"timeout": "20s"`}, {`"turn_timeout": "5m"`, `"turn_timeout": "5s"`}, {`"tokens_per_day": 0`, `"tokens_per_day": 1`}, {`"people": ["*"]`, `"people": []`},
		{`"deny": []`, `"deny": ["*"]`},
	} {
		text := strings.Replace(string(whole), change[0], change[1], 1)
		if text == string(whole) {
			t.Errorf("the file has no %s", change[0])
		}
		cfg, err := parseConfig("f.jsonc", []byte(text), env(), NeedNothing)
		if err != nil {
			t.Errorf("%s: %v", change[1], err)
		} else if m := cfg.LLM.Models[0]; m.FirstToken > m.Timeout {
			t.Errorf("%s: the first token has %s of %s", change[1], m.FirstToken, m.Timeout)
		}
	}
}
