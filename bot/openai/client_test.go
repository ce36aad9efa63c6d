package openai

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"ebb/bot/openai/openaitest"
	"ebb/sessions/llm"
)

const testKey = "key-of-the-test-0123456789"

// clientOf is a client of the servers, as models a, b, c …, that waits for milliseconds between attempts.
func clientOf(t *testing.T, retries int, servers ...*openaitest.Server) *Client {
	t.Helper()
	var cfg Config
	for i, s := range servers {
		cfg.Models = append(cfg.Models, ModelConfig{
			Name: string(rune('a' + i)), BaseURL: s.URL, APIKey: testKey, Model: "scripted", Timeout: 20 * time.Second, Retries: retries,
		})
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.common.pauses.First = 2 * time.Millisecond
	return c
}

var saveSpec = llm.ToolSpec{Name: "memory_save", Description: "Saves facts.", Schema: map[string]any{
	"type":       "object",
	"properties": map[string]any{"facts": map[string]any{"type": "array"}, "nothing_to_save": map[string]any{"type": "boolean"}},
}}

var searchSpec = llm.ToolSpec{Name: "memory_search", Description: "Searches.", Schema: map[string]any{
	"type": "object", "properties": map[string]any{"query": map[string]any{"type": "string"}}, "required": []any{"query"},
}}

func ask(text string) llm.Request {
	return llm.Request{
		Messages: []llm.Message{{Role: "system", Content: "You are Ebb."}, {Role: "user", Content: text}},
		Tools:    []llm.ToolSpec{saveSpec, searchSpec},
	}
}

// heard collects the calls of Delta: the text that a reader would see at the end, and the number of retractions.
type heard struct {
	text   strings.Builder
	resets int
}

func (h *heard) delta(s string, reset bool) {
	if reset {
		h.text.Reset()
		h.resets++
	}
	h.text.WriteString(s)
}

func class(t *testing.T, err error, want llm.ErrorClass) *llm.CallError {
	t.Helper()
	var m *llm.CallError
	if !errors.As(err, &m) {
		t.Fatalf("got error %v, want a model error of class %s", err, want)
	}
	if m.Class != want {
		t.Fatalf("got class %s (%v), want %s", m.Class, err, want)
	}
	return m
}

func TestPlainAndStreamedAnswersAgree(t *testing.T) {
	t.Parallel()
	cases := map[string]openaitest.Reply{
		"text":             openaitest.Text("部署在周五 20:00，负责人张三。"),
		"call":             openaitest.Calls("memory_search", `{"query":"谁负责部署？"}`),
		"two calls":        openaitest.Calls("memory_search", `{"query":"a"}`).Call("memory_search", `{"query":"b"}`),
		"text and call":    openaitest.Text("我查一下。").Call("memory_search", `{"query":"x"}`),
		"call without ids": openaitest.Calls("memory_search", `{"query":"a"}`).Call("memory_save", `{"facts":[]}`).NoIDs(),
		"call without index": openaitest.Calls("memory_search", `{"query":"a"}`).Call("memory_save", `{"facts":[]}`).
			NoIndex(),
		"neither":          openaitest.Calls("memory_search", `{"query":"a"}`).Call("memory_search", `{"query":"b"}`).NoIndex().NoIDs(),
		"no arguments":     openaitest.Calls("memory_search", "").Call("memory_save", ""),
		"thinking":         openaitest.Text("<think>嗯，先想想</think>\n\n答案是 42").Thinking("这也是思考"),
		"swallowed tag":    openaitest.Text("嗯，先想想</think>\n\n答案是 42"),
		"cut off":          openaitest.Text("很长的").Finish("length"),
		"cached":           openaitest.Text("好").Usage(1000, 900, 7),
		"wrong reason":     openaitest.Calls("memory_search", `{"query":"a"}`).Finish("stop"),
		"one rune a chunk": openaitest.Text("😀👍🏽 é").Pieces(1),
		"one byte a write": openaitest.Text("中文😀").Split(1),
	}
	for name, reply := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openaitest.NewServer(t, reply, reply)
			c := clientOf(t, 0, s)
			c.models[0].whole.Store(true)
			r := ask("问题")
			plain, err := c.Generate(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			var h heard
			r.Delta = h.delta
			streamed, err := c.Generate(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			same(t, plain, streamed)
			if h.text.String() != streamed.Text {
				t.Errorf("the reader saw %q, the answer is %q", h.text.String(), streamed.Text)
			}
			if strings.Contains(plain.Text, "想") {
				t.Errorf("thinking shows in %q", plain.Text)
			}
			if plain.Usage.Prompt == 0 || plain.Usage.Completion == 0 && plain.Text+name == "" {
				t.Errorf("no usage: %+v", plain.Usage)
			}
			q := s.Requests()
			if q[0].Stream || !q[1].Stream || !q[1].UsageAsked {
				t.Errorf("streams: %v, %v (usage asked: %v)", q[0].Stream, q[1].Stream, q[1].UsageAsked)
			}
		})
	}
}

