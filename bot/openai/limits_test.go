package openai

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"ebb/bot/openai/openaitest"
	"ebb/sessions"
	"ebb/sessions/llm"
)

func TestHangsEnd(t *testing.T) {
	t.Parallel()
	t.Run("by the caller", func(t *testing.T) {
		t.Parallel()
		s := openaitest.NewServer(t, openaitest.Hang())
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("the gateway stops")
		go func() {
			_, _ = s.Wait(ctx, openaitest.IsKind(openaitest.Chat))
			cancel(stopped)
		}()
		_, err := clientOf(t, 5, s).Generate(ctx, ask("你好"))
		class(t, err, llm.Busy)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, stopped) {
			t.Errorf("the error does not say who ended it: %v", err)
		}
	})
	for name, streamed := range map[string]bool{"plain": false, "streamed": true} {
		t.Run("by the attempt's timeout, "+name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, 1, openaitest.NewServer(t, openaitest.Hang(), openaitest.Text("好")))
			c.models[0].conf.Timeout = time.Second // timeout of both attempts: the second must not run into it on a busy machine
			c.models[0].whole.Store(!streamed)
			resp, err := c.Generate(t.Context(), ask("你好"))
			if err != nil || resp.Text != "好" {
				t.Errorf("got %+v, %v", resp, err)
			}
		})
	}
	t.Run("by silence in a stream", func(t *testing.T) {
		t.Parallel()
		c := clientOf(t, 1, openaitest.NewServer(t, openaitest.Text("说着说着").Pieces(1).Slow(time.Minute), openaitest.Text("好")))
		c.common.idle = 50 * time.Millisecond
		var h heard
		r := ask("你好")
		r.Delta = h.delta
		resp, err := c.Generate(t.Context(), r)
		if err != nil || resp.Text != "好" || h.text.String() != "好" {
			t.Errorf("got %+v, %v, the reader saw %q", resp, err, h.text.String())
		}
	})
}

func TestUnknownOptionsAreNotSentAgain(t *testing.T) {
	t.Parallel()
	s := openaitest.NewServer(t,
		openaitest.When(func(r openaitest.Request) bool { return r.UsageAsked },
			openaitest.Error(400, "", `{"error":{"message":"Unknown parameter: stream_options"}}`)).Times(1),
		openaitest.When(func(r openaitest.Request) bool { return r.Raw["max_tokens"] != nil },
			openaitest.Error(400, "", `{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}`)).Times(1),
		openaitest.Text("一"), openaitest.Text("二"))
	c := clientOf(t, 0, s)
	for _, want := range []string{"一", "二"} {
		r := ask("你好")
		r.MaxOutput = 100
		r.Delta = new(heard).delta
		resp, err := c.Generate(t.Context(), r)
		if err != nil || resp.Text != want {
			t.Fatalf("got %+v, %v, want %s", resp, err, want)
		}
	}
}

