package summarize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/compaction"
	"ebb/compaction/audit"
	"ebb/compaction/tokens"
	"ebb/compaction/transcript"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/reasoning"
	"ebb/sessions/retry"
)

// Summarizer asks a model for the summary of a range of events.
type Summarizer struct {
	Model   llm.Model
	Kind    llm.Kind // summaries or digests
	Counter *tokens.Counter
	// Name is the configured summary model; empty for the chat's, which replaces a failing one for one attempt after
	// Retries.
	Name     string
	Context  int    // the window, in tokens
	Language string // zh or en
	Location *time.Location
	Retries  int           // attempts for one chunk, at least 1
	Backoff  time.Duration // before the second attempt; each later pause grows by it
	// Deadline bounds all attempts for one chunk, so that a model that hangs takes no time of the later chunks; 0: unbounded.
	Deadline time.Duration
}

// Request is a range to summarize.
type Request struct {
	Previous  string // summary to continue; empty for none
	Events    []sessions.Event
	Target    int    // tokens
	MaxTokens int    // a longer text is repaired once, then its middle is cut; 0 is unbounded
	Focus     string // an operator's wish; data, not instruction
	Profile   compaction.Profile
	// Summaries marks Events as older summaries, which are skipped otherwise: other events hold their content.
	Summaries bool
}

// Result is a summary that passed the gate, with its audit.
type Result struct {
	Text    string
	Tokens  int
	Through int64  // the last event of the turns that Text summarizes; 0: none
	Model   string // writer of the text; after an error the last one that was asked
	Usage   sessions.Usage
	Cost    float64
	Report
}

// Summarize summarizes r.Events as a continuation of r.Previous, in chunks that fit the model's window. A text that is
// longer than a chunk is read in pieces. After an error the result holds the cost, and the summary of the turns up to
// [Result.Through].
func (s *Summarizer) Summarize(ctx context.Context, r Request) (Result, error) {
	if len(r.Events) == 0 {
		return Result{}, errors.New("no events to summarize")
	}
	t := s.newRun(r)
	for len(t.rest) > 0 {
		if err := t.summarizeNext(ctx); err != nil {
			t.res.Text, t.res.Tokens, t.res.Through = t.done.text, t.done.tokens, t.done.through
			return t.res, err
		}
	}
	t.res.Text, t.res.Tokens = t.done.text, t.done.tokens
	return t.res, nil
}

type summaryRun struct {
	summarizer *Summarizer
	Request
	layout  profileLayout
	system  string
	fixed   int    // tokens of system and focus
	focus   string // fenced
	model   string
	limit   int // maximum transcript in tokens; shrinks when the model finds a request too long
	halved  int // number of reductions
	rest    []sessions.Event
	cleaned transcript.Cleaner
	res     Result      // its text continues Request.Previous
	done    summaryPart // whole turns, which an error leaves
	// attached are the lines on attachments so far, which no model writes.
	attached []attachmentLine
}

type summaryPart struct {
	text    string
	tokens  int
	through int64
}

func (s *Summarizer) newRun(r Request) *summaryRun {
	t := &summaryRun{summarizer: s, Request: r, layout: layoutOf(r.Profile), model: s.Name, cleaned: transcript.Cleaner{}}
	t.system = t.writeInstructions(false)
	t.limit = s.chunkLimit(r.Events)
	for _, e := range r.Events {
		t.rest = append(t.rest, t.writer().Split(e, t.limit)...)
	}
	t.res.Text, t.attached = splitAttachments(transcript.Clean(r.Previous))
	t.res.Recall, t.res.Precision = 1, 1
	if f := strings.TrimSpace(r.Focus); f != "" {
		t.focus = transcript.Fence("focus", transcript.Clip(transcript.Clean(f), maxFocus)) + "\n\n"
	}
	t.fixed = t.summarizer.Counter.Count(t.system) + t.summarizer.Counter.Count(t.focus) + requestFrame
	return t
}

func (t *summaryRun) writer() transcript.Writer {
	return transcript.Writer{Counter: t.summarizer.Counter, Location: t.summarizer.Location, Summaries: t.Summaries, Cleaner: t.cleaned}
}

func (t *summaryRun) writeInstructions(repair bool) string {
	return promptData{
		Chinese: t.summarizer.Language != "en", Target: t.Target, Sections: t.layout.sectionsIn(t.summarizer.Language), Summaries: t.Summaries, Repair: repair,
	}.String()
}

