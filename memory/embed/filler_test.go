package embed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"ebb/memory"
)

// vectors is a storage of texts in memory.
type vectors struct {
	texts   []string
	known   map[string][]float32 // texts whose vector another row has
	kept    map[string][]float32 // by model and text
	dropped []string
}

func newVectors(texts ...string) *vectors {
	return &vectors{texts: texts, kept: map[string][]float32{}, known: map[string][]float32{}}
}

func (v *vectors) Unembedded(_ context.Context, model string, limit int) ([]memory.Unembedded, error) {
	var out []memory.Unembedded
	for i, t := range v.texts {
		if _, ok := v.kept[model+t]; !ok && len(out) < limit {
			out = append(out, memory.Unembedded{Hash: []byte(t), Content: t, Seq: int64(i + 1), Known: v.known[t]})
		}
	}
	return out, nil
}

func (v *vectors) KeepVectors(_ context.Context, model string, texts []memory.Unembedded, got [][]float32) error {
	for i, t := range texts {
		v.kept[model+string(t.Hash)] = got[i]
	}
	return nil
}

func (v *vectors) DropVectors(_ context.Context, model string) (int, error) {
	v.dropped = append(v.dropped, model)
	return 0, nil
}

// refusal is an endpoint's trouble.
type refusal struct {
	unfit bool
	wait  time.Duration
}

func (r refusal) Error() string       { return "refused" }
func (r refusal) Unfit() bool         { return r.unfit }
func (r refusal) Wait() time.Duration { return r.wait }

// endpoint makes vectors of one number, the length of the text. It takes most texts at a time, and none of refuse.
type endpoint struct {
	most   int
	refuse string
	fails  []error // errors of the next requests; nil: it answers
	asked  [][]string
	times  []time.Time
	onAsk  func()
}

func (*endpoint) Model() string { return "m" }

func (e *endpoint) Embed(_ context.Context, texts []string) ([][]float32, error) {
	e.asked, e.times = append(e.asked, texts), append(e.times, time.Now())
	if e.onAsk != nil {
		e.onAsk()
	}
	if len(e.fails) > 0 {
		err := e.fails[0]
		if e.fails = e.fails[1:]; err != nil {
			return nil, err
		}
	}
	bad := func(s string) bool { return e.refuse != "" && strings.Contains(s, e.refuse) }
	if e.most > 0 && len(texts) > e.most || slices.ContainsFunc(texts, bad) {
		return nil, refusal{unfit: true}
	}
	var out [][]float32
	for _, t := range texts {
		out = append(out, []float32{float32(len(t))})
	}
	return out, nil
}

func TestFillInBatches(t *testing.T) {
	t.Parallel()
	store, e := newVectors(), &endpoint{}
	for i := range 10 {
		store.texts = append(store.texts, fmt.Sprint("text ", i))
	}
	store.texts = append(store.texts, "text 3")
	store.known["text 5"] = []float32{55}
	f := &Filler{Store: store, Embedder: e, Batch: 4}
	n, err := f.Fill(t.Context())
	if err != nil || n != 10 || len(store.kept) != 10 || store.kept["mtext 5"][0] != 55 || store.kept["mtext 3"][0] != 6 {
		t.Fatalf("%d were filled (%v): %v", n, err, store.kept)
	}
	sent := 0
	for _, texts := range e.asked {
		sent += len(texts)
	}
	if len(e.asked) != 3 || sent != 9 {
		t.Errorf("a text that is known was sent, or the batches are not full: %v", e.asked)
	}
	if len(store.dropped) != 1 {
		t.Errorf("the former model's vectors went %d times", len(store.dropped))
	}
	if n, err := f.Fill(t.Context()); err != nil || n != 0 || len(e.asked) != 3 {
		t.Errorf("a finished batch was repeated: %d, %v, %v", n, err, e.asked)
	}
}

// One text that the endpoint does not take holds up no other and is not sent again; of a long one the beginning may do.
func TestFillPassesARefusedText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 500) + "BAD"
	store, e := newVectors("one", "BAD thing", "two", "three", long), &endpoint{refuse: "BAD"}
	f := &Filler{Store: store, Embedder: e, Batch: 64}
	if n, err := f.Fill(t.Context()); err != nil || n != 5 {
		t.Fatalf("%d were filled: %v", n, err)
	}
	if v, ok := store.kept["mBAD thing"]; !ok || len(v) != 0 {
		t.Errorf("the refused text has %v", v)
	}
	if v := store.kept["m"+long]; len(v) != 1 || v[0] != shortText {
		t.Errorf("the long text has %v", v)
	}
	if len(store.kept["mthree"]) != 1 {
		t.Errorf("a text beside the refused one has %v", store.kept["mthree"])
	}
	asked := len(e.asked)
	if _, err := f.Fill(t.Context()); err != nil || len(e.asked) != asked {
		t.Errorf("the refused text was sent again: %v, %v", e.asked[asked:], err)
	}
}

