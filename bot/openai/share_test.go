package openai

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	goopenai "github.com/sashabaranov/go-openai"
	"pgregory.net/rapid"
)

// endpoint is a provider inside a bubble of synctest: no socket, and the bubble's clock.
type endpoint struct {
	way   string
	after time.Duration
	begun time.Time
	mu    sync.Mutex
	asked []time.Duration // when, from begun
}

var ways = []string{"hangs", "headers", "one token", "500", "breaks", "answers"}

// RoundTrip implements http.RoundTripper.
func (e *endpoint) RoundTrip(req *http.Request) (*http.Response, error) {
	e.mu.Lock()
	e.asked = append(e.asked, time.Since(e.begun))
	e.mu.Unlock()
	ctx := req.Context()
	wait := func(d time.Duration) bool {
		select {
		case <-time.After(d):
			return true
		case <-ctx.Done():
			return false
		}
	}
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: req}
	if e.way == "hangs" || (e.way == "500" || e.way == "breaks") && !wait(e.after) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if e.way == "500" {
		resp.StatusCode, resp.Header = http.StatusInternalServerError, http.Header{}
		resp.Body = io.NopCloser(strings.NewReader(""))
		return resp, nil
	}
	r, w := io.Pipe()
	resp.Body = r
	go func() {
		token := func(s string) {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", s)
		}
		switch e.way {
		case "one token":
			token("好")
		case "breaks":
			token("好")
			_ = w.CloseWithError(io.ErrUnexpectedEOF)
			return
		case "answers":
			if wait(e.after) {
				token("好")
				fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
				_ = w.Close()
				return
			}
		}
		<-ctx.Done()
		_ = w.CloseWithError(ctx.Err())
	}()
	return resp, nil
}

// A call ends within its time, and every model has its share of it. A model that would answer within an equal part of
// the time is asked early enough, for any models before it and any configured times.
func TestEveryModelHasItsShare(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		models := rapid.IntRange(1, 4).Draw(rt, "models")
		seconds := func(from, to int, what string) time.Duration {
			return time.Duration(rapid.IntRange(from, to).Draw(rt, what)) * time.Second
		}
		whole := seconds(1, 600, "whole")
		cfg := Config{}
		var endpoints []*endpoint
		for i := range models {
			cfg.Models = append(cfg.Models, ModelConfig{
				Name: fmt.Sprint(i), BaseURL: "http://provider.invalid/v1", Model: "m", Retries: rapid.IntRange(0, 4).Draw(rt, "retries"),
				Timeout: seconds(1, 300, "timeout"), FirstToken: seconds(1, 120, "first"),
			})
			endpoints = append(endpoints, &endpoint{way: rapid.SampledFrom(ways).Draw(rt, "way"), after: seconds(0, 200, "after")})
		}
		synctest.Test(t, func(*testing.T) {
			c, err := New(cfg)
			if err != nil {
				rt.Fatal(err)
			}
			for i, m := range c.models {
				endpoints[i].begun = time.Now()
				conf := goopenai.DefaultConfig("")
				conf.BaseURL, conf.HTTPClient = m.conf.BaseURL, doer{&http.Client{Transport: endpoints[i]}}
				m.api = goopenai.NewClientWithConfig(conf)
			}
			began := time.Now()
			ctx, stop := context.WithTimeout(context.Background(), whole)
			defer stop()
			resp, err := c.Generate(ctx, ask("你好"))
			took, each := time.Since(began), whole/time.Duration(models)
			if took > whole {
				rt.Errorf("the call took %s of %s", took, whole)
			}
			for i, e := range endpoints {
				if err == nil && resp.Model < fmt.Sprint(i) {
					break
				}
				if len(e.asked) == 0 || e.asked[0] > time.Duration(i)*each+time.Millisecond {
					rt.Fatalf("model %d of %d was asked at %v of %s: %v", i, models, e.asked, whole, err)
				}
				limit := min(each, c.models[i].conf.Timeout)
				if i < models-1 {
					limit = min(limit, c.models[i].conf.FirstToken)
				}
				if e.way == "answers" && e.after < limit && (err != nil || resp.Model != fmt.Sprint(i)) {
					rt.Fatalf("model %d answers after %s of its %s, the answer is of %q: %v", i, e.after, limit, resp.Model, err)
				}
			}
		})
	})
}