// chunkLimit is the maximum transcript in tokens: half of the window, since each chunk costs a call and repeats the
// summary so far. Large events get a quarter.
func (s *Summarizer) chunkLimit(events []sessions.Event) int {
	if compaction.TokensOf(events)/max(1, len(events)) > s.Context/10 {
		return s.Context / 4
	}
	return s.Context / 2
}

// Parts of a request besides its transcript.
const (
	// estimateMargin is the assumed error of our counts.
	estimateMargin = 1.2
	// requestFrame is the overhead of a request in tokens.
	requestFrame = 64
	// maxFocus bounds an operator's focus text, in characters.
	maxFocus = 500
	// reasoningRoom is the extra output of a reasoning model in tokens: with less, some answers are empty.
	reasoningRoom = 8192
)

type chunkRequest struct {
	request llm.Request // instructions and data
	events  []sessions.Event
	size    int // tokens of the transcript
}

// request has no tools. A silent model would be silent again: the caller retries.
func (t *summaryRun) request(system, user string, maxOutput int) llm.Request {
	return llm.Request{
		Kind: t.summarizer.Kind, Model: t.model, Messages: llm.Prompt(system, user), MaxOutput: maxOutput, Requests: 1, Passes: true,
	}
}

// smallRest is the share of a chunk that needs no call of its own.
const smallRest = 4

// The chunk leaves at least a quarter of the window for the answer. Input and MaxOutput together fit the window.
func (t *summaryRun) nextChunk() chunkRequest {
	previous, fixed := "", t.fixed
	if t.res.Text != "" {
		// A summary made for a larger window must not fill this one.
		var n int
		previous, n = t.summarizer.Counter.Shorten(t.res.Text, t.summarizer.Context/4, func(s string) string { return transcript.Fence("previous-summary", s) + "\n\n" })
		fixed += n
	}
	most := t.mostOutput()
	room := int(float64(t.summarizer.Context-fixed-min(most, t.summarizer.Context/4)) / estimateMargin)
	scribe, limit := t.writer(), min(t.limit, room)
	t.rest = append(scribe.Split(t.rest[0], limit), t.rest[1:]...) // the limit may be lower than when they were split
	text, n := scribe.Write(t.rest, limit)
	if n < len(t.rest) && !t.Summaries { // a chunk ends with a turn, so that it can be committed without the next one
		starts := compaction.TurnStarts(t.rest[:n+1])
		if last := starts[len(starts)-1]; last > 0 && last < n {
			text, n = scribe.Write(t.rest[:last], limit)
		}
	}
	if n < len(t.rest) { // a small rest costs a whole call, and its summary is often a copy
		if whole, all := scribe.Write(t.rest, min(limit+limit/smallRest, room)); all == len(t.rest) {
			text, n = whole, all
		}
	}
	size := t.summarizer.Counter.Count(text)
	return chunkRequest{
		request: t.request(t.system, previous+t.focus+text, max(1, min(most, t.summarizer.Context-fixed-size))),
		events:  t.rest[:n], size: size,
	}
}

func (t *summaryRun) mostOutput() int { return max(t.Target*12/10, reasoningRoom) }

// summarizeNext makes Retries attempts, then one of the chat's model, which also takes the remaining chunks.
func (t *summaryRun) summarizeNext(ctx context.Context) error {
	if t.summarizer.Deadline > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, t.summarizer.Deadline)
		defer stop()
	}
	c := t.nextChunk()
	for try := 1; ; try++ {
		a, text, err := t.askModel(ctx, c.request, c.events)
		if err == nil {
			t.acceptText(ctx, c, a, text)
			return nil
		}
		zerolog.Ctx(ctx).Warn().Err(err).Str("model", nameOf(c.request.Model)).Int("attempt", try).Msg("Summary not usable")
		err = fmt.Errorf("summarize events %d to %d, attempt %d: %w", c.events[0].Seq, c.events[len(c.events)-1].Seq, try, err)
		if ctx.Err() != nil {
			return err
		}
		fault, known := errors.AsType[*llm.CallError](err)
		switch {
		case known && (fault.Overflow() || fault.MayOverflow() && t.halved == 0 && c.size > t.summarizer.Context/4) && t.halveChunk(&c):
			try-- // the same chunk would overflow again; a smaller one is a new request
		case (!known || fault.Temporary() && !fault.Overflow()) && try < t.summarizer.Retries && t.model == t.summarizer.Name:
			if err := waitJittered(ctx, time.Duration(try)*t.summarizer.Backoff); err != nil {
				return fmt.Errorf("summarize events %d to %d: %w", c.events[0].Seq, c.events[len(c.events)-1].Seq, err)
			}
		case t.model != "":
			t.model, t.limit, t.halved = "", t.summarizer.chunkLimit(t.rest), maxHalved
			c = t.nextChunk()
		default:
			zerolog.Ctx(ctx).Error().Err(err).Str("model", nameOf(c.request.Model)).Int("attempts", try).Msg("Summary given up")
			return err
		}
		if errors.Is(err, audit.ErrTalk) {
			t.remind(&c)
		}
	}
}

