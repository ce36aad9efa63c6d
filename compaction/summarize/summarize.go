package summarize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/compaction"
	"ebb/compaction/audit"
	"ebb/compaction/tokens"
	"ebb/compaction/transcript"
	"ebb/sessions"
)

// Model completes a prompt without tools. It must not be nil; its errors are attempts that failed. An error may say
// more about itself by the methods of [Trouble].
type Model interface {
	Complete(ctx context.Context, r CompleteRequest) (Completion, error)
}

// Trouble is an error of a model that says what can be done about it.
type ModelFault interface {
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
	audit.Reply
	Model string
	Usage sessions.Usage
	Cost  float64
}

// Summarizer has a model tell a range of events in few words.
type Summarizer struct {
	Model   Model
	Counter *tokens.Counter
	// Name is the configured model that writes summaries; empty for the default one, the chat's. Where another is
	// named and fails, the chat's model is asked once, besides Retries.
	Name     string
	Context  int    // the window, in tokens
	Language string // zh or en
	Location *time.Location
	Retries  int           // attempts for one chunk, at least 1
	Backoff  time.Duration // before the second attempt; each later pause is that much longer
}

// Request is what to tell.
type Request struct {
	Previous string // the summary that the new one continues; empty for none
	Events   []sessions.Event
	Target   int    // tokens
	Most     int    // tokens; a longer text is asked once to be shorter, then its middle is left out. 0: no bound
	Focus    string // what an operator asked to keep in mind; data, not instruction
	Profile  compaction.Profile
	// Summaries says that Events are older summaries, of role summary. Elsewhere those are passed over: what they tell
	// is told by the events.
	Summaries bool
}

// Result is a summary that passed the gate, with what the audit found.
type Result struct {
	Text   string
	Tokens int
	Model  string
	Usage  sessions.Usage
	Cost   float64
	Report
}

// Summarize tells r.Events, continuing r.Previous. A range that is too large for the model's window is told chunk by
// chunk, each continuing the last. Its error means that nothing usable came of it; the result then says what it took.
func (s *Summarizer) Summarize(ctx context.Context, r Request) (Result, error) {
	if len(r.Events) == 0 {
		return Result{}, errors.New("there is nothing to tell")
	}
	t := s.begin(r)
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
	Request
	layout  layout
	system  string
	fixed   int              // tokens of system and focus
	focus   string           // fenced
	model   string           // that is asked
	limit   int              // tokens of a transcript; it shrinks when the model finds a request too long
	halved  int              // how often it did
	rest    []sessions.Event // not told yet
	cleaned transcript.Cleaner
	res     Result // so far; its text continues Request.Previous
}

func (s *Summarizer) begin(r Request) *telling {
	t := &telling{Summarizer: s, Request: r, layout: layoutOf(r.Profile), model: s.Name, rest: r.Events, cleaned: transcript.Cleaner{}}
	t.system = t.instruction(false)
	t.limit = s.chunkLimit(r.Events)
	t.res.Text, t.res.Recall, t.res.Precision = transcript.Clean(r.Previous), 1, 1
	if f := strings.TrimSpace(r.Focus); f != "" {
		t.focus = transcript.Fence("focus", transcript.Clip(transcript.Clean(f), maxFocus)) + "\n\n"
	}
	t.fixed = t.Counter.Count(t.system) + t.Counter.Count(t.focus) + requestFrame
	return t
}

func (t *telling) instruction(repair bool) string {
	return wording{
		Chinese: t.Language != "en", Target: t.Target, Sections: t.layout.in(t.Language), Summaries: t.Summaries, Repair: repair,
	}.String()
}

// chunkLimit is what the transcript of one request takes at most, in tokens: half of the window, since each chunk costs
// a call and retells what came before, or a quarter of it for events that are large by themselves.
func (s *Summarizer) chunkLimit(events []sessions.Event) int {
	if compaction.TokensOf(events)/max(1, len(events)) > s.Context/10 {
		return s.Context / 4
	}
	return s.Context / 2
}

