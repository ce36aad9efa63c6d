package openai

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	goopenai "github.com/sashabaranov/go-openai"

	"ebb/sessions/llm"
)

// clientOfEndpoints runs in a bubble of synctest. Its models are named 0, 1 …
func clientOfEndpoints(t *testing.T, endpoints ...*endpoint) *Client {
	t.Helper()
	var cfg Config
	for i := range endpoints {
		cfg.Models = append(cfg.Models, ModelConfig{Name: fmt.Sprint(i), BaseURL: "http://provider.invalid/v1", Model: "m"})
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range c.models {
		endpoints[i].begun = time.Now()
		conf := goopenai.DefaultConfig("")
		conf.BaseURL, conf.HTTPClient = m.conf.BaseURL, doer{&http.Client{Transport: endpoints[i]}}
		m.api = goopenai.NewClientWithConfig(conf)
	}
	return c
}

// hookCounter counts the functions that wait for a context's end.
type hookCounter struct {
	context.Context
	live atomic.Int32
}

// Value hides the context below, so that package context calls AfterFunc.
func (h *hookCounter) Value(any) any { return nil }

func (h *hookCounter) AfterFunc(f func()) func() bool {
	h.live.Add(1)
	stop := context.AfterFunc(h.Context, f)
	return func() bool { h.live.Add(-1); return stop() }
}

func (e *endpoint) requests() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

// A model that hangs costs one person its time to the first token. While it stays so, a probe costs three seconds, and one that
// comes back slowly is found all the same.
func TestAProbeCostsThreeSeconds(t *testing.T) {
	t.Parallel()
	for name, delta := range map[string]func(string, bool){"streamed": func(string, bool) {}, "unseen": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				main, spare := &endpoint{way: "hangs"}, &endpoint{way: "answers", after: time.Second}
				c := clientOfEndpoints(t, main, spare)
				defer c.Close()
				hooks := &hookCounter{Context: c.common.life}
				c.common.life = hooks
				call := func(model string, took time.Duration, requests int) {
					t.Helper()
					ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
					defer stop()
					r := ask("你好")
					r.Delta = delta
					began := time.Now()
					resp, err := c.Generate(ctx, r)
					if err != nil || resp.Model != model || time.Since(began) != took || main.requests() != requests {
						t.Fatalf("answered by %q after %s and %d requests to the main model, want %q after %s and %d: %v",
							resp.Model, time.Since(began), main.requests(), model, took, requests, err)
					}
				}
				pause := func() {
					time.Sleep(time.Until(c.models[0].breaker.until) + time.Second)
					synctest.Wait()
				}
				call("1", defaultFirst+time.Second, 1)
				call("1", time.Second, 1)
				pause()
				call("1", probeTime+time.Second, 2)
				call("1", time.Second, 2) // while the probe goes on
				time.Sleep(defaultFirst)
				synctest.Wait()
				if s := c.models[0].breaker.state(); s != llm.Down {
					t.Fatalf("state %d after a probe without an answer", s)
				}
				pause()
				main.way, main.after = "answers", 10*time.Second
				call("1", probeTime+time.Second, 3)
				time.Sleep(main.after)
				synctest.Wait()
				if s := c.models[0].breaker.state(); s != llm.Up {
					t.Fatalf("state %d after a late answer to a probe", s)
				}
				if n := hooks.live.Load(); n != 0 {
					t.Fatalf("the client keeps %d probes that ended", n)
				}
				call("0", main.after, 4)
			})
		})
	}
}

// A probe whose answer comes when another model has answered is paid for all the same.
func TestALateProbeIsCounted(t *testing.T) {
	t.Parallel()
	for name, delta := range map[string]func(string, bool){"streamed": func(string, bool) {}, "unseen": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				main, spare := &endpoint{way: "hangs"}, &endpoint{way: "answers", after: time.Second}
				c := clientOfEndpoints(t, main, spare)
				defer c.Close()
				late := make(chan llm.Part, 9)
				call := func() {
					t.Helper()
					r := ask("你好，请问发布会几点开始")
					r.Delta, r.Late = delta, func(p llm.Part) { late <- p }
					if resp, err := c.Generate(t.Context(), r); err != nil || resp.Model != "1" {
						t.Fatalf("answered by %q, %v", resp.Model, err)
					}
				}
				call()
				<-time.After(time.Until(c.models[0].breaker.until) + time.Second)
				main.way, main.after = "answers", 10*time.Second
				call()
				if p := <-late; p.Model != "0" || p.Usage.Prompt == 0 || p.Usage.Completion == 0 {
					t.Errorf("the late probe is reported as %+v", p)
				}
				synctest.Wait()
				if len(late) > 0 {
					t.Errorf("%d more reports came", len(late))
				}
			})
		})
	}
}

// A probe that is answered in time is the answer. One whose caller ends it says nothing of the model.
func TestAProbeIsACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		main, spare := &endpoint{way: "hangs"}, &endpoint{way: "answers"}
		c := clientOfEndpoints(t, main, spare)
		defer c.Close()
		generate := func(ctx context.Context) string {
			resp, _ := c.Generate(ctx, ask("你好"))
			return resp.Model
		}
		_ = generate(t.Context())
		time.Sleep(time.Until(c.models[0].breaker.until) + time.Second)
		short, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		if model := generate(short); model != "" || c.models[0].breaker.state() != llm.OnTrial {
			t.Fatalf("a call that ended was answered by %q, the model is in state %d", model, c.models[0].breaker.state())
		}
		synctest.Wait()
		main.way, main.after = "answers", 2*time.Second
		if model := generate(t.Context()); model != "0" || c.models[0].breaker.state() != llm.Up {
			t.Fatalf("answered by %q, the model is in state %d", model, c.models[0].breaker.state())
		}
	})
}

// The first hang of a model ends the waiting of all calls that have no token from it yet.
func TestOneHangFreesAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		main, spare := &endpoint{way: "hangs"}, &endpoint{way: "answers", after: time.Second}
		c := clientOfEndpoints(t, main, spare)
		defer c.Close()
		began := time.Now()
		var all sync.WaitGroup
		for n := range 24 {
			all.Go(func() {
				time.Sleep(time.Duration(n) * time.Second)
				resp, err := c.Generate(t.Context(), ask("你好"))
				if at := time.Since(began); err != nil || resp.Model != "1" || at != defaultFirst+time.Second {
					t.Errorf("call %d was answered by %q at %s: %v", n, resp.Model, at, err)
				}
			})
		}
		all.Wait()
		if n := main.requests(); n != 24 {
			t.Errorf("the main model was asked %d times", n)
		}
	})
}