// reminders follow the data of a request whose answer was a reply, by language.
var reminders = map[string]string{
	"zh": "上一次的输出是在回复聊天，不是摘要。不要回复任何人，不要提问，只按要求输出摘要。",
	"en": "The last output replied to the chat and was no summary. Do not reply to anyone and do not ask: write the summary as instructed, and nothing else.",
}

func (t *summaryRun) remind(c *chunkRequest) {
	reminder := "\n\n" + reminders[compaction.Language(t.summarizer.Language)]
	instructions, data := c.request.Messages[0].Content, c.request.Messages[1].Content
	if n := t.summarizer.Counter.Count(reminder); !strings.HasSuffix(data, reminder) && c.request.MaxOutput > n {
		c.request.Messages, c.request.MaxOutput = llm.Prompt(instructions, data+reminder), c.request.MaxOutput-n
	}
}

// attachments is the section on attachments so far; empty for none.
func (t *summaryRun) attachments() string {
	budget := t.Target / attachmentShare
	if t.MaxTokens > 0 {
		budget = min(budget, t.MaxTokens/attachmentShare)
	}
	return attachmentSection(t.attached, t.summarizer.Language, budget, t.summarizer.Counter.Count)
}

func nameOf(model string) string { return cmp.Or(model, "default") }

const maxHalved = 4

// halveChunk reports whether the chunk became smaller.
func (t *summaryRun) halveChunk(c *chunkRequest) bool {
	if t.halved >= maxHalved {
		return false
	}
	t.halved, t.limit = t.halved+1, c.size/2
	before := c.size
	*c = t.nextChunk()
	return c.size < before
}

func (t *summaryRun) askModel(ctx context.Context, r llm.Request, events []sessions.Event) (llm.Response, string, error) {
	a, err := t.summarizer.Model.Generate(ctx, r)
	t.res.Usage, t.res.Cost, t.res.Calls, t.res.Model = t.res.Usage.Add(a.Usage), t.res.Cost+a.Cost, t.res.Calls+1, cmp.Or(a.UsedModel(), t.res.Model)
	if err != nil {
		return a, "", err
	}
	text := reasoning.Strip(a.Text)
	tokens := t.summarizer.Counter.Count(text)
	against := audit.ReplyContext{
		Source: compaction.TokensOf(events) + t.summarizer.Counter.Count(t.res.Text), Got: tokens, Events: events, Previous: t.res.Text,
		Request: r.Messages[0].Content, Language: t.summarizer.Language,
	}
	if err := audit.CheckReply(a, against); err != nil {
		return a, "", err
	}
	return a, text, nil
}

func (t *summaryRun) acceptText(ctx context.Context, c chunkRequest, a llm.Response, text string) {
	text, _ = splitAttachments(text)
	if t.summarizer.Kind != llm.KindDigest { // readers of a digest can't read the messages
		t.attached = joinAttachments(t.attached, attachmentsOf(c.events))
	}
	text = t.auditText(ctx, c, text)
	t.res.Text, t.res.Tokens, t.res.Model, t.rest = text, t.summarizer.Counter.Count(text), a.UsedModel(), t.rest[len(c.events):]
	last := c.events[len(c.events)-1]
	if len(t.rest) == 0 || t.rest[0].Role == sessions.RoleUser && last.Role != sessions.RoleUser {
		t.done = summaryPart{t.res.Text, t.res.Tokens, last.Seq}
		if section := t.attachments(); section != "" {
			t.done.text += "\n\n" + section
			t.done.tokens = t.summarizer.Counter.Count(t.done.text)
		}
		t.res.Through = last.Seq
	}
	if t.model != t.summarizer.Name {
		t.res.Fallback = a.UsedModel()
	}
}

// waitJittered has a jitter of a fifth, so that sessions do not retry in step.
func waitJittered(ctx context.Context, d time.Duration) error {
	retry.Sleep(ctx, retry.Pauses{First: d, Max: d, Jitter: 0.2}.After(0))
	return context.Cause(ctx)
}