// The parts of a request, besides its transcript.
const (
	// estimateMargin is what our counts may be off by.
	estimateMargin = 1.2
	// requestFrame is what a request takes besides its texts, in tokens.
	requestFrame = 64
	// maxFocus bounds an operator's focus text, in characters.
	maxFocus = 500
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

// smallRest is the part of a chunk that is told with the chunk before it rather than by a call of its own.
const smallRest = 4

// next is the chunk that there is room for next to the instructions and the previous summary, with at least a quarter
// of the window for the answer. Input and MaxOutput together fit into the window.
func (t *telling) next() chunk {
	previous, fixed := "", t.fixed
	if t.res.Text != "" {
		// It has about the target's length. One that was made for a larger window must not fill this one.
		var n int
		previous, n = t.Counter.Shorten(t.res.Text, t.Context/4, func(s string) string { return transcript.Fence("previous-summary", s) + "\n\n" })
		fixed += n
	}
	most := t.mostOutput()
	room := int(float64(t.Context-fixed-min(most, t.Context/4)) / estimateMargin)
	scribe := transcript.Writer{Counter: t.Counter, Location: t.Location, Summaries: t.Summaries, Cleaner: t.cleaned}
	limit := min(t.limit, room)
	text, n := scribe.Write(t.rest, limit)
	if n < len(t.rest) { // a small rest costs as much as a whole chunk, and a summary of it often copies it
		if whole, all := scribe.Write(t.rest, min(limit+limit/smallRest, room)); all == len(t.rest) {
			text, n = whole, all
		}
	}
	told := t.Counter.Count(text)
	return chunk{
		CompleteRequest: CompleteRequest{
			Model: t.model, System: t.system, User: previous + t.focus + text, MaxOutput: max(1, min(most, t.Context-fixed-told)),
		},
		events: t.rest[:n], told: told,
	}
}

func (t *telling) mostOutput() int { return max(t.Target*12/10, reasoningRoom) }

// tell asks for the summary of the next chunk until one passes the gate: Retries times, then, where summaries have a
// model of their own, once more of the chat's, which tells the chunks to come too.
func (t *telling) tell(ctx context.Context) error {
	c := t.next()
	for try := 1; ; try++ {
		a, text, err := t.ask(ctx, c.CompleteRequest, c.events)
		if err == nil {
			t.accept(ctx, c, a, text)
			return nil
		}
		zerolog.Ctx(ctx).Warn().Err(err).Str("model", nameOf(c.Model)).Int("attempt", try).Msg("Summary not usable")
		err = fmt.Errorf("summarize events %d to %d, attempt %d: %w", c.events[0].Seq, c.events[len(c.events)-1].Seq, try, err)
		if ctx.Err() != nil {
			return err
		}
		trouble, known := errors.AsType[ModelFault](err)
		switch {
		case known && trouble.Overflow() && t.halve(&c):
			try-- // the same chunk would overflow for ever; a smaller one is a question of its own
		case (!known || trouble.Temporary() && !trouble.Overflow()) && try < t.Retries && t.model == t.Name:
			if err := pause(ctx, time.Duration(try)*t.Backoff); err != nil {
				return fmt.Errorf("summarize events %d to %d: %w", c.events[0].Seq, c.events[len(c.events)-1].Seq, err)
			}
		case t.model != "":
			t.model, t.limit, t.halved = "", t.chunkLimit(t.rest), maxHalved
			c = t.next()
		default:
			zerolog.Ctx(ctx).Error().Err(err).Str("model", nameOf(c.Model)).Int("attempts", try).Msg("Summary given up")
			return err
		}
	}
}

// nameOf is a model's name for the log.
func nameOf(model string) string { return cmp.Or(model, "default") }

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

// ask makes one request, and returns the text of an answer that passes the gate as a summary of events.
func (t *telling) ask(ctx context.Context, r CompleteRequest, events []sessions.Event) (Completion, string, error) {
	a, err := t.Model.Complete(ctx, r)
	t.res.Usage, t.res.Cost, t.res.Calls = t.res.Usage.Add(a.Usage), t.res.Cost+a.Cost, t.res.Calls+1
	if err != nil {
		return a, "", err
	}
	text := audit.StripReasoning(a.Text)
	tokens := t.Counter.Count(text)
	against := audit.ReplyContext{
		Source: compaction.TokensOf(events) + t.Counter.Count(t.res.Text), Got: tokens, Events: events, Previous: t.res.Text,
		Request: r.System, Language: t.Language,
	}
	if err := audit.CheckReply(a.Reply, against); err != nil {
		return a, "", err
	}
	return a, text, nil
}

// accept takes the text as the summary so far, after the audit: the chunk's events are told.
func (t *telling) accept(ctx context.Context, c chunk, a Completion, text string) {
	text = t.audited(ctx, c, text)
	t.res.Text, t.res.Tokens, t.res.Model, t.rest = text, t.Counter.Count(text), a.Model, t.rest[len(c.events):]
	if t.model != t.Name {
		t.res.Fallback = a.Model
	}
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
