// Package embed computes the missing vectors of stored texts in the background.
package embed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"ebb/memory"
	"ebb/sessions/periodic"
	"ebb/sessions/retry"
)

// Store keeps the vectors of texts.
type Store interface {
	// Unembedded lists texts without a vector of a model: memories in force, people's messages, answers.
	Unembedded(ctx context.Context, model string, limit int) ([]memory.Unembedded, error)

	// KeepVectors stores a vector for each text that still exists; an empty one marks a text that can have none.
	KeepVectors(ctx context.Context, model string, texts []memory.Unembedded, vectors [][]float32) error

	// DropVectors deletes the vectors of other models and returns their number.
	DropVectors(ctx context.Context, model string) (int, error)
}

// Filler stores vectors of texts. The storage keeps its progress. A new model starts over; the former one's vectors
// are deleted once the new ones are complete.
type Filler struct {
	Store     Store
	Embedder  memory.Embedder
	Batch     int           // texts a request; 0: 64
	PerMinute int           // requests; 0: no bound
	Pause     time.Duration // between searches for new texts; 0: 5 s
	// Leads reports whether this replica fills; nil: always.
	Leads func(ctx context.Context) (bool, error)

	limiter *rate.Limiter
	batch   int // the number of texts that the endpoint accepts
}

const (
	defaultBatch = 64
	defaultPause = 5 * time.Second
	// shortText characters are tried of a refused text.
	shortText = 400
	// Any working endpoint accepts probe.
	probe = "hello"
)

var outagePauses = retry.Pauses{First: 2 * time.Second, Max: 5 * time.Minute}

// Run fills until ctx ends. An outage of the endpoint is logged once; meanwhile searches find by words.
func (f *Filler) Run(ctx context.Context) {
	periodic.Run(ctx, periodic.Task{
		Interval: cmp.Or(f.Pause, defaultPause), AtOnce: true, Leads: f.Leads, Do: f.fillOnce,
		Pauses: outagePauses, Failure: "Embedding stopped, trying again", Recovery: "Embedding goes on",
	})
}

func (f *Filler) fillOnce(ctx context.Context) error {
	n, err := f.Fill(ctx)
	if n > 0 {
		zerolog.Ctx(ctx).Debug().Int("texts", n).Msg("Embedded texts")
	}
	return err
}

// Fill stores all missing vectors and returns their number, also with an error. It is not safe for concurrent use.
func (f *Filler) Fill(ctx context.Context) (int, error) {
	if f.limiter == nil {
		f.limiter = rate.NewLimiter(rate.Inf, 1)
		if f.PerMinute > 0 {
			f.limiter = rate.NewLimiter(rate.Every(time.Minute/time.Duration(f.PerMinute)), 1)
		}
		f.batch = f.Batch
		if f.batch <= 0 {
			f.batch = defaultBatch
		}
	}
	model, done := f.Embedder.Model(), 0
	for {
		texts, err := f.Store.Unembedded(ctx, model, f.batch)
		if err != nil {
			return done, fmt.Errorf("list texts without a vector of %s: %w", model, err)
		}
		if len(texts) == 0 {
			break
		}
		n, err := f.embedBatch(ctx, texts)
		if done += n; err != nil {
			return done, fmt.Errorf("embed %d texts by %s: %w", len(texts), model, err)
		}
	}
	if _, err := f.Store.DropVectors(ctx, model); err != nil {
		return done, fmt.Errorf("drop vectors of models before %s: %w", model, err)
	}
	return done, nil
}

// embedBatch asks once for a text that stands at several places, and takes over vectors that another place has. Vectors that arrived
// are stored even if a later request of the batch failed.
func (f *Filler) embedBatch(ctx context.Context, texts []memory.Unembedded) (int, error) {
	var known []memory.Unembedded
	var vectors [][]float32
	var ask []string
	place := map[string]int{} // hash -> place in ask
	for _, t := range texts {
		if _, ok := place[string(t.Hash)]; t.Known == nil && !ok {
			place[string(t.Hash)] = len(ask)
			ask = append(ask, t.Content)
		}
	}
	got, err := f.embedTexts(ctx, ask)
	for _, t := range texts {
		v := t.Known
		if v == nil {
			at := place[string(t.Hash)]
			if at >= len(got) {
				continue
			}
			v = got[at]
		}
		known, vectors = append(known, t), append(vectors, v)
	}
	if len(known) > 0 {
		if kept := f.Store.KeepVectors(ctx, f.Embedder.Model(), known, vectors); kept != nil {
			return 0, errors.Join(err, kept)
		}
	}
	return len(known), err
}

// Refused batches are halved down to one text, which gets an empty vector. After an error it returns the vectors so
// far.
func (f *Filler) embedTexts(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	if f.batch > 0 && len(texts) > f.batch { // learned from the first half
		first, err := f.embedTexts(ctx, texts[:f.batch])
		if err != nil {
			return first, err
		}
		rest, err := f.embedTexts(ctx, texts[f.batch:])
		return append(first, rest...), err
	}
	got, err := f.requestVectors(ctx, texts)
	if fault, ok := errors.AsType[memory.EmbedFault](err); err == nil || !ok || !fault.Unfit() {
		return got, err
	}
	if len(texts) == 1 {
		return f.embedOne(ctx, texts[0], err)
	}
	half := (len(texts) + 1) / 2
	first, err := f.embedTexts(ctx, texts[:half])
	if err != nil {
		return first, err
	}
	second, err := f.embedTexts(ctx, texts[half:])
	all := append(first, second...)
	if err == nil && !anyEmpty(all) {
		f.batch = min(f.batch, half) // the texts were too many
	}
	return all, err
}

// embedOne tries the beginning of a refused text. If the endpoint refuses every text, the text is not at fault.
func (f *Filler) embedOne(ctx context.Context, text string, refusal error) ([][]float32, error) {
	if runes := []rune(text); len(runes) > shortText {
		got, err := f.requestVectors(ctx, []string{string(runes[:shortText])})
		if fault, ok := errors.AsType[memory.EmbedFault](err); err == nil || !ok || !fault.Unfit() {
			return got, err
		}
	}
	if _, err := f.requestVectors(ctx, []string{probe}); err != nil {
		return nil, refusal
	}
	zerolog.Ctx(ctx).Debug().Err(refusal).Msg("Text can't be embedded, left to search by words")
	return [][]float32{{}}, nil
}

func (f *Filler) requestVectors(ctx context.Context, texts []string) ([][]float32, error) {
	if err := f.limiter.Wait(ctx); err != nil {
		return nil, err
	}
	got, err := f.Embedder.Embed(ctx, texts)
	if err == nil && len(got) != len(texts) {
		err = fmt.Errorf("got %d vectors for %d texts", len(got), len(texts))
	}
	if err != nil {
		return nil, err
	}
	return got, nil
}

func anyEmpty(vectors [][]float32) bool {
	for _, v := range vectors {
		if len(v) == 0 {
			return true
		}
	}
	return false
}
