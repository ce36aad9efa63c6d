package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebb/bot/openai/openaitest"
)

// Doctor has a line for the endpoint of embeddings where one is configured, without its key, and none where not.
func TestDoctorAsksForEmbeddings(t *testing.T) {
	t.Parallel()
	s := openaitest.New(openaitest.Options{APIKey: "sk-hunter2"})
	t.Cleanup(s.Close)
	for _, tt := range []struct{ name, embeddings, want string }{
		{"right", fmt.Sprintf(`{"base_url": %q, "model": "e", "api_key": "sk-hunter2", "dimensions": 8}`, s.URL), "ok   embeddings: e/8 answered a vector of 8 numbers"},
		{"wrong key", fmt.Sprintf(`{"base_url": %q, "model": "e", "api_key": "sk-hunter3"}`, s.URL), "FAIL embeddings: model embeddings: denied"},
		{"nobody listens", `{"base_url": "http://127.0.0.1:1/v1", "model": "e"}`, "FAIL embeddings: model embeddings: unreachable: "},
		{"none", `{}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "bot.jsonc")
			text := fmt.Sprintf(`{"database": {"url": "postgres://nowhere.invalid/ebb"}, "dingtalk": {"api_base": %q},
				"llm": {"models": [{"name": "main", "base_url": %q, "model": "m", "api_key": "sk-hunter2"}]},
				"agent": {"memory": {"embeddings": %s}}}`, s.URL, s.URL, tt.embeddings)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, stdout, _ := runBot(t, env(), "doctor", "-c", file)
			if strings.Contains(stdout, "embeddings: ") != (tt.want != "") || !strings.Contains(stdout, tt.want) || strings.Contains(stdout, "hunter") {
				t.Errorf("want a line %q in\n%s", tt.want, stdout)
			}
		})
	}
}

// Doctor sends what the gateway sends. It reports the forms that a model refuses, and the next step where nothing helps.
func TestDoctorReportsForms(t *testing.T) {
	t.Parallel()
	for behaviours, want := range map[string]string{
		"":                                 "ok   model: 1 of 1 answered an ordinary request\n",
		"no_tools max_output:2048":         "ok   model: 1 of 1 answered an ordinary request; main has no tools: memory is searched before each answer, and saved by JSON, answers at most 2048 tokens\n",
		"alternating_roles no_system_role": "ok   model: 1 of 1 answered an ordinary request; main takes no system message, wants alternating roles\n",
		"strict_fields":                    "takes no stream_options",
		"money":                            "(next: pay the provider's account, or raise its limit)",
		"repeats_request:400":              "(next: check llm.models[0].params and llm.models[0].max_output, or use another model)",
	} {
		t.Run(behaviours, func(t *testing.T) {
			t.Parallel()
			s := openaitest.New(openaitest.Options{Behaviours: strings.Fields(behaviours)})
			t.Cleanup(s.Close)
			file := filepath.Join(t.TempDir(), "bot.jsonc")
			text := fmt.Sprintf(`{"database": {"url": "postgres://nowhere.invalid/ebb"}, "dingtalk": {"api_base": %q},
				"llm": {"models": [{"name": "main", "base_url": %q, "model": "m", "api_key": ""}]}}`, s.URL, s.URL)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, stdout, _ := runBot(t, env(), "doctor", "-c", file); !strings.Contains(stdout, want) {
				t.Errorf("want %q in\n%s", want, stdout)
			}
		})
	}
}
