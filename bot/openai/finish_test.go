package openai

import (
	"strings"
	"testing"

	"ebb/bot/openai/openaitest"
	"ebb/sessions/llm"
)

// A reason that is no end is a broken answer, in words or with calls. It is asked again, and no half of it is an answer.
func TestEndsThatAreNoEnd(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"network_error", "error", "insufficient_system_resource", "abort", "repetition_truncation", "出错了"} {
		for name, half := range map[string]openaitest.Reply{
			"words": openaitest.Text("部署步骤：先停旧服务，然后执行").Finish(reason),
			"calls": openaitest.Calls("memory_search", `{"query":"部署"}`).Finish(reason),
			"empty": openaitest.Text("").Finish(reason),
		} {
			t.Run(reason+" "+name, func(t *testing.T) {
				t.Parallel()
				s := openaitest.NewServer(t, half, half, openaitest.Text("先停旧服务，再启动新服务。"))
				var h heard
				r := ask("部署步骤")
				r.Delta = h.delta
				resp, err := clientOf(t, 3, s).Generate(t.Context(), r)
				if err != nil || resp.Text != "先停旧服务，再启动新服务。" || len(resp.ToolCalls) > 0 || h.text.String() != resp.Text {
					t.Errorf("got %q with %d calls, shown %q, %v", resp.Text, len(resp.ToolCalls), h.text.String(), err)
				}
				for range 4 {
					s.Add(half)
				}
				_, err = clientOf(t, 3, s).Generate(t.Context(), ask("部署步骤"))
				if m := class(t, err, llm.Broken); strings.Contains(m.Error(), "出错了") || !m.Temporary() {
					t.Errorf("the error is %v", m)
				}
			})
		}
	}
}

// Real endpoints have their own words for the same ends.
func TestWordsOfEnds(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]llm.Finish{
		"": llm.FinishStop, "null": llm.FinishStop, "stop": llm.FinishStop, "STOP": llm.FinishStop, "eos": llm.FinishStop, "end_turn": llm.FinishStop,
		"stop_sequence": llm.FinishStop, "COMPLETE": llm.FinishStop, "tool_calls": llm.FinishStop, "length": llm.FinishLength,
		"max_tokens": llm.FinishLength, "MAX_TOKENS": llm.FinishLength, "content_filter": llm.FinishFilter, "SAFETY": llm.FinishFilter, "sensitive": llm.FinishFilter,
	} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			quoted := `"` + word + `"`
			reply := openaitest.Events(
				`{"choices":[{"index":0,"delta":{"content":"周五"},"finish_reason":"null"}]}`,
				`{"choices":[{"index":0,"delta":{"content":"三点"},"finish_reason":`+quoted+`}]}`, "[DONE]")
			resp, err := clientOf(t, 0, openaitest.NewServer(t, reply)).Generate(t.Context(), ask("几点"))
			if err != nil || resp.Text != "周五三点" || resp.Finish != want {
				t.Errorf("got %q with the end %q, %v; want %q", resp.Text, resp.Finish, err, want)
			}
		})
	}
	call := openaitest.Calls("memory_search", `{"query":"a"}`).Finish("tool_use")
	resp, err := clientOf(t, 0, openaitest.NewServer(t, call)).Generate(t.Context(), ask("几点"))
	if err != nil || resp.Finish != llm.FinishTools || len(resp.ToolCalls) != 1 {
		t.Errorf("a call ends as %q, %v", resp.Finish, err)
	}
}
