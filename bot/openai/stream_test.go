package openai

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"ebb/bot/openai/openaitest"
	"ebb/sessions/llm"
)

// TestSplitsDoNotMatter states the law of streams: wherever texts, arguments, names, ids, events and bytes are cut, the
// answer is the same, and so is what the reader sees.
func TestSplitsDoNotMatter(t *testing.T) {
	t.Parallel()
	s := openaitest.New(openaitest.Options{})
	t.Cleanup(s.Close)
	c := clientOf(t, 0, s)
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", "部署😀", "<think>想\n</think>答", "`<think>` 是标签", "a < b </think", "嗯</think>\n答", "x <think> y", "<think>没想完",
	}))
	args := rapid.SampledFrom([]string{"", "{}", `{"query":"谁 \"x\" 😀"}`, `{"a":{"b":[1,2,{"c":"}"}]}}`})
	rapid.Check(t, func(rt *rapid.T) {
		whole := openaitest.Text(text.Draw(rt, "text")).Thinking(text.Draw(rt, "thinking"))
		for range rapid.IntRange(0, 3).Draw(rt, "calls") {
			whole = whole.Call(rapid.SampledFrom([]string{"memory_save", "memory_search"}).Draw(rt, "tool"), args.Draw(rt, "args"))
		}
		cut := whole.Pieces(rapid.IntRange(1, 9).Draw(rt, "runes")).Split(rapid.IntRange(0, 40).Draw(rt, "bytes"))
		s.Add(whole, cut)
		r := ask("问题")
		c.models[0].whole.Store(true)
		plain, err := c.Generate(t.Context(), r)
		if err != nil {
			rt.Fatal(err)
		}
		var h heard
		r.Delta = h.delta
		streamed, err := c.Generate(t.Context(), r)
		if err != nil {
			rt.Fatal(err)
		}
		same(rt, plain, streamed)
		if h.text.String() != streamed.Text {
			rt.Errorf("the reader saw %q, the answer is %q", h.text.String(), streamed.Text)
		}
	})
}

