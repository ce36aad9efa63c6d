package openai

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"ebb/bot/openai/openaitest"
	"ebb/sessions/llm"
)

// A primary that is down in any way is replaced by the backup within its deadline to the first token. The next message
// goes straight to the backup. After the primary has recovered it answers again.
func TestABackupReplacesAModelThatIsDown(t *testing.T) {
	t.Parallel()
	words := openaitest.Text("说着说着就没有了").Pieces(1)
	for name, tt := range map[string]struct {
		fault  openaitest.Reply
		class  llm.ErrorClass
		before int // requests before the breaker opens, with one retry
	}{
		"takes the request and never answers": {openaitest.Hang(), llm.Timeout, 1},
		"sends headers and nothing more":      {words.QuietAfter(0), llm.Timeout, 1},
		"sends one token and nothing more":    {words.QuietAfter(1), llm.Timeout, 1},
		"thinks one thought and no more":      {words.Thinking("嗯").QuietAfter(1), llm.Timeout, 1},
		"sends empty chunks without end":      {openaitest.Events(empties(2000)...).Slow(20 * time.Millisecond), llm.Timeout, 1},
		"refuses by a 503":                    {openaitest.Error(503, "", ""), llm.Busy, 2},
		"refuses the key":                     {openaitest.Error(401, "", ""), llm.Denied, 1},
		"limits the rate":                     {openaitest.Error(429, "30", ""), llm.Busy, 1},
		"breaks every answer off":             {words.BreakAfter(2), llm.Broken, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var down atomic.Bool
			down.Store(true)
			a := openaitest.NewServer(t, openaitest.Func(func(openaitest.Request) openaitest.Reply {
				if down.Load() {
					return tt.fault
				}
				return openaitest.Text("a 说")
			}))
			b := openaitest.NewServer(t, openaitest.Func(func(openaitest.Request) openaitest.Reply { return openaitest.Text("b 说") }))
			c := clientOf(t, 1, a, b)
			c.common.idle = 200 * time.Millisecond
			for _, m := range c.models {
				m.conf.FirstToken = 200 * time.Millisecond
			}
			pauses := c.models[0].breaker.pauses
			pauses.InitialInterval = time.Minute
			pauses.Reset()
			began := time.Now()
			answers := func(model string, requests int) llm.Response {
				t.Helper()
				ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
				defer stop()
				resp, err := c.Generate(ctx, ask("你好"))
				if err != nil || resp.Model != model || len(a.Requests()) != requests {
					t.Fatalf("answered by %q after %d requests to a, want %q after %d: %v", resp.Model, len(a.Requests()), model, requests, err)
				}
				return resp
			}
			resp := answers("b", tt.before)
			if len(resp.Parts) != 2 || resp.Parts[0].Err == nil || resp.Parts[0].Err.Class != tt.class || resp.Parts[1].Err != nil {
				t.Errorf("the parts of the call: %+v, want a failure of class %s", resp.Parts, tt.class)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("the backup answered after %s", took)
			}
			answers("b", tt.before)
			down.Store(false)
			c.models[0].breaker.mu.Lock()
			c.models[0].breaker.until = time.Now() // the pause is over
			c.models[0].breaker.mu.Unlock()
			answers("a", tt.before+1)
			answers("a", tt.before+2)
		})
	}
}

func empties(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = `{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`
	}
	return out
}