// same compares answers but for ids, which are made up where the provider sends none.
func same(t interface {
	Helper()
	Errorf(string, ...any)
}, a, b llm.Response,
) {
	t.Helper()
	if a.Text != b.Text || a.Finish != b.Finish || a.Usage != b.Usage || len(a.ToolCalls) != len(b.ToolCalls) {
		t.Errorf("answers differ:\n%+v\n%+v", a, b)
		return
	}
	ids := map[string]bool{}
	for i, x := range a.ToolCalls {
		y := b.ToolCalls[i]
		if x.Name != y.Name || x.Arguments != y.Arguments || x.ID == "" || y.ID == "" || ids[x.ID] {
			t.Errorf("calls differ:\n%+v\n%+v", a.ToolCalls, b.ToolCalls)
		}
		ids[x.ID] = true
	}
}

func TestFaultsAreRetried(t *testing.T) {
	t.Parallel()
	long := openaitest.Text(strings.Repeat("一句话。", 50))
	cases := map[string]openaitest.Reply{
		"429":                     openaitest.Error(429, "", ""),
		"429 with Retry-After":    openaitest.Error(429, "0.01", ""),
		"500":                     openaitest.Error(500, "", ""),
		"503 with a page of HTML": openaitest.Raw(503, "text/html", "<html>upstream</html>"),
		"408":                     openaitest.Error(408, "", ""),
		"broken connection":       long.BreakAfter(5),
		"broken before a word":    long.BreakAfter(0),
		"clean end too early":     long.EndAfter(5),
		"an error in the stream":  openaitest.Events(`{"error":{"message":"overloaded","type":"server_error"}}`),
		"200 without choices":     openaitest.Raw(200, "application/json", `{"choices":[]}`),
		"200 with an error":       openaitest.Raw(200, "application/json", `{"error":{"message":"try again later","code":"busy"}}`),
		"200 with rubbish":        openaitest.Raw(200, "text/html", "<html>login</html>"),
		"200 with nothing":        openaitest.Raw(200, "text/event-stream", "\n"),
	}
	for name, fault := range cases {
		for form, streamed := range map[string]bool{"plain": false, "streamed": true} {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				s := openaitest.NewServer(t, fault, fault, openaitest.Text("终于好了"))
				var h heard
				r := ask("你好")
				if streamed {
					r.Delta = h.delta
				}
				c := clientOf(t, 2, s)
				c.models[0].whole.Store(!streamed)
				resp, err := c.Generate(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				if resp.Text != "终于好了" || (streamed && h.text.String() != resp.Text) {
					t.Errorf("answer %q, the reader saw %q", resp.Text, h.text.String())
				}
				if n := len(s.Requests()); n != 3 {
					t.Errorf("%d requests, want 3", n)
				}
			})
		}
	}
}

