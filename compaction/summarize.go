package compaction

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"text/template"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions"
)

// Model completes a prompt without tools. It must not be nil; its errors are attempts that failed. An error may say
// more about itself by the methods of [Trouble].
type Model interface {
	Complete(ctx context.Context, r CompleteRequest) (Completion, error)
}

// Trouble is an error of a model that says what can be done about it.
type Trouble interface {
	error
	Overflow() bool  // the request is larger than the model's window
	Temporary() bool // the same request may be answered another time
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
	Model   Model
	Counter *Counter
	// Name is the configured model that writes summaries; empty for the default one, the chat's. Where another is
	// named and fails, the chat's model is asked once.
	Name     string
	Context  int    // the window, in tokens
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
	t, err := s.begin(r)
	if err != nil {
		return Result{}, err
	}
	for len(t.rest) > 0 {
		if err := t.tell(ctx); err != nil {
			return t.res, err
		}
	}
	return t.res, nil
}

// telling is one call of Summarize under way.
type telling struct {
	*Summarizer
	system string
	focus  string // fenced
	target int
	model  string           // that is asked
	limit  int              // tokens of a transcript; it shrinks when the model finds a request too long
	halved int              // how often it did
	rest   []sessions.Event // not told yet
	res    Result           // so far; its text continues Request.Previous
}

func (s *Summarizer) begin(r Request) (*telling, error) {
	var sys strings.Builder
	if err := promptTemplate.Execute(&sys, map[string]any{"Chinese": s.Language != "en", "Target": r.Target}); err != nil {
		return nil, fmt.Errorf("write summary prompt: %w", err)
	}
	t := &telling{Summarizer: s, system: sys.String(), target: r.Target, model: s.Name, limit: s.Context / 2, rest: r.Events, res: Result{Text: r.Previous}}
	if f := strings.TrimSpace(r.Focus); f != "" {
		t.focus = Fence("focus", HeadTail(f, maxFocus)) + "\n\n"
	}
	return t, nil
}

// The parts of a request, besides half of the window at most for the transcript.
const (
	// estimateMargin is what our counts may be off by.
	estimateMargin = 1.2
	// requestFrame is what a request takes besides its texts, in tokens.
	requestFrame = 64
	// maxFocus bounds an operator's focus text, in bytes.
	maxFocus = 1500
	// reasoningRoom is the output that a model which thinks aloud needs beyond the answer itself, in tokens: with less,
	// some answers come back empty.
	reasoningRoom = 8192
)

// chunk is a request that tells a beginning of the events to come.
type chunk struct {
	CompleteRequest
	events []sessions.Event
	told   int // tokens of the transcript
}

// next is the chunk that there is room for next to the instructions and the previous summary, with at least a quarter
// of the window for the answer. Input and MaxOutput together fit into the window.
func (t *telling) next() chunk {
	previous := ""
	if t.res.Text != "" {
		// It has about the target's length. One that was made for a larger window must not fill this one.
		previous, _ = t.Counter.shorten(t.res.Text, t.Context/4, func(s string) string { return Fence("previous-summary", s) + "\n\n" })
	}
	most := max(t.target*12/10, reasoningRoom)
	fixed := t.Counter.Count(t.system) + t.Counter.Count(previous+t.focus) + requestFrame
	room := int(float64(t.Context-fixed-min(most, t.Context/4)) / estimateMargin)
	text, n := Scribe{Counter: t.Counter, Location: t.Location}.Write(t.rest, min(t.limit, room))
	told := t.Counter.Count(text)
	return chunk{
		CompleteRequest: CompleteRequest{
			Model: t.model, System: t.system, User: previous + t.focus + text, MaxOutput: max(1, min(most, t.Context-fixed-told)),
		},
		events: t.rest[:n], told: told,
	}
}

// tell asks for the summary of the next chunk until one passes the gate: Retries times, then, where summaries have a
// model of their own, once more of the chat's, which tells the chunks to come too.
func (t *telling) tell(ctx context.Context) error {
	c := t.next()
	for try := 1; ; try++ {
		err := t.ask(ctx, c)
		if err == nil {
			return nil
		}
		zerolog.Ctx(ctx).Warn().Err(err).Str("model", c.Model).Int("attempt", try).Msg("Summary not usable")
		err = fmt.Errorf("summarize events %d to %d, attempt %d: %w", c.events[0].Seq, c.events[len(c.events)-1].Seq, try, err)
		if ctx.Err() != nil {
			return err
		}
		trouble, known := errors.AsType[Trouble](err)
		switch {
		case known && trouble.Overflow() && t.halve(&c):
			try-- // the same chunk would overflow for ever; a smaller one is a question of its own
		case (!known || trouble.Temporary()) && try < t.Retries && t.model == t.Name:
			if err := pause(ctx, t.Backoff<<(try-1)); err != nil {
				return fmt.Errorf("summarize events %d to %d: %w", c.events[0].Seq, c.events[len(c.events)-1].Seq, err)
			}
		case t.model != "":
			t.model, t.limit, t.halved = "", t.Context/2, maxHalved
			c = t.next()
		default:
			return err
		}
	}
}

// maxHalved is how often chunks are halved because the model finds them too long.
const maxHalved = 4

// halve puts a chunk of about half the length in c's place, and reports whether there is one.
func (t *telling) halve(c *chunk) bool {
	if t.halved >= maxHalved {
		return false
	}
	t.halved, t.limit = t.halved+1, c.told/2
	before := c.told
	*c = t.next()
	return c.told < before
}

// ask makes one request. Where the answer passes the gate, the chunk's events are told.
func (t *telling) ask(ctx context.Context, c chunk) error {
	a, err := t.Model.Complete(ctx, c.CompleteRequest)
	t.res.Usage, t.res.Cost, t.res.Calls = t.res.Usage.Add(a.Usage), t.res.Cost+a.Cost, t.res.Calls+1
	if err != nil {
		return err
	}
	text := CleanSummary(a.Text)
	tokens := t.Counter.Count(text)
	if err := CheckSummary(a.Reply, TokensOf(c.events)+t.Counter.Count(t.res.Text), tokens); err != nil {
		return err
	}
	t.res.Text, t.res.Tokens, t.res.Model, t.rest = text, tokens, a.Model, t.rest[len(c.events):]
	return nil
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