// A request's own fault says nothing about the model.
func TestABadRequestOpensNoBreaker(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]openaitest.Reply{
		"invalid":  openaitest.Error(400, "", `{"error":{"code":"invalid_request_error","message":"messages[3].content is invalid"}}`),
		"overflow": openaitest.Error(400, "", `{"error":{"code":"context_length_exceeded","message":"maximum context length is 8192 tokens"}}`),
		"filter":   openaitest.Error(400, "", `{"error":{"code":"data_inspection_failed","message":"inappropriate content"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := openaitest.NewServer(t, openaitest.WhenFunc(openaitest.IsKind(openaitest.Chat), func(openaitest.Request) openaitest.Reply { return fault }))
			b := openaitest.New(openaitest.Options{})
			t.Cleanup(b.Close)
			c := clientOf(t, 1, a, b)
			for n := range 5 {
				_, _ = c.Generate(t.Context(), ask("你好"))
				if got := len(a.Requests()); got != n+1 || c.models[0].breaker.state() != llm.Up {
					t.Fatalf("after %d requests a was asked %d times and is in state %d", n+1, got, c.models[0].breaker.state())
				}
			}
		})
	}
}

// The last model is asked also when it is down: there is nothing to lose.
func TestTheOnlyModelIsAlwaysAsked(t *testing.T) {
	t.Parallel()
	a := openaitest.NewServer(t, openaitest.WhenFunc(openaitest.IsKind(openaitest.Chat), func(r openaitest.Request) openaitest.Reply {
		if r.N <= 4 {
			return openaitest.Error(500, "", "")
		}
		return openaitest.Text("好")
	}))
	c := clientOf(t, 1, a)
	for range 2 {
		_, err := c.Generate(t.Context(), ask("你好"))
		class(t, err, llm.Busy)
	}
	if resp, err := c.Generate(t.Context(), ask("你好")); err != nil || resp.Text != "好" || c.models[0].breaker.state() != llm.Up {
		t.Errorf("got %q, %v, state %d", resp.Text, err, c.models[0].breaker.state())
	}
}

// A provider that names the time of its next request gets none before, and a call that can't wait for it ends at once.
func TestARateLimitIsHonoured(t *testing.T) {
	t.Parallel()
	a := openaitest.NewServer(t, openaitest.Error(429, "600", ""))
	c := clientOf(t, 3, a)
	for range 3 {
		_, err := c.Generate(t.Context(), ask("你好"))
		if m := class(t, err, llm.Busy); m.Status != 429 || m.After == 0 {
			t.Errorf("got %v", m)
		}
	}
	if n := len(a.Requests()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// Many calls at once send one trial to a model that is down, and the rest to its backup.
func TestOneCallTriesAModelThatWasDown(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	a := openaitest.NewServer(t, openaitest.Func(func(r openaitest.Request) openaitest.Reply {
		if r.N == 1 {
			return openaitest.Error(401, "", "")
		}
		<-release
		return openaitest.Text("a 说")
	}))
	b := openaitest.NewServer(t, openaitest.Func(func(openaitest.Request) openaitest.Reply { return openaitest.Text("b 说") }))
	c := clientOf(t, 0, a, b)
	if resp, err := c.Generate(t.Context(), ask("你好")); err != nil || resp.Model != "b" {
		t.Fatalf("got %+v, %v", resp, err)
	}
	c.models[0].breaker.until = time.Now()
	trial := make(chan string, 1)
	go func() {
		resp, _ := c.Generate(t.Context(), ask("你好"))
		trial <- resp.Model
	}()
	if _, err := a.Wait(t.Context(), func(r openaitest.Request) bool { return r.N == 2 }); err != nil {
		t.Fatal(err)
	}
	if s := c.models[0].breaker.state(); s != llm.OnTrial {
		t.Errorf("state %d while a call tries the model", s)
	}
	for range 8 {
		if resp, err := c.Generate(t.Context(), ask("你好")); err != nil || resp.Model != "b" {
			t.Fatalf("got %+v, %v", resp, err)
		}
	}
	close(release)
	if model := <-trial; model != "a" || len(a.Requests()) != 2 {
		t.Errorf("the trial was answered by %q after %d requests", model, len(a.Requests()))
	}
}

// A call may be allowed a number of requests in all, to all models together.
func TestRequestsAreCountedOnce(t *testing.T) {
	t.Parallel()
	fault := openaitest.Func(func(openaitest.Request) openaitest.Reply { return openaitest.Error(500, "", "") })
	a, b := openaitest.NewServer(t, fault), openaitest.NewServer(t, fault)
	c := clientOf(t, 3, a, b)
	r := ask("你好")
	for n := 1; n <= 4; n++ {
		r.Requests = 1
		_, err := c.Generate(t.Context(), r)
		class(t, err, llm.Busy)
		if got := len(a.Requests()) + len(b.Requests()); got != n {
			t.Fatalf("%d requests after %d calls of one each", got, n)
		}
	}
	if len(b.Requests()) == 0 {
		t.Error("the backup was never asked")
	}
}

// A call that tries a model panics: the next call tries the model again.
func TestATrialEndsWithAPanic(t *testing.T) {
	t.Parallel()
	a := openaitest.NewServer(t, openaitest.Func(func(openaitest.Request) openaitest.Reply { return openaitest.Text("a 说") }))
	b := openaitest.NewServer(t, openaitest.Func(func(openaitest.Request) openaitest.Reply { return openaitest.Text("b 说") }))
	c := clientOf(t, 0, a, b)
	p, _ := c.models[0].breaker.enterPass()
	p.endPass(enough, 0)
	c.models[0].breaker.until = time.Now() // the pause is over
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the call did not panic")
			}
		}()
		r := ask("你好")
		r.Delta = func(string, bool) { panic("of the caller") }
		_, _ = c.Generate(t.Context(), r)
	}()
	if resp, err := c.Generate(t.Context(), ask("你好")); err != nil || resp.Model != "a" {
		t.Errorf("answered by %q, %v; want the model that was on trial", resp.Model, err)
	}
}
