package summarize

import (
	"cmp"
	"context"
	"strings"
	"time"

	"ebb/compaction"
	"ebb/compaction/audit"
	"ebb/compaction/tokens"
	"ebb/compaction/transcript"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/reasoning"
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

// attachments is the section on attachments so far; empty for none.
func (t *summaryRun) attachments() string {
	budget := t.Target / attachmentShare
	if t.MaxTokens > 0 {
		budget = min(budget, t.MaxTokens/attachmentShare)
	}
	return attachmentSection(t.attached, t.summarizer.Language, budget, t.summarizer.Counter.Count)
}

func nameOf(model string) string { return cmp.Or(model, "default") }
