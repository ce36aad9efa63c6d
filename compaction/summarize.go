package compaction

import (
	"context"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strings"
	"text/template"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions"
)

// Model completes a prompt without tools. It must not be nil; its errors are attempts that failed.
type Model interface {
	Complete(ctx context.Context, r CompleteRequest) (Completion, error)
}

// CompleteRequest is one summary request.
type CompleteRequest struct {
	Model     string // a configured model's name; empty for the default
	System    string
	User      string
	MaxOutput int // tokens
}

// Completion is a model's answer, with what it took.
type Completion struct {
	Reply
	Model string
	Usage sessions.Usage
	Cost  float64
}

// Summarizer has a model tell a range of events in few words.
type Summarizer struct {
	Model    Model
	Counter  *Counter
	Name     string // the configured model; empty for the default
	Context  int    // its window, in tokens
	Language string // zh or en
	Location *time.Location
	Retries  int           // attempts for one chunk, at least 1
	Backoff  time.Duration // before the second attempt; it doubles
}

// Request is what to tell.
type Request struct {
	Previous string // the summary that the new one continues; empty for none
	Events   []sessions.Event
	Target   int    // tokens
	Focus    string // what an operator asked to keep in mind; data, not instruction
}

// Result is a summary that passed the gate.
type Result struct {
	Text   string
	Tokens int
	Model  string
	Usage  sessions.Usage
	Cost   float64
	Calls  int
}

//go:embed summary.md
var promptText string

var promptTemplate = template.Must(template.New("summary.md").Parse(promptText))

// Summarize tells r.Events, continuing r.Previous. A range that is too large for the model's window is told chunk by
// chunk, each continuing the last. Its error means that nothing usable came of it.
func (s *Summarizer) Summarize(ctx context.Context, r Request) (Result, error) {
	res := Result{Text: r.Previous}
	for _, chunk := range s.chunks(r) {
		got, err := s.attempts(ctx, res.Text, chunk, r)
		res.Usage, res.Cost, res.Calls = res.Usage.Add(got.Usage), res.Cost+got.Cost, res.Calls+got.Calls
		if err != nil {
			return res, err
		}
		res.Text, res.Tokens, res.Model = got.Text, got.Tokens, got.Model
	}
	return res, nil
}

// promptRoom is what the instructions of a summary request take, and estimateMargin what our counts may be off by.
const (
	promptRoom     = 700
	estimateMargin = 1.2
)

// chunks splits events at turn borders into parts that fit into the model's window next to the previous summary, with
// room to answer: at most two fifths of a large window, where attention wanes, and never less than a quarter of a
// small one. One turn that is larger than that is a chunk of its own.
func (s *Summarizer) chunks(r Request) [][]sessions.Event {
	room := float64(s.Context-promptRoom-max(s.Counter.Count(r.Previous), r.Target)-2*r.Target) / estimateMargin
	limit := max(s.Context/4, s.Context*4/10-4096, min(s.Context/2, int(room)))
	events := r.Events
	var out [][]sessions.Event
	from, size := 0, 0
	starts := append(TurnStarts(events), len(events))
	for i := 0; i+1 < len(starts); i++ {
		turn := TokensOf(events[starts[i]:starts[i+1]])
		if size > 0 && size+turn > limit {
			out = append(out, events[from:starts[i]])
			from, size = starts[i], 0
		}
		size += turn
	}
	return append(out, events[from:])
}

// attempts asks for one chunk's summary until one passes the gate, at most Retries times.
func (s *Summarizer) attempts(ctx context.Context, previous string, chunk []sessions.Event, r Request) (Result, error) {
	chunk = s.shorten(chunk)
	req, err := s.request(previous, chunk, r)
	if err != nil {
		return Result{}, err
	}
	source := TokensOf(chunk) + s.Counter.Count(previous)
	var res Result
	for i := 0; ; i++ {
		c, err := s.Model.Complete(ctx, req)
		res.Usage, res.Cost, res.Calls = res.Usage.Add(c.Usage), res.Cost+c.Cost, res.Calls+1
		if err == nil {
			res.Text, res.Model = CleanSummary(c.Text), c.Model
			res.Tokens = s.Counter.Count(res.Text)
			err = CheckSummary(c.Reply, source, res.Tokens)
		}
		if err == nil {
			return res, nil
		}
		zerolog.Ctx(ctx).Warn().Err(err).Int("attempt", i+1).Msg("Summary not usable")
		if i+1 >= s.Retries || ctx.Err() != nil {
			return res, fmt.Errorf("summarize events %d to %d, attempt %d: %w", chunk[0].Seq, chunk[len(chunk)-1].Seq, i+1, err)
		}
		if err := pause(ctx, s.Backoff<<i); err != nil {
			return res, fmt.Errorf("summarize events %d to %d: %w", chunk[0].Seq, chunk[len(chunk)-1].Seq, err)
		}
	}
}

func (s *Summarizer) request(previous string, chunk []sessions.Event, r Request) (CompleteRequest, error) {
	var sys strings.Builder
	if err := promptTemplate.Execute(&sys, map[string]any{"Chinese": s.Language != "en", "Target": r.Target}); err != nil {
		return CompleteRequest{}, fmt.Errorf("write summary prompt: %w", err)
	}
	var user strings.Builder
	if previous != "" {
		user.WriteString(Fence("previous-summary", previous) + "\n\n")
	}
	if f := strings.TrimSpace(r.Focus); f != "" {
		user.WriteString(Fence("focus", HeadTail(f, maxFocus)) + "\n\n")
	}
	user.WriteString(Transcript(chunk, s.location()))
	req := CompleteRequest{Model: s.Name, System: sys.String(), User: user.String()}
	req.MaxOutput = max(1024, min(max(r.Target*12/10, reasoningRoom), s.Context-s.Counter.Count(req.User)-s.Counter.Count(req.System)-256))
	return req, nil
}

// maxFocus bounds an operator's focus text, in bytes.
const maxFocus = 1500

// reasoningRoom is the output that a model which thinks aloud needs beyond the answer itself: with less, some
// answers come back empty.
const reasoningRoom = 8192

// shorten returns events with bodies that fit into half the window each: of larger ones the model is shown the two ends.
func (s *Summarizer) shorten(events []sessions.Event) []sessions.Event {
	limit := s.Context / 2
	out := make([]sessions.Event, len(events))
	for i, e := range events {
		if e.Tokens > limit {
			// Bytes per token differ by language: scaled by this text's own rate.
			e.Content = HeadTail(e.Content, int(float64(len(e.Content))/float64(e.Tokens)*float64(limit)))
			e.Tokens = limit
		}
		out[i] = e
	}
	return out
}

func (s *Summarizer) location() *time.Location {
	if s.Location == nil {
		return time.UTC
	}
	return s.Location
}

// pause waits about d, give or take a fifth, so that many sessions do not retry in step.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d + time.Duration((rand.Float64()-0.5)*0.4*float64(d)))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