func TestTextOfABrokenStreamIsTakenBack(t *testing.T) {
	t.Parallel()
	s := openaitest.NewServer(t, openaitest.Text("这句话说到一半就断").Pieces(2).BreakAfter(3), openaitest.Text("完整的回答"))
	var h heard
	r := ask("你好")
	r.Delta = h.delta
	if _, err := clientOf(t, 1, s).Generate(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if h.resets != 1 || h.text.String() != "完整的回答" {
		t.Errorf("after %d resets the reader sees %q", h.resets, h.text.String())
	}
}

func TestAStreamIsCompleteWithItsFinishReason(t *testing.T) {
	t.Parallel()
	// Some providers never send [DONE], and a connection lost after the last word loses nothing.
	for name, r := range map[string]openaitest.Reply{
		"clean end":   openaitest.Text("好").EndAfter(2),
		"broken":      openaitest.Text("好").BreakAfter(2),
		"no reason":   openaitest.Events(`{"choices":[{"delta":{"content":"好"}}]}`, "[DONE]"),
		"no newline":  openaitest.Raw(200, "text/event-stream", `data: {"choices":[{"delta":{"content":"好"},"finish_reason":"stop"}]}`),
		"plain JSON":  openaitest.Raw(200, "application/json", `{"choices":[{"message":{"content":"好"},"finish_reason":"stop"}]}`),
		"loose types": openaitest.Events(`{"choices":[{"index":"0","delta":{"content":[{"type":"text","text":"好"}],"x":1},"finish_reason":"stop"}]}`, "[DONE]"),
		"comments": openaitest.Raw(200, "text/event-stream", strings.Repeat(": keep-alive\n\n", 2000)+
			"event: message\nid: 1\ndata:{\"choices\":[{\"delta\":{\"content\":\"好\"},\"finish_reason\":\"stop\"}]}\r\n\r\ndata:[DONE]\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openaitest.NewServer(t, r)
			var h heard
			q := ask("你好")
			q.Delta = h.delta
			resp, err := clientOf(t, 0, s).Generate(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if resp.Text != "好" || resp.Finish != llm.FinishStop || h.text.String() != "好" {
				t.Errorf("got %q (%s), the reader saw %q", resp.Text, resp.Finish, h.text.String())
			}
		})
	}
}

func TestTheNextModelAnswers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		fault openaitest.Reply
		asked int // how often the first model is asked, with one retry
	}{
		"busy":              {openaitest.Error(429, "", ""), 2},
		"too long a rest":   {openaitest.Error(429, "3600", ""), 1},
		"wrong key":         {openaitest.Error(401, "", ""), 1},
		"no money":          {openaitest.Error(402, "", ""), 1},
		"forbidden":         {openaitest.Error(403, "", ""), 1},
		"overdue":           {openaitest.Error(400, "", `{"error":{"code":"Arrearage","message":"Access denied"}}`), 1},
		"no such model":     {openaitest.Error(404, "", ""), 1},
		"malformed request": {openaitest.Error(422, "", `{"detail":"nope"}`), 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := openaitest.NewServer(t), openaitest.NewServer(t, openaitest.Text("b 说"))
			a.Add(openaitest.When(openaitest.IsKind(openaitest.Chat), tc.fault).Times(tc.asked))
			resp, err := clientOf(t, 1, a, b).Generate(t.Context(), ask("你好"))
			if err != nil {
				t.Fatal(err)
			}
			if resp.Text != "b 说" || resp.Model != "b" {
				t.Errorf("model %s answered %q", resp.Model, resp.Text)
			}
		})
	}
}

func TestFinalErrorsStopAtOnce(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		fault openaitest.Reply
		want  llm.ErrorClass
	}{
		"OpenAI overflow":    {openaitest.Error(400, "", `{"error":{"code":"context_length_exceeded","message":"This model's maximum context length is 8192 tokens."}}`), llm.Overflow},
		"DashScope overflow": {openaitest.Error(400, "", `{"error":{"code":"invalid_parameter_error","message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]"}}`), llm.Overflow},
		"vLLM overflow":      {openaitest.Error(400, "", `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","code":400}`), llm.Overflow},
		"413":                {openaitest.Raw(413, "text/html", "<html>too large</html>"), llm.Overflow},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := openaitest.NewServer(t, tc.fault), openaitest.NewServer(t)
			_, err := clientOf(t, 3, a, b).Generate(t.Context(), ask("你好"))
			if m := class(t, err, tc.want); m.Model != "a" {
				t.Errorf("the error names model %q", m.Model)
			}
		})
	}
}

