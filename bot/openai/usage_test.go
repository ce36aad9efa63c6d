package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"ebb/bot/openai/openaitest"
	"ebb/sessions"
)

// Law: whatever a provider reports, the usage of an answered request is near the size of its texts.
func TestReportedUsageIsChecked(t *testing.T) {
	t.Parallel()
	question := strings.Repeat("三台八核机器，单机 1200 TPS 时平均响应 38 毫秒，瓶颈在风控规则加载。", 600) // 57 KB
	said := strings.Repeat("部署在周五 20:00，负责人张三。", 20)
	for _, c := range []struct {
		behaviour string
		guessed   bool
	}{
		{"", false},
		{"cuts_silently:1500", true},
		{"reports_nothing", true},
		{"reports_zero", true},
		{"reports_negative", true},
		{"reports_huge", true},
		{"cached_apart", false},
		{"cumulative_usage", false},
		{"usage_per_chunk", false},
	} {
		for _, stream := range []bool{false, true} {
			s := openaitest.NewServer(t, openaitest.Text(said))
			if c.behaviour != "" {
				s.Behave(c.behaviour)
			}
			r := ask(question)
			if stream {
				r.Delta = func(string, bool) {}
			}
			resp, err := clientOf(t, 0, s).Generate(context.Background(), r)
			if err != nil {
				t.Errorf("%s: %v", c.behaviour, err)
				continue
			}
			if resp.Guessed != c.guessed {
				t.Errorf("%s: guessed is %v", c.behaviour, resp.Guessed)
			}
			u := resp.Usage
			if u.Prompt < len(question)/6 || u.Prompt > len(question)/2 || u.Cached < 0 || u.Cached > u.Prompt {
				t.Errorf("%s: %+v for a prompt of %d bytes", c.behaviour, u, len(question))
			}
			if u.Completion < len(said)/8 || u.Completion > len(said) {
				t.Errorf("%s: %+v for an answer of %d bytes", c.behaviour, u, len(said))
			}
		}
	}
}

func TestUsageReadsTheNamesOfProviders(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sessions.Usage{
		`{"prompt_tokens":1000,"completion_tokens":20}`:                                             {Prompt: 1000, Completion: 20},
		`{"prompt_tokens":"1000","completion_tokens":20.0}`:                                         {Prompt: 1000, Completion: 20},
		`{"input_tokens":1000,"output_tokens":20}`:                                                  {Prompt: 1000, Completion: 20},
		`{"prompt_tokens":1000,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":9}}`: {Prompt: 1000, Cached: 9, Completion: 20},
		`{"prompt_tokens":1000,"completion_tokens":20,"prompt_tokens_details":null}`:                {Prompt: 1000, Completion: 20},
		`{"prompt_tokens":1000,"completion_tokens":20,"prompt_tokens_details":[]}`:                  {Prompt: 1000, Completion: 20},
		`{"prompt_tokens":200,"completion_tokens":20,"cache_read_input_tokens":800}`:                {Prompt: 1000, Cached: 800, Completion: 20},
		`{"prompt_tokens":600,"completion_tokens":20,"cached_tokens":400,"total_tokens":1020}`:      {Prompt: 1000, Cached: 400, Completion: 20},
		`{"prompt_tokens":1000,"completion_tokens":20,"cached_tokens":1e9}`:                         {Prompt: 1000, Cached: 1000, Completion: 20},
		`{"prompt_tokens":1e30,"completion_tokens":null,"cached_tokens":{}}`:                        {Prompt: 1000, Completion: 25},
		`{"prompt_tokens":true,"completion_tokens":-3}`:                                             {Prompt: 1000, Completion: 25},
	} {
		var u usage
		if err := json.Unmarshal([]byte(text), &u); err != nil && !strings.Contains(err.Error(), "cannot unmarshal array") {
			t.Errorf("%s: %v", text, err)
		}
		if got, _ := u.believeReport(4000, 100, 0); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func TestRetryAfterIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC)
	for _, text := range []string{"31536000", "1e300", now.AddDate(1, 0, 0).Format(http.TimeFormat)} {
		if got := retryAfter(http.Header{"Retry-After": {text}}, now); got <= 0 || got > 24*time.Hour {
			t.Errorf("Retry-After %s is a pause of %v", text, got)
		}
	}
}
