package openai

import (
	"fmt"
	"strings"
	"testing"

	"ebb/bot/openai/openaitest"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// listening adds a reader of text and thoughts to a request.
func listening(r llm.Request) (llm.Request, *heard, *strings.Builder) {
	h, thoughts := &heard{}, &strings.Builder{}
	r.Delta = h.delta
	r.Thought = func(s string) { thoughts.WriteString(s) }
	return r, h, thoughts
}

// Reasoning has several places. In none of them it is a part of the answer, and from each it can be displayed.
func TestReasoningIsNoPartOfAnAnswer(t *testing.T) {
	t.Parallel()
	end := `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	for name, tc := range map[string]struct {
		reply openaitest.Reply
		shown string
	}{
		"reasoning_content": {openaitest.Text("答").Thinking("先想"), "先想"},
		"tags":              {openaitest.Text("<think>先想</think>答").Pieces(2), "先想"},
		"OpenRouter":        {openaitest.Events(`{"choices":[{"delta":{"reasoning":"先想"}}]}`, `{"choices":[{"delta":{"content":"答"}}]}`, end, "[DONE]"), "先想"},
		"under two names":   {openaitest.Events(`{"choices":[{"delta":{"reasoning":"先想","reasoning_content":"先想"}}]}`, `{"choices":[{"delta":{"content":"答"}}]}`, end, "[DONE]"), "先想"},
		"parts":             {openaitest.Events(`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"先想"}]},{"type":"reasoning","text":"先想"},{"type":"text","text":"答"}]}}]}`, end, "[DONE]"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, h, thoughts := listening(ask("问题"))
			resp, err := clientOf(t, 0, openaitest.NewServer(t, tc.reply)).Generate(t.Context(), r)
			if err != nil || resp.Text != "答" || h.text.String() != "答" || thoughts.String() != tc.shown {
				t.Errorf("got %+v, %v; the reader saw %q and the thoughts %q", resp, err, h.text.String(), thoughts)
			}
		})
	}
}

// The template of some models writes the opening tag. The first answer shows that, and no later one streams thoughts.
func TestUntaggedReasoningIsLearned(t *testing.T) {
	t.Parallel()
	one := openaitest.Text("悄悄话</think>\n\n答").Pieces(2)
	s := openaitest.NewServer(t, one, one, openaitest.Text("不用想的答").Pieces(2), openaitest.Text("又一答").Pieces(2))
	c := clientOf(t, 0, s)
	for i, want := range []string{"答", "答", "不用想的答", "又一答"} {
		r := ask("问题")
		var ever strings.Builder
		pieces := 0
		r.Delta = func(text string, _ bool) { ever.WriteString(text); pieces++ }
		resp, err := c.Generate(t.Context(), r)
		if err != nil || resp.Text != want {
			t.Errorf("answer %d: %+v, %v", i, resp, err)
		}
		if i > 0 && strings.Contains(ever.String(), "悄悄话") {
			t.Errorf("answer %d showed %q", i, ever.String())
		}
		if i == 3 && pieces < 2 {
			t.Error("an answer without reasoning before it is not streamed again")
		}
	}
}

// DeepSeek and Kimi refuse the second round of a turn without the reasoning of the first. It is learned from their words.
func TestReasoningGoesBackWhereItIsRequired(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]string{
		"DeepSeek":         "The `reasoning_content` in the thinking mode must be passed back to the API.",
		"DeepSeek, before": "Missing `reasoning_content` field in the assistant message at message index 2.",
		"Kimi":             "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openaitest.NewServer(t, openaitest.Func(func(r openaitest.Request) openaitest.Reply {
				for _, m := range r.Messages {
					if len(m.ToolCalls) > 0 && m.Reasoning == "" {
						return openaitest.Error(400, "", fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error"}}`, refusal))
					}
				}
				return openaitest.Text("答").Thinking("想")
			}))
			c := clientOf(t, 0, s)
			r := ask("问题")
			call := func(id, thought string) {
				r.Messages = append(r.Messages,
					llm.Message{Role: "assistant", ToolCalls: []sessions.ToolCall{{ID: id, Name: "memory_search", Arguments: "{}"}}, Reasoning: thought},
					llm.Message{Role: "tool", ToolCallID: id, Content: "无"})
			}
			call("c1", "") // an earlier turn: reasoning is not stored
			call("c2", "先查一下")
			for i, requests := range []int{2, 1} {
				before := len(s.Requests())
				resp, err := c.Generate(t.Context(), r)
				if err != nil || resp.Text != "答" || resp.Reasoning != "想" || len(s.Requests())-before != requests {
					t.Errorf("answer %d: %+v, %v, by %d requests", i, resp, err, len(s.Requests())-before)
				}
			}
			sent := s.Requests()
			for _, m := range sent[0].Messages {
				if m.Reasoning != "" {
					t.Errorf("reasoning goes to a provider that did not ask for it: %+v", m)
				}
			}
			var got []string
			for _, m := range sent[len(sent)-1].Messages {
				if m.Role == "assistant" {
					got = append(got, m.Reasoning)
				}
			}
			if strings.Join(got, "|") != noThought+"|先查一下" {
				t.Errorf("reasoning that went back: %q", got)
			}
		})
	}
}

// Refusals of a forced tool in the words of providers, each with the way that works there.
func TestForcedToolsOfModelsThatThink(t *testing.T) {
	t.Parallel()
	qwen := `{"error":{"message":"<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required or object in thinking mode","type":"invalid_request_error","param":null,"code":"invalid_parameter_error"}}`
	deepseek := `{"error":{"message":"%s does not support this tool_choice","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`
	for name, tc := range map[string]struct {
		body string
		off  string // member that ends the thinking
		want string
	}{
		"Qwen":                       {qwen, "enable_thinking", "required_no_thinking"},
		"DeepSeek, new":              {fmt.Sprintf(deepseek, "Thinking mode"), "thinking", "required_no_thinking"},
		"DeepSeek Reasoner":          {fmt.Sprintf(deepseek, "deepseek-reasoner"), "", "auto"},
		"DeepSeek Reasoner, earlier": {`{"error":{"message":"deepseek-reasoner does not support Function Calling","type":"invalid_request_error"}}`, "", "json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openaitest.NewServer(t, openaitest.Func(func(r openaitest.Request) openaitest.Reply {
				_, off := r.Raw[tc.off]
				switch {
				case tc.want == "json" && len(r.Tools) > 0, tc.want != "json" && r.ToolChoice != "" && r.ToolChoice != "auto" && !off:
					return openaitest.Error(400, "", tc.body)
				case tc.want == "json":
					return openaitest.Text("<think>{\"facts\":[\"想法\"]}</think>" + saved)
				case off:
					return openaitest.Calls("memory_save", saved)
				}
				return openaitest.Calls("memory_save", saved).Thinking("要不要调用呢")
			}))
			c := clientOf(t, 0, s)
			for range 2 {
				resp, err := c.Generate(t.Context(), forcing("存下来"))
				if err != nil || resp.Forced != tc.want || len(resp.ToolCalls) != 1 || resp.ToolCalls[0].Arguments != saved || resp.Text != "" {
					t.Errorf("got %+v, %v", resp, err)
				}
			}
			if n := len(s.Requests()); s.Requests()[n-2].ToolChoice == s.Requests()[0].ToolChoice && tc.want != "json" {
				t.Error("the refusal is not remembered")
			}
		})
	}
}
