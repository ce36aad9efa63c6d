package config

import (
	"strings"
	"testing"
)

// Times that don't fit together are warned of, and defaults are not.
func TestTimesThatDoNotFitAreWarnedOf(t *testing.T) {
	t.Parallel()
	model := func(name, more string) string {
		return `{"name": "` + name + `", "base_url": "http://h/v1", "model": "m", "api_key": ""` + more + `}`
	}
	two := `"llm": {"models": [` + model("main", "") + `, ` + model("b", "") + `]}`
	for text, want := range map[string]string{
		`{` + two + `}`: "",
		`{"llm": {"models": [` + model("main", `, "timeout": "5m"`) + `]}}`:                                                      "",
		`{` + two + `, "agent": {"turn_timeout": "100s"}}`:                                                                       "timeout: 2m is more than 50s, its share of agent.turn_timeout (1m40s for 2 models): a longer answer is cut off",
		`{` + two + `, "agent": {"turn_timeout": "40s"}}`:                                                                        "first_token_timeout: 30s is more than 20s, its share of agent.turn_timeout (40s for 2 models): the next model is asked earlier",
		`{` + two + `, "agent": {"compaction": {"deadline": "40s"}}}`:                                                            "first_token_timeout: 30s is more than 20s, its share of agent.compaction.deadline",
		`{` + two + `, "agent": {"compaction": {"inline_deadline": "40s"}}}`:                                                     "first_token_timeout: 30s is more than 20s, its share of agent.compaction.inline_deadline",
		`{"llm": {"models": [` + model("main", `, "first_token_timeout": "3m", "timeout": "3m"`) + `, ` + model("b", ``) + `]}}`: "first_token_timeout: 3m is more than 2m30s, its share of agent.turn_timeout",
	} {
		got := strings.Join(mustParse(t, text).Warnings, "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: warned %q, want %q", text, got, want)
		}
	}
}

// A model without a key of its own is sent that of the environment only where it is of the same provider as the first.
func TestKeysStayWithTheirProvider(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, variable, key, warning string
	}{
		{`{"name": "b", "base_url": "https://first/v1", "model": "m"}`, "LLM_API_KEY=hunter2", "hunter2", ""},
		{`{"name": "b", "base_url": "https://second/v1", "model": "m"}`, "LLM_API_KEY=hunter2", "", "llm.models[1].api_key: no key is sent: second is another host"},
		{`{"name": "b", "base_url": "https://second/v1", "model": "m", "api_key": "${LLM_API_KEY}"}`, "LLM_API_KEY=hunter2", "hunter2", ""},
		{`{"name": "b", "base_url": "https://second/v1", "model": "m", "api_key": ""}`, "LLM_API_KEY=hunter2", "", ""},
		{`{"name": "b", "base_url": "https://first/v1", "model": "m"}`, "OTHER=1", "", "llm.models[1].api_key: no key is sent: LLM_API_KEY is not set"},
	} {
		text := `{"llm": {"models": [{"name": "main", "base_url": "https://first/v1", "model": "m", "api_key": "first"}, ` + tt.text + `]}}`
		name, value, _ := strings.Cut(tt.variable, "=")
		cfg, err := parseConfig("f.jsonc", []byte(text), env(name, value), NeedServe&^NeedDingTalk)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(cfg.Warnings, "\n")
		if cfg.LLM.Models[1].APIKey.Reveal() != tt.key || (tt.warning == "") != (got == "") || !strings.Contains(got, tt.warning) {
			t.Errorf("%s: key %q, warned %q", tt.text, cfg.LLM.Models[1].APIKey.Reveal(), got)
		}
	}
}

func TestAnAddressOfAFunctionIsRefused(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"/chat/completions", "/chat/completions/"} {
		_, err := parseConfig("f.jsonc", []byte(`{"llm": {"models": [{"base_url": "https://h/v1`+end+`", "model": "m", "api_key": ""}]}}`), env(), NeedNothing)
		if err == nil || !strings.Contains(err.Error(), "llm.models[0].base_url: got an address that ends in /chat/completions") {
			t.Errorf("%s: %v", end, err)
		}
	}
}

// The error for a key that is nearly right names the right one.
func TestNearKeysAreSuggested(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"dingtalk": {"clientid": "a"}}`:                     `dingtalk.clientid: no such key, did you mean "client_id"?`,
		`{"dingtalk": {"clientSecret": "a"}}`:                 `did you mean "client_secret"?`,
		`{"agent": {"compaction": {"Policy": "turns"}}}`:      `agent.compaction.Policy: no such key, did you mean "policy"?`,
		`{"agent": {"compaction": {"dayly_tokens": 1}}}`:      `did you mean "daily_tokens"?`,
		`{"agent": {"timeout": "1m"}}`:                        `agent.timeout: no such key, want one of`,
		`{"llm": {"models": [{"name": "main", "tmp": "x"}]}}`: `no such key, want one of`,
	} {
		_, err := parseConfig("f.jsonc", []byte(text), env(), NeedNothing)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Without llm.default the model named main answers, and the first one where none has that name.
func TestDefaultModel(t *testing.T) {
	t.Parallel()
	model := func(name string) string {
		return `{"name": "` + name + `", "base_url": "https://h/v1", "model": "m", "api_key": ""}`
	}
	for text, want := range map[string]string{
		`"models": [` + model("fast") + `]`:                                             "fast",
		`"models": [` + model("fast") + `, ` + model("large") + `]`:                     "fast",
		`"models": [` + model("fast") + `, ` + model("main") + `]`:                      "main",
		`"default": "large", "models": [` + model("fast") + `, ` + model("large") + `]`: "large",
		`"max_concurrent": 4`: "main",
	} {
		cfg, err := parseConfig("f.jsonc", []byte(`{"llm": {`+text+`}}`), env(), NeedNothing)
		if err != nil || cfg.LLM.Default != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	_, err := parseConfig("f.jsonc", []byte(`{"llm": {"default": "main", "models": [`+model("fast")+`]}}`), env(), NeedNothing)
	if err == nil || !strings.Contains(err.Error(), `llm.default: got "main", want the name of a model in llm.models: "fast"`) {
		t.Errorf("a default that is no model: %v", err)
	}
}