func TestToolCallsInOddPieces(t *testing.T) {
	t.Parallel()
	call := func(pieces ...string) openaitest.Reply {
		var events []string
		for _, p := range pieces {
			events = append(events, `{"choices":[{"index":0,"delta":{"tool_calls":[`+p+`]}}]}`)
		}
		return openaitest.Events(append(events, `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]")...)
	}
	cases := map[string]struct {
		reply openaitest.Reply
		want  string
	}{
		"id and name in pieces": {
			call(
				`{"index":0,"id":"ca","function":{"name":"memory_"}}`, `{"index":0,"id":"ll_1","function":{"name":"search"}}`,
				`{"index":0,"function":{"arguments":"{\"query\":"}}`, `{"index":0,"function":{"arguments":"\"x\"}"}}`),
			`call_1 memory_search {"query":"x"}`,
		},
		"id and name repeated": {
			call(
				`{"index":0,"id":"c1","function":{"name":"memory_search","arguments":"{"}}`, `{"index":0,"id":"c1","function":{"name":"memory_search","arguments":"}"}}`),
			`c1 memory_search {}`,
		},
		"pieces of two calls mixed": {
			call(
				`{"index":1,"id":"c2","function":{"name":"memory_save"}},{"index":0,"id":"c1","function":{"name":"memory_search"}}`,
				`{"index":0,"function":{"arguments":"{\"query\":1}"}}`, `{"index":1,"function":{"arguments":"{\"facts\":[]}"}}`),
			`c2 memory_save {"facts":[]}; c1 memory_search {"query":1}`,
		},
		"every call has index 0": {
			call(
				`{"index":0,"id":"c1","function":{"name":"memory_search","arguments":"{\"query\":1}"}}`, `{"index":0,"id":"c2","function":{"name":"memory_search","arguments":"{\"query\":2}"}}`),
			`c1 memory_search {"query":1}; c2 memory_search {"query":2}`,
		},
		"without index": {
			call(
				`{"id":"c1","function":{"name":"memory_search","arguments":"{\"query\":"}}`, `{"function":{"arguments":"1}"}}`, `{"id":"c2","function":{"name":"memory_search","arguments":"{}"}}`),
			`c1 memory_search {"query":1}; c2 memory_search {}`,
		},
		"without index and arguments": {
			call(
				`{"id":"c1","function":{"name":"memory_search"}}`, `{"id":"c2","function":{"name":"memory_search"}}`),
			`c1 memory_search {}; c2 memory_search {}`,
		},
		"arguments as an object": {
			call(`{"index":0,"id":"c1","function":{"name":"memory_search","arguments":{"query":"x"}}}`),
			`c1 memory_search {"query":"x"}`,
		},
		"nulls": {
			call(`{"index":0,"id":"c1","type":null,"function":{"name":"memory_search","arguments":null}}`, `{"index":0,"id":null,"function":{"name":null,"arguments":"{}"}}`),
			`c1 memory_search {}`,
		},
		"arguments that are cut off": {
			call(`{"index":0,"id":"c1","function":{"name":"memory_search","arguments":"{\"que"}}`),
			`c1 memory_search {"que`,
		},
		"a call without a name": {
			call(`{"index":0,"id":"c1","function":{"arguments":"{}"}}`, `{"index":1,"id":"c2","function":{"name":"memory_search"}}`),
			`c2 memory_search {}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := ask("你好")
			r.Delta = new(heard).delta
			resp, err := clientOf(t, 0, openaitest.NewServer(t, tc.reply)).Generate(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range resp.ToolCalls {
				got = append(got, c.ID+" "+c.Name+" "+c.Arguments)
			}
			if s := strings.Join(got, "; "); s != tc.want || resp.Finish != llm.FinishTools {
				t.Errorf("got  %s (%s)\nwant %s", s, resp.Finish, tc.want)
			}
		})
	}
}

func TestUsageInAllItsPlaces(t *testing.T) {
	t.Parallel()
	for name, events := range map[string][]string{
		"OpenAI":    {`{"choices":[{"delta":{"content":"好"},"finish_reason":"stop"}],"usage":null}`, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}`, "[DONE]"},
		"DeepSeek":  {`{"choices":[{"delta":{"content":"好"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":4}}`, "[DONE]"},
		"Moonshot":  {`{"choices":[{"delta":{"content":"好"},"finish_reason":"stop","usage":{"prompt_tokens":10,"completion_tokens":2,"cached_tokens":4}}]}`, "[DONE]"},
		"each time": {`{"choices":[{"delta":{"content":"好"}}],"usage":{"prompt_tokens":10,"completion_tokens":1}}`, `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"cached_tokens":4}}`, "[DONE]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := ask("你好")
			r.Delta = new(heard).delta
			resp, err := clientOf(t, 0, openaitest.NewServer(t, openaitest.Events(events...))).Generate(t.Context(), r)
			if err != nil || resp.Usage.Prompt != 10 || resp.Usage.Completion != 2 || resp.Usage.Cached != 4 {
				t.Errorf("got %+v, %v", resp.Usage, err)
			}
		})
	}
}

// FuzzStream states that no bytes in a stream do more than fail: what comes out is an answer or a classified error.
func FuzzStream(f *testing.F) {
	for _, seed := range []string{
		"", "data: [DONE]\n\n", "data: {}\n\ndata: [DONE]\n\n", "data: {\"choices\":[{\"delta\":{\"content\":\"<think>\"},\"finish_reason\":\"stop\"}]}\n",
		"data: {\"error\":{\"message\":\"x\"}}\n\n", "data: {\"error\":\"x\"}\n", "data: null\n", "data: [1]\n", "data: \"x\"\n", ": c\nevent: e\n\r\ndata:\n",
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1,\"function\":{\"name\":\"memory_save\",\"arguments\":{}}}]}}]}\n",
		"data: {\"choices\":[null,{\"delta\":null,\"finish_reason\":7}],\"usage\":{\"prompt_tokens\":-5,\"cached_tokens\":9}}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := New(Config{Models: []ModelConfig{{Name: "a", BaseURL: "http://fuzz.invalid/v1", Model: "m"}}})
		if err != nil {
			t.Fatal(err)
		}
		m := c.models[0]
		cl := m.buildCall(llm.Request{Tools: ask("").Tools, Delta: func(string, bool) {}}, rungNone, forms{})
		for i, src := range []io.Reader{bytes.NewReader(body), iotest.OneByteReader(bytes.NewReader(body))} {
			a, err := readStream(m, cl, src)
			if err == nil {
				resp := a.response(m.conf.Name, m.conf.price())
				if u := resp.Usage; u.Prompt < 0 || u.Cached < 0 || u.Cached > u.Prompt || u.Completion < 0 {
					t.Errorf("reading %d: usage %+v", i, u)
				}
				for _, call := range resp.ToolCalls {
					if call.ID == "" || call.Name == "" || call.Arguments == "" {
						t.Errorf("reading %d: call %+v", i, call)
					}
				}
			}
		}
	})
}

