package openai

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/bot/openai/openaitest"
	"ebb/memory"
	"ebb/sessions/llm"
)

func newEmbedder(t *testing.T, url string, conf EmbedConfig) *Embedder {
	t.Helper()
	conf.BaseURL, conf.Model = url, "embed-1"
	e, err := NewEmbedder(conf)
	if err != nil {
		t.Fatal(err)
	}
	e.client.common.pauses.First = time.Millisecond
	t.Cleanup(e.Close)
	return e
}

func newEmbedServer(t *testing.T, o openaitest.Options) *openaitest.Server {
	t.Helper()
	s := openaitest.New(o)
	t.Cleanup(s.Close)
	return s
}

var _ memory.Embedder = (*Embedder)(nil)

// The outcome of each request is reported, so that a refused key is noticed.
func TestEmbedReportsOutcomes(t *testing.T) {
	t.Parallel()
	s := newEmbedServer(t, openaitest.Options{})
	e := newEmbedder(t, s.URL, EmbedConfig{})
	var got []string
	e.Report(func(_ context.Context, parts []llm.Part) {
		for _, p := range parts {
			class := llm.ErrorClass("")
			if p.Err != nil {
				class = p.Err.Class
			}
			got = append(got, p.Model+" "+string(class))
		}
	})
	_, _ = e.Embed(t.Context(), []string{"a"})
	s.Behave("embed_denied")
	if _, err := e.Embed(t.Context(), []string{"b"}); err == nil || strings.Contains(err.Error(), "sk-provider") {
		t.Errorf("the error of a refused key is %v", err)
	}
	if want := []string{"embed-1 ", "embed-1 " + string(llm.Denied)}; !slices.Equal(got, want) {
		t.Errorf("reported %q, want %q", got, want)
	}
}

func TestEmbed(t *testing.T) {
	t.Parallel()
	s := newEmbedServer(t, openaitest.Options{APIKey: "sk-right"})
	e := newEmbedder(t, s.URL, EmbedConfig{APIKey: "sk-right\n", Dimensions: 64})
	texts := []string{"部署在周五", "the budget is 15,000", "部署在周五"}
	got, err := e.Embed(t.Context(), texts)
	if err != nil || len(got) != 3 {
		t.Fatalf("%d vectors came: %v", len(got), err)
	}
	for i, v := range got {
		if !slices.Equal(v, openaitest.Vector(texts[i], 64, nil)) {
			t.Errorf("the vector of text %d is another's", i)
		}
	}
	if q := s.Embeddings(); len(q) != 1 || q[0].Model != "embed-1" || q[0].Dimensions != 64 || !slices.Equal(q[0].Texts, texts) {
		t.Errorf("asked %+v", q)
	}
	if e.Model() != "embed-1/64" || newEmbedder(t, s.URL, EmbedConfig{}).Model() != "embed-1" {
		t.Errorf("the model is called %q", e.Model())
	}
	if got, err := e.Embed(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("no texts gave %v, %v", got, err)
	}
}

func TestEmbedFaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault openaitest.Reply
		class llm.ErrorClass
		unfit bool
		asked int
	}{
		"rate limit":        {openaitest.Error(429, "0.01", ""), llm.Busy, false, 3},
		"server error":      {openaitest.Error(500, "", ""), llm.Busy, false, 3},
		"broken":            {openaitest.Text("x").BreakAfter(0), llm.Broken, false, 3},
		"no JSON":           {openaitest.Raw(200, "text/html", "<html>"), llm.Broken, false, 3},
		"too few":           {openaitest.Raw(200, "application/json", `{"data":[{"index":0,"embedding":[1]}]}`), llm.Broken, false, 3},
		"two lengths":       {openaitest.Raw(200, "application/json", `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`), llm.Broken, false, 3},
		"an index too far":  {openaitest.Raw(200, "application/json", `{"data":[{"index":7,"embedding":[1]},{"index":1,"embedding":[1]}]}`), llm.Broken, false, 3},
		"too many at once":  {openaitest.Error(400, "", `{"error":{"message":"batch size is invalid, it should not be larger than 10"}}`), llm.Malformed, true, 1},
		"too long":          {openaitest.Error(400, "", `{"error":{"message":"maximum context length is 512 tokens"}}`), llm.Overflow, true, 1},
		"filtered":          {openaitest.Error(400, "", `{"error":{"code":"data_inspection_failed","message":"inappropriate content"}}`), llm.Refused, true, 1},
		"wrong key":         {openaitest.Error(401, "", `{"error":{"message":"Incorrect API key provided: sk-secret-1"}}`), llm.Denied, false, 1},
		"too many to bear":  {openaitest.Error(429, "3600", ""), llm.Busy, false, 1}, // waits for no hour here
		"key in plain text": {openaitest.Error(403, "", `no access for sk-secret-1`), llm.Denied, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEmbedServer(t, openaitest.Options{EmbedFault: func(openaitest.EmbedRequest) (openaitest.Reply, bool) { return tt.fault, true }})
			e := newEmbedder(t, s.URL, EmbedConfig{APIKey: "sk-secret-1", Retries: 2})
			_, err := e.Embed(t.Context(), []string{"a", "b"})
			fault, ok := errors.AsType[memory.EmbedFault](err)
			if !ok || fault.Unfit() != tt.unfit || llm.ClassOf(err) != tt.class || len(s.Embeddings()) != tt.asked {
				t.Errorf("after %d requests: %v (trouble %v, class %s)", len(s.Embeddings()), err, ok, llm.ClassOf(err))
			}
			if strings.Contains(fmt.Sprintf("%v %+v", err, err), "sk-secret-1") {
				t.Errorf("the error has the key: %v", err)
			}
			if name == "too many to bear" && fault.Wait() < time.Hour {
				t.Errorf("the endpoint's wish is forgotten: %v", fault.Wait())
			}
		})
	}
}

// A busy endpoint is asked again, and a caller who is gone is not kept.
func TestEmbedAgainAndDeadline(t *testing.T) {
	t.Parallel()
	s := newEmbedServer(t, openaitest.Options{EmbedFault: func(r openaitest.EmbedRequest) (openaitest.Reply, bool) {
		if r.Texts[0] == "hang" {
			return openaitest.Hang(), true
		}
		return openaitest.Error(503, "", ""), r.N < 3
	}})
	e := newEmbedder(t, s.URL, EmbedConfig{Retries: 5})
	if got, err := e.Embed(t.Context(), []string{"a"}); err != nil || len(got) != 1 || len(s.Embeddings()) != 3 {
		t.Fatalf("after %d requests: %v", len(s.Embeddings()), err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := e.Embed(ctx, []string{"hang"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller whose time is over hears %v", err)
	}
}

func TestEmbedConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, conf := range []EmbedConfig{{}, {BaseURL: "ftp://x", Model: "m"}, {BaseURL: "http://x/v1"}} {
		if _, err := NewEmbedder(conf); err == nil {
			t.Errorf("%+v is taken", conf)
		}
	}
}

// The texts to embed are people's words, which an endpoint may repeat.
func TestEmbedErrorsHaveNoWordOfTheEndpoint(t *testing.T) {
	t.Parallel()
	s := newEmbedServer(t, openaitest.Options{EmbedFault: func(r openaitest.EmbedRequest) (openaitest.Reply, bool) {
		return openaitest.Error(500, "", `{"error":{"code":"upstream_error","message":"cannot embed `+r.Texts[0]+`"}}`), true
	}})
	_, err := newEmbedder(t, s.URL, EmbedConfig{}).Embed(t.Context(), []string{"SECRETWORD"})
	if err == nil || strings.Contains(err.Error(), "SECRETWORD") || !strings.Contains(err.Error(), "upstream_error (23 bytes, hash ") {
		t.Errorf("got %v", err)
	}
}

// An endpoint that takes a number of texts at a time refuses once, where it names the number.
func TestEmbedLearnsTheNumberOfTexts(t *testing.T) {
	t.Parallel()
	s := newEmbedServer(t, openaitest.Options{Behaviours: []string{"embed_limit:10"}})
	e := newEmbedder(t, s.URL, EmbedConfig{})
	texts := make([]string, 64)
	for i := range texts {
		texts[i] = fmt.Sprint("text ", i)
	}
	for _, requests := range []int{8, 7} {
		before := len(s.Embeddings())
		got, err := e.Embed(t.Context(), texts)
		if err != nil || len(got) != 64 || !slices.Equal(got[63], openaitest.Vector("text 63", 0, nil)) {
			t.Fatalf("%d vectors: %v", len(got), err)
		}
		if n := len(s.Embeddings()) - before; n != requests {
			t.Errorf("%d requests, want %d", n, requests)
		}
	}
}
