package openai

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	goopenai "github.com/sashabaranov/go-openai"

	"ebb/sessions/llm"
)

// EmbedConfig is an endpoint for embeddings.
type EmbedConfig struct {
	// BaseURL includes the version, as in https://host/v1.
	BaseURL string
	// APIKey is a bearer token; may be empty.
	APIKey string
	// Model is the provider's name.
	Model string
	// Dimensions is a vector's requested length; 0 leaves it to the model.
	Dimensions int
	// Timeout bounds one attempt. Default 30 s.
	Timeout time.Duration
	// Retries are for a busy endpoint.
	Retries int
}

// Embedder requests vectors. It is safe for concurrent use.
type Embedder struct {
	client *Client
	conf   EmbedConfig
	most   atomic.Int64 // texts of a request, by the endpoint's refusal; 0: no bound is known
	watch  atomic.Pointer[func(context.Context, []llm.Part)]
}

const defaultEmbedTimeout = 30 * time.Second

// NewEmbedder sends no request.
func NewEmbedder(conf EmbedConfig) (*Embedder, error) {
	if conf.Timeout <= 0 {
		conf.Timeout = defaultEmbedTimeout
	}
	c, err := New(Config{Models: []ModelConfig{{
		Name: "embeddings", BaseURL: conf.BaseURL, APIKey: conf.APIKey, Model: conf.Model, Timeout: conf.Timeout,
	}}})
	if err != nil {
		return nil, err
	}
	return &Embedder{client: c, conf: conf}, nil
}

// Model names the model and its vectors' requested length.
func (e *Embedder) Model() string {
	if e.conf.Dimensions > 0 {
		return fmt.Sprintf("%s/%d", e.conf.Model, e.conf.Dimensions)
	}
	return e.conf.Model
}

// Report passes the outcome of each request to watch, from now on.
func (e *Embedder) Report(watch func(context.Context, []llm.Part)) { e.watch.Store(&watch) }

// Close closes idle connections.
func (e *Embedder) Close() { e.client.Close() }

// Embed returns a vector for each text, in order. An error is an *EmbedError. An endpoint that names the number of texts that it
// takes is asked for that number from then on.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	var vectors [][]float32
	for len(texts) > 0 {
		part := texts
		if most := int(e.most.Load()); most > 0 && most < len(texts) {
			part = texts[:most]
		}
		got, err := e.embedTexts(ctx, part)
		if err != nil && e.learnMost(ctx, len(part), err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		vectors, texts = append(vectors, got...), texts[len(part):]
	}
	return vectors, nil
}

var saysTexts = ruleFile.Regexp("texts")

// learnMost reports whether the refusal names a smaller number of texts.
func (e *Embedder) learnMost(ctx context.Context, n int, err error) bool {
	failed, ok := errors.AsType[*llm.CallError](err)
	if !ok || failed.Class != llm.Malformed || !saysTexts().MatchString(failed.Said) {
		return false
	}
	most := largestBelow(1, n, failed.Said)
	if most == 0 {
		return false
	}
	e.most.Store(int64(most))
	zerolog.Ctx(ctx).Info().Str("model", e.conf.Model).Int("texts", most).Msg("Number of texts that the embedding endpoint takes was learned")
	return true
}

func (e *Embedder) embedTexts(ctx context.Context, texts []string) ([][]float32, error) {
	for n := 0; ; n++ {
		vectors, err := e.attemptEmbed(ctx, texts)
		if watch := e.watch.Load(); watch != nil {
			(*watch)(ctx, []llm.Part{{Model: e.conf.Model, Requests: 1, Err: err}})
		}
		if err == nil {
			return vectors, nil
		}
		if !err.Temporary() || n >= e.conf.Retries || ctx.Err() != nil || !rest(ctx, e.client.common.pauses, n, err.After) {
			return nil, &EmbedError{err}
		}
		zerolog.Ctx(ctx).Debug().Err(err).Int("attempt", n+1).Msg("Embedding endpoint busy, asking again")
	}
}

func (e *Embedder) attemptEmbed(ctx context.Context, texts []string) ([][]float32, *llm.CallError) {
	m, x := e.client.models[0], &exchange{}
	tctx, stop := context.WithTimeoutCause(withExchange(ctx, x), m.conf.Timeout, errTimeout)
	defer stop()
	got, err := m.api.CreateEmbeddings(tctx, goopenai.EmbeddingRequestStrings{
		Input: texts, Model: goopenai.EmbeddingModel(m.conf.Model), Dimensions: e.conf.Dimensions,
	})
	var vectors [][]float32
	if err == nil {
		vectors, err = ordered(got.Data, len(texts))
	}
	if cause := context.Cause(tctx); err != nil && cause != nil && ctx.Err() == nil {
		err = cause // more precise than "context canceled"
	}
	if err != nil {
		return nil, failureOf(ctx, m.conf.Name, e.client.common.redact, x, err)
	}
	return vectors, nil
}

// ordered sorts the vectors into the order of the texts and rejects incomparable ones.
func ordered(data []goopenai.Embedding, n int) ([][]float32, error) {
	vectors := make([][]float32, n)
	indexed := slices.ContainsFunc(data, func(d goopenai.Embedding) bool { return d.Index != 0 }) // some leave it out
	for i, d := range data {
		at := d.Index
		if !indexed {
			at = i
		}
		if at < 0 || at >= n || vectors[at] != nil {
			return nil, fmt.Errorf("%d vectors came for %d texts, one of them for text %d", len(data), n, at)
		}
		vectors[at] = d.Embedding
	}
	for i, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return nil, fmt.Errorf("the vector of text %d has %d numbers, that of the first %d", i, len(v), len(vectors[0]))
		}
		for _, f := range v {
			if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
				return nil, fmt.Errorf("the vector of text %d has a number that is none", i)
			}
		}
	}
	return vectors, nil
}

// EmbedError is a classified failure of an embedding endpoint.
type EmbedError struct{ call *llm.CallError }

// Error returns the text of the failed call.
func (e *EmbedError) Error() string { return e.call.Error() }

// Unfit reports whether the texts are refused: too long, too many, or filtered.
func (e *EmbedError) Unfit() bool {
	return e.call.Class == llm.Malformed || e.call.Class == llm.Overflow || e.call.Class == llm.Refused
}

// Wait is the requested pause; 0 for none.
func (e *EmbedError) Wait() time.Duration { return e.call.After }

// Unwrap returns the classified error.
func (e *EmbedError) Unwrap() error { return e.call }