// Another provider may accept words that one refuses. Two refusals are enough: the caller can ask for less.
func TestRefusedRequestGoesToTheNextModel(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]openaitest.Reply{
		"filtered request": openaitest.Error(400, "", `{"error":{"code":"data_inspection_failed","message":"Input data may contain inappropriate content."}}`),
		"filtered answer":  openaitest.Text("").Finish("content_filter"),
		"malformed":        openaitest.Error(400, "", `{"error":{"message":"bad"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := clientOf(t, 3, openaitest.NewServer(t, refusal), openaitest.NewServer(t, openaitest.Text("好"))).Generate(t.Context(), ask("你好"))
			if err != nil || resp.Text != "好" || len(resp.Parts) != 2 || !resp.Parts[0].Err.RequestFault() {
				t.Errorf("answered %+v: %v", resp, err)
			}
			third := openaitest.NewServer(t)
			_, err = clientOf(t, 3, openaitest.NewServer(t, refusal), openaitest.NewServer(t, refusal), third).Generate(t.Context(), ask("你好"))
			if m, ok := errors.AsType[*llm.CallError](err); !ok || !m.RequestFault() || m.Model != "a" {
				t.Errorf("two refusals: %v", err)
			}
		})
	}
}

func TestWhenAllFail(t *testing.T) {
	t.Parallel()
	denied, busy, bad := openaitest.Error(401, "", ""), openaitest.Error(503, "", ""), openaitest.Error(400, "", "")
	for name, tc := range map[string]struct {
		a, b openaitest.Reply
		want llm.ErrorClass
	}{
		"one is only busy":          {denied, busy, llm.Busy},
		"the requested one's words": {denied, bad, llm.Denied},
		"both denied":               {denied, denied, llm.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := clientOf(t, 0, openaitest.NewServer(t, tc.a), openaitest.NewServer(t, tc.b)).Generate(t.Context(), ask("你好"))
			class(t, err, tc.want)
		})
	}
}

func TestKeysNeverShow(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ body, left string }{
		"the configured key": {`{"error":{"message":"Incorrect key ` + testKey + ` given"}}`, "Incorrect key *** given"},
		"another key":        {`{"error":{"message":"Incorrect API key provided: sk-proj-abc***wxyz. See the docs."}}`, "API key provided: *** See the docs."},
		"a key alone":        {`{"error":{"message":"no account has sk-proj-abc***wxyz today"}}`, "no account has *** today"},
		"a header":           {`{"error":{"message":"bad header Authorization: Bearer abcdef.ghi"}}`, "Authorization: ***"},
		"a bearer alone":     {`{"error":{"message":"unknown bearer abcdef.ghi"}}`, "unknown ***"},
		"a page":             {"<html>api_key=deadbeef</html>", "api_key=***"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := clientOf(t, 0, openaitest.NewServer(t, openaitest.Raw(401, "application/json", tc.body))).Generate(t.Context(), ask("你好"))
			failed := class(t, err, llm.Denied)
			if !strings.Contains(failed.Said, tc.left) || strings.Contains(failed.Error(), tc.left) {
				t.Errorf("the provider said %q, want %q, and no part of it in the error %q", failed.Said, tc.left, failed)
			}
			for _, secret := range []string{testKey, "sk-proj", "wxyz", "abcdef", "deadbeef"} {
				if strings.Contains(failed.Said+failed.Error(), secret) {
					t.Errorf("%q shows in %q or %q", secret, failed.Said, failed)
				}
			}
		})
	}
}

func TestNoWaitPastTheDeadline(t *testing.T) {
	t.Parallel()
	a := openaitest.NewServer(t, openaitest.Error(429, "30", ""))
	b := openaitest.NewServer(t, openaitest.Text("b 说"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	resp, err := clientOf(t, 5, a, b).Generate(ctx, ask("你好"))
	if err != nil || resp.Model != "b" {
		t.Fatalf("got %+v, %v: the other model should have answered at once", resp, err)
	}
	only := openaitest.NewServer(t, openaitest.Error(429, time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), ""))
	_, err = clientOf(t, 5, only).Generate(ctx, ask("你好"))
	if m := class(t, err, llm.Busy); m.After < 50*time.Minute || m.Status != 429 {
		t.Errorf("the error says %v and status %d", m.After, m.Status)
	}
}