// readStream feeds events to an answer without HTTP.
func readStream(_ *model, cl call, src io.Reader) (answer, error) {
	a := answer{tools: cl.tools}
	lines, err := io.ReadAll(&eventLines{src: bufio.NewReader(src), Closer: io.NopCloser(nil)})
	if err != nil {
		return a, err
	}
	for line := range bytes.Lines(lines) {
		data := bytes.TrimSpace(bytes.TrimPrefix(line, []byte("data:")))
		if s := string(data); s == "[DONE]" || s == endMark {
			break
		}
		if err := a.line(data, &sink{}); err != nil {
			return a, err
		}
	}
	a.finishAnswer()
	return a, nil
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":      0,
		"5":     5 * time.Second,
		" 0.5 ": 500 * time.Millisecond,
		"-3":    0,
		"NaN":   0,
		"1e99":  24 * time.Hour,
		"soon":  0,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):       0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
	if got := retryAfter(http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"9"}}, now); got != 250*time.Millisecond {
		t.Errorf("milliseconds: %v", got)
	}
}

func TestErrorBodies(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"error":{"message":"m","code":"c","type":"t"}}`: "c t|m",
		`{"error":{"message":"m","code":7}}`:              "7|m",
		`{"error":"m"}`:                                   "|m",
		`{"code":"c","message":"m"}`:                      "c|m",
		`{"detail":"m"}`:                                  "|m",
		`{"detail":[{"msg":"m","loc":["body","n"]}]}`:     "|body.n m",
		`not json`: "|not json",
		`[]`:       "|",
	} {
		if e := parseFailure(400, []byte(body)); strings.Join(e.codes, " ")+"|"+e.message != want {
			t.Errorf("%s: %q, want %q", body, strings.Join(e.codes, " ")+"|"+e.message, want)
		}
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	conns := make(chan struct{}, 100)
	s := openaitest.New(openaitest.Options{Connected: func() { conns <- struct{}{} }})
	t.Cleanup(s.Close)
	c := clientOf(t, 0, s)
	for i := range 20 {
		r := ask("你好")
		if i%2 == 0 {
			r.Delta = new(heard).delta
		}
		if _, err := c.Generate(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(conns); n > 3 {
		t.Errorf("20 calls one after another took %d connections", n)
	}
}

// A call that its caller ends returns the text so far, without thoughts, and says nothing about the model.
func TestEndedCallReturnsItsText(t *testing.T) {
	t.Parallel()
	s := openaitest.NewServer(t, openaitest.Text("<think>想一想</think>今天的部署已经").Pieces(100).QuietAfter(1))
	c := clientOf(t, 0, s)
	ctx, stop := context.WithCancel(t.Context())
	r := ask("部署了吗")
	r.Delta = func(string, bool) { stop() }
	resp, err := c.Generate(ctx, r)
	if !errors.Is(err, context.Canceled) || resp.Text != "今天的部署已经" || len(resp.Parts) != 1 || resp.Parts[0].Requests != 1 {
		t.Errorf("got %+v and error %v, want the text so far", resp, err)
	}
	if state := c.models[0].breaker.state(); state != llm.Up {
		t.Errorf("the model is in state %d", state)
	}
}