func TestWhatIsSent(t *testing.T) {
	t.Parallel()
	s := openaitest.NewServer(t, openaitest.Text("好"), openaitest.Text("好"))
	c := clientOf(t, 0, s)
	zero := float32(0)
	c.models[0].conf.Temperature, c.models[0].conf.MaxOutput = &zero, 500
	r := ask("接着说")
	r.MaxOutput = 9000
	r.Messages = []llm.Message{
		{Role: "system", Content: "You are Ebb."},
		{Role: "user", Content: "hi"},
		{Role: "assistant"},
		{Role: "assistant", ToolCalls: []sessions.ToolCall{{ID: "1", Name: "memory_search", Arguments: `{"query": cut o`}}},
		{Role: "tool", ToolCallID: "1"},
		{Role: "user", Content: "接着说"},
	}
	for range 2 {
		if _, err := c.Generate(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if bad := s.Illegal(); len(bad) > 0 {
		t.Errorf("a provider would refuse: %s", strings.Join(bad, "\n"))
	}
	q := s.Requests()[0]
	if string(q.Raw["temperature"]) != "0" || string(q.Raw["max_tokens"]) != "9000" {
		t.Errorf("temperature %s, max_tokens %s", q.Raw["temperature"], q.Raw["max_tokens"])
	}
	if n := len(q.Messages); n != 5 {
		t.Fatalf("%d messages, want 5: the empty one is left out", n)
	}
	if q.Messages[2].ToolCalls[0].Arguments != "{}" {
		t.Errorf("sent %+v", q.Messages)
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	c := clientOf(t, 0, openaitest.NewServer(t, openaitest.Text("好").Usage(1000, 400, 10)))
	c.models[0].conf.PriceIn, c.models[0].conf.PriceCached, c.models[0].conf.PriceOut = 10, 1, 20
	resp, err := c.Generate(t.Context(), ask("你好"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (600*10 + 400*1 + 10*20) / 1e6; resp.Cost < want*0.999 || resp.Cost > want*1.001 {
		t.Errorf("cost %v, want %v", resp.Cost, want)
	}
	if resp.Usage != (sessions.Usage{Prompt: 1000, Cached: 400, Completion: 10}) {
		t.Errorf("usage %+v", resp.Usage)
	}
}

func TestCheckSendsAnOrdinaryRequest(t *testing.T) {
	t.Parallel()
	s := openaitest.New(openaitest.Options{APIKey: testKey})
	defer s.Close()
	c := clientOf(t, 5, s)
	c.models[0].conf.MaxOutput = 4096
	if err := c.CheckAnswer(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if q := s.Requests()[0]; string(q.Raw["max_tokens"]) != "4096" || !q.Stream || len(q.Tools) == 0 {
		t.Errorf("asked for %s tokens, in a stream %v, with the tools %v", q.Raw["max_tokens"], q.Stream, q.Tools)
	}
	wrong, err := New(Config{Models: []ModelConfig{{Name: "x", BaseURL: s.URL, APIKey: "wrong", Model: "m"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.Close()
	class(t, wrong.CheckAnswer(t.Context(), "x"), llm.Denied)
	class(t, wrong.CheckAnswer(t.Context(), "y"), llm.Malformed)
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	ok := ModelConfig{Name: "a", BaseURL: "https://host/v1", Model: "m"}
	with := func(f func(*ModelConfig)) Config {
		m := ok
		f(&m)
		return Config{Models: []ModelConfig{m}}
	}
	for name, cfg := range map[string]Config{
		"no models":       {},
		"no name":         with(func(m *ModelConfig) { m.Name = "" }),
		"no model":        with(func(m *ModelConfig) { m.Model = "" }),
		"no URL":          with(func(m *ModelConfig) { m.BaseURL = "" }),
		"not HTTP":        with(func(m *ModelConfig) { m.BaseURL = "ftp://host" }),
		"same name":       {Models: []ModelConfig{ok, ok}},
		"unknown default": {Default: "b", Models: []ModelConfig{ok}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	b := ok
	b.Name = "b"
	c, err := New(Config{Default: "b", Models: []ModelConfig{ok, b}})
	if err != nil {
		t.Fatal(err)
	}
	order, _ := c.modelsFor("")
	if order[0].conf.Name != "b" || order[1].conf.Name != "a" {
		t.Errorf("the default does not lead: %s, %s", order[0].conf.Name, order[1].conf.Name)
	}
}

// A request says itself how long its answer may be; the model's own limit is for those that do not. A provider that refuses more
// names its limit.
func TestOutputLimit(t *testing.T) {
	t.Parallel()
	s := openaitest.NewServer(t,
		openaitest.When(func(r openaitest.Request) bool { return string(r.Raw["max_tokens"]) == "9000" },
			openaitest.Error(400, "", `{"error":{"message":"Range of max_tokens should be [1, 8192]"}}`)),
		openaitest.Text("好"), openaitest.Text("好"), openaitest.Text("好"), openaitest.Text("好"), openaitest.Text("好"))
	c := clientOf(t, 0, s)
	c.models[0].conf.MaxOutput = 500
	for _, asked := range []int{0, 700, 9000, 300, 9000} {
		r := ask("接着说")
		r.MaxOutput = asked
		if _, err := c.Generate(t.Context(), r); err != nil {
			t.Fatalf("asking for %d: %v", asked, err)
		}
	}
	var sent []string
	for _, r := range s.Requests() {
		sent = append(sent, string(r.Raw["max_tokens"]))
	}
	if got := strings.Join(sent, " "); got != "500 700 9000 8192 300 8192" {
		t.Errorf("max_tokens %s", got)
	}
}

// An error repeats the address that was asked, and a key in its query must not be shown with it.
func TestErrorShowsNoKeyOfTheAddress(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Models: []ModelConfig{{
		Name: "main", Model: "m", BaseURL: "http://" + address + "/v1?token=querysecret", Timeout: time.Second,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Generate(t.Context(), ask("hello"))
	if err == nil || strings.Contains(err.Error(), "querysecret") {
		t.Errorf("a refused connection gives %v", err)
	}
}

// The checks of the doctor find a model that calls no tool, and an endpoint that does not stream or does not count.
func TestChecksOfToolsAndStreams(t *testing.T) {
	t.Parallel()
	good := clientOf(t, 3, openaitest.NewServer(t, openaitest.Calls("memory_save", `{"nothing_to_save":true}`), openaitest.Text("pong")))
	if way, err := good.CheckTool(t.Context(), "a"); err != nil || way != "named" {
		t.Errorf("a tool was called in the way %q: %v", way, err)
	}
	if err := good.CheckStream(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	prose := clientOf(t, 3, openaitest.NewServer(t, openaitest.Func(func(openaitest.Request) openaitest.Reply { return openaitest.Text("No.") })))
	_, err := prose.CheckTool(t.Context(), "a")
	class(t, err, llm.Malformed)
	whole := clientOf(t, 3, openaitest.NewServer(t, openaitest.Raw(200, "application/json", `{"choices":[{"message":{"content":"pong"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}`)))
	class(t, whole.CheckStream(t.Context(), "a"), llm.Malformed)
	silent := clientOf(t, 3, openaitest.NewServer(t, openaitest.Text("pong").NoUsage()))
	class(t, silent.CheckStream(t.Context(), "a"), llm.Malformed)
	denied := clientOf(t, 3, openaitest.NewServer(t, openaitest.Error(401, "", ""), openaitest.Error(401, "", "")))
	_, err = denied.CheckTool(t.Context(), "a")
	class(t, err, llm.Denied)
	class(t, denied.CheckStream(t.Context(), "a"), llm.Denied)
}
