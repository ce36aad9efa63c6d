package config

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func oneModel(params string) string {
	return `{"llm": {"models": [{"name": "main", "base_url": "http://h/v1", "model": "m", "api_key": "", "params": ` + params + `}]}}`
}

// A provider's own fields are any JSON. Texts may come from the environment.
func TestParamsAreAnyJSON(t *testing.T) {
	t.Parallel()
	cfg, err := parseConfig("f.jsonc", []byte(oneModel(`{"enable_search": true, "top_k": 20, "seed": 12345678901234567890, "x": null, "stop": ["a", 1.5],
		"thinking": {"type": "${KIND}"}, "user_key": "${KEY}"}`)), env("KIND", "enabled", "KEY", "hunter2"), NeedNothing)
	if err != nil {
		t.Fatal(err)
	}
	want := Params{
		"enable_search": true, "top_k": json.Number("20"), "seed": json.Number("12345678901234567890"), "x": nil, "stop": []any{"a", json.Number("1.5")},
		"thinking": map[string]any{"type": "enabled"}, "user_key": "hunter2",
	}
	if got := cfg.LLM.Models[0].Params; !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v", got)
	}
	shown, err := cfg.JSON()
	if err != nil || strings.Contains(string(shown), "hunter2") || !strings.Contains(string(shown), `"user_key": "***"`) || !strings.Contains(string(shown), "12345678901234567890") {
		t.Errorf("printed %s, %v", shown, err)
	}
	if again, err := parseConfig("f.jsonc", shown, env(), NeedNothing); err != nil || again.LLM.Models[0].Params["enable_search"] != true {
		t.Errorf("the printed config: %v", err)
	}
}

// Fields that Ebb sets are refused with the key that is there for them.
func TestParamsOfEbbAreRefused(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		`{"max_tokens": 5}`:             `llm.models[0].params.max_tokens: is set by Ebb itself, want the key max_output`,
		`{"stream": false}`:             `llm.models[0].params.stream: is set by Ebb itself in each request`,
		`{"Temperature": 1}`:            `llm.models[0].params.Temperature: is set by Ebb itself, want the key temperature`,
		`{"extra_body": {"top_k": 1}}`:  `llm.models[0].params.extra_body: is set by Ebb itself, want its fields here`,
		`{"messages": []}`:              `llm.models[0].params.messages: is set by Ebb itself, want agent.prompt`,
		`{"top_k": 1, "top_k": 2}`:      `llm.models[0].params.top_k: given twice`,
		`{"a": {"b": 1, "b": 2}}`:       `llm.models[0].params.a.b: given twice`,
		`[]`:                            `llm.models[0].params: got a list, want an object`,
		`"top_k"`:                       `llm.models[0].params: got a string, want an object`,
		`{"top_k": "${UNCLOSED"}`:       `llm.models[0].params.top_k: `,
		`{"n": 2, "tool_choice": "no"}`: `llm.models[0].params.n: is set by Ebb itself`,
	} {
		_, err := parseConfig("f.jsonc", []byte(oneModel(params)), env(), NeedNothing)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", params, err, want)
		}
	}
}

// A reload takes changed params over.
func TestParamsAreReloaded(t *testing.T) {
	t.Parallel()
	before, after := mustParse(t, oneModel(`{"top_k": 20}`)), mustParse(t, oneModel(`{"top_k": 30}`))
	if live, restart := before.Changes(after); len(live) != 1 || len(restart) != 0 {
		t.Errorf("changed %q, after a restart %q", live, restart)
	}
}
