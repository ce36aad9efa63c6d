package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/openai/openaitest"
)

// Doctor has a line for the endpoint of embeddings where one is configured, without its key, and none where not.
func TestDoctorAsksForEmbeddings(t *testing.T) {
	t.Parallel()
	s := openaitest.New(openaitest.Options{APIKey: "sk-hunter2"})
	t.Cleanup(s.Close)
	failing := func(said string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":%q}}`, said)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	for _, tt := range []struct{ name, embeddings, want string }{
		{"right", fmt.Sprintf(`{"base_url": %q, "model": "e", "api_key": "sk-hunter2", "dimensions": 8}`, s.URL), "ok   embeddings: e/8 answered a vector of 8 numbers"},
		{"wrong key", fmt.Sprintf(`{"base_url": %q, "model": "e", "api_key": "sk-hunter3"}`, s.URL), "FAIL embeddings: model embeddings: denied"},
		{"refused form", fmt.Sprintf(`{"base_url": %q, "model": "e"}`, failing("dimensions is invalid")), "(next: check agent.memory.embeddings.dimensions, or use another model)"},
		{"refused size", fmt.Sprintf(`{"base_url": %q, "model": "e"}`, failing("maximum context length is 512 tokens")), "(next: check agent.memory.embeddings.model)"},
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

// Each line of a check that failed ends with the next step, whatever it was that failed.
func TestDoctorNamesTheNextStep(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	late := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	slow := httptest.NewServer(late)
	t.Cleanup(slow.Close)
	undated := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil }))
	t.Cleanup(undated.Close)
	ding := dingtalktest.NewServer(t, dingtalktest.Fast())
	unstreamed := dingtalktest.NewServer(t, dingtalktest.Fast())
	unstreamed.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteOpen, Action: dingtalktest.Action{Status: 403, Body: `{"code":"authFailed"}`}})
	const refused, copied = "(next: set the message mode of the bot to Stream", "(next: copy dingtalk.client_id and dingtalk.client_secret"
	const network = "(next: check dingtalk.api_base and the network)"
	for name, c := range map[string]struct {
		api, id, secret string
		want            map[string]string // end of the line of a check; empty: it is right
	}{
		"no application": {gone.URL, "", "", map[string]string{"dingtalk": "(next: make an application", "stream": "(next: make an application", "clock": network}},
		"no network":     {gone.URL, "i", "s", map[string]string{"dingtalk": network, "stream": network, "clock": network}},
		"wrong secret":   {ding.URL, "dingsimapp0001", "wrong", map[string]string{"dingtalk": copied, "stream": copied, "clock": ""}},
		"no stream mode": {unstreamed.URL, "dingsimapp0001", "sim-secret", map[string]string{"dingtalk": "", "stream": refused}},
		"clock off":      {slow.URL, "i", "s", map[string]string{"dingtalk": "(next: try again in a while", "stream": "(next: try again in a while", "clock": "(next: set the clock of this machine"}},
		"no date":        {undated.URL, "i", "s", map[string]string{"clock": "(next: check dingtalk.api_base: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "bot.jsonc")
			text := fmt.Sprintf(`{"database": {"url": "postgres://127.0.0.1:1/ebb"}, "dingtalk": {"api_base": %q, "oapi_base": %q, "client_id": %q, "client_secret": %q},
				"llm": {"models": [{"name": "main", "base_url": %q, "model": "m", "api_key": ""}]},
				"agent": {"memory": {"embeddings": {"base_url": %q, "model": "e"}}}}`, c.api, c.api, c.id, c.secret, gone.URL, gone.URL)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, stdout, _ := runBot(t, env(), "doctor", "-c", file)
			for line := range strings.Lines(stdout) {
				if failed, _ := strings.CutPrefix(line, "FAIL "); failed != line && !strings.HasPrefix(failed, "config: ") && !strings.Contains(line, " (next: ") {
					t.Errorf("a line without a step: %s", line)
				}
			}
			for check, step := range c.want {
				mark, end := "\nFAIL "+check+": ", step
				if step == "" {
					mark = "\nok   " + check + ": "
				}
				_, line, found := strings.Cut(stdout, mark)
				line, _, _ = strings.Cut(line, "\n")
				if !found || !strings.Contains(line, end) {
					t.Errorf("want %q with %q in\n%s", mark, end, stdout)
				}
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

// Failures of one check stand in one line, each apart.
func TestDoctorPartsFailures(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"one: refused\ntwo:\n\t no answer \n\n": "one: refused; two: no answer",
		"a  single one":                         "a single one",
	} {
		if got := inOneLine(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