// An endpoint that takes fewer texts at once is asked for no more than that from then on.
func TestFillLearnsTheBatch(t *testing.T) {
	t.Parallel()
	store, e := newVectors(), &endpoint{most: 10}
	for i := range 200 {
		store.texts = append(store.texts, fmt.Sprint("text ", i))
	}
	f := &Filler{Store: store, Embedder: e, Batch: 64}
	if n, err := f.Fill(t.Context()); err != nil || n != 200 {
		t.Fatalf("%d were filled: %v", n, err)
	}
	refused := 0
	for _, texts := range e.asked {
		if len(texts) > 10 {
			refused++
		}
	}
	if refused > 8 {
		t.Errorf("%d of %d requests were too large", refused, len(e.asked))
	}
}

// An endpoint that takes nothing at all is at fault itself: no text is given up for it.
func TestFillBlamesTheEndpoint(t *testing.T) {
	t.Parallel()
	store, e := newVectors("one", "two"), &endpoint{fails: slices.Repeat([]error{refusal{unfit: true}}, 20)}
	if n, err := (&Filler{Store: store, Embedder: e}).Fill(t.Context()); err == nil || n != 0 || len(store.kept) != 0 {
		t.Errorf("%d were filled (%v): %v", n, err, store.kept)
	}
	if len(store.dropped) != 0 {
		t.Error("vectors of the former model went though the new ones are not there")
	}
}

// A busy endpoint is left alone for as long as it wants and asked again; the trouble is logged once. Requests keep their
// pace, and the end of the context is the end.
func TestFillerRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		ctx, stop := context.WithCancel(zerolog.New(&log).WithContext(t.Context()))
		defer stop()
		store, e := newVectors(), &endpoint{fails: []error{refusal{wait: time.Minute}, errors.New("down"), nil}}
		for i := range 6 {
			store.texts = append(store.texts, fmt.Sprint("text ", i))
		}
		var looked sync.Mutex // held while the test looks: each round of the filler comes after that
		leads := false
		f := &Filler{Store: store, Embedder: e, Batch: 2, PerMinute: 60, Leads: func(context.Context) (bool, error) {
			looked.Lock()
			defer looked.Unlock()
			return leads, nil
		}}
		done := make(chan struct{})
		go func() { defer close(done); f.Run(ctx) }()
		<-time.After(time.Minute)
		synctest.Wait()
		looked.Lock()
		if len(e.asked) != 0 {
			t.Errorf("a replica that is not the first asked %v", e.asked)
		}
		leads = true
		looked.Unlock()
		<-time.After(5 * time.Minute)
		synctest.Wait()
		looked.Lock()
		if len(store.kept) != 6 || len(e.asked) != 5 {
			t.Fatalf("%d were kept by %v", len(store.kept), e.asked)
		}
		if wait := e.times[1].Sub(e.times[0]); wait < time.Minute {
			t.Errorf("the endpoint was left alone for %s", wait)
		}
		for i := 3; i < 5; i++ {
			if wait := e.times[i].Sub(e.times[i-1]); wait < time.Second {
				t.Errorf("requests %d and %d are %s apart", i, i+1, wait)
			}
		}
		if n := strings.Count(log.String(), "Embedding stopped"); n != 1 || strings.Count(log.String(), "Embedding goes on") != 1 {
			t.Errorf("the trouble was logged %d times: %s", n, &log)
		}
		store.texts = append(store.texts, "a new one")
		looked.Unlock()
		<-time.After(time.Minute)
		synctest.Wait()
		if _, ok := store.kept["ma new one"]; !ok {
			t.Error("a new text has no vector after a minute")
		}
		stop()
		<-done
	})
}

// An endpoint that takes a number of texts at a time, and does not say so, refuses one request for each halving.
func TestFillLearnsTheNumberOfTexts(t *testing.T) {
	t.Parallel()
	store, e := newVectors(), &endpoint{most: 10}
	for i := range 128 {
		store.texts = append(store.texts, fmt.Sprint("text ", i))
	}
	f := &Filler{Store: store, Embedder: e}
	if n, err := f.Fill(t.Context()); err != nil || n != 128 {
		t.Fatalf("%d were filled: %v", n, err)
	}
	refused := 0
	for _, texts := range e.asked {
		if len(texts) > e.most {
			refused++
		}
	}
	if refused != 3 || len(e.asked) != 3+16 {
		t.Errorf("%d of %d requests were refused, want 3 of 19", refused, len(e.asked))
	}
}
