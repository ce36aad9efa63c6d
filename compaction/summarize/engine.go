package summarize

import (
	"context"
	"fmt"
	"strings"

	"ebb/compaction"
	"ebb/sessions"
)

// Engine turns a range of events into summaries that are ready to commit. It plans nothing and stores nothing; it is
// safe for concurrent use as far as its model is.
type Engine struct {
	*Summarizer
}

// Task is a range to tell: the events (From, Through] of a session.
type Task struct {
	Policy  compaction.Policy
	Session sessions.Session
	// Active are the summaries of the view, oldest first, end to end up to From.
	Active []sessions.Summary
	// Events are those of the range as they were said, without commands and their answers. There is at least one.
	Events        []sessions.Event
	From, Through int64
	Target        int    // tokens of the new summary
	Focus         string // what an operator asked to keep in mind
	// Usable is what a request of the chat may hold, in tokens: no summary takes more than a quarter of it.
	Usable int
	// Source is how many tokens Events take in the view: no summary is longer than [Policy.MostSummary] of them and of the
	// summaries that it continues. 0: what Events say themselves.
	Source int
	// Raw reads the events (from, through] of the log, as Events are. Nil where summaries are only made of summaries.
	Raw func(ctx context.Context, from, through int64) ([]sessions.Event, error)
}

// Draft is what came of a [Task]. It has a JSON form, to be staged and found again after a crash.
type Draft struct {
	// Summaries are the new ones, oldest first; each takes the place of the active ones in its range.
	Summaries []sessions.NewSummary `json:"summaries"`
	Model     string                `json:"model"` // that wrote the newest
	Usage     sessions.Usage        `json:"usage"`
	Cost      float64               `json:"cost"`
	Report    Report                `json:"report"`
}

// Report says how a draft was made and checked: what the compaction log keeps of it as JSON. Recall is the share of the
// source's identifiers that the model's text had, and Precision the share of its own that the source has, both of
// the worst chunk and before anything was mended without a model.
type Report struct {
	SummaryTokens int      `json:"summary_tokens"`
	SourceTokens  int      `json:"source_tokens"`
	Calls         int      `json:"calls"` // of models
	Recall        float64  `json:"recall"`
	Precision     float64  `json:"precision"`
	Missing       []string `json:"missing,omitempty"`   // identifiers that had to be added, a few of them
	Invented      []string `json:"invented,omitempty"`  // identifiers that were marked as found nowhere, a few of them
	Added         int      `json:"added,omitempty"`     // how many identifiers had to be added
	Repaired      bool     `json:"repaired,omitempty"`  // a second text of the model took the place of its first
	Healed        bool     `json:"healed,omitempty"`    // the text was mended without a model
	Trimmed       bool     `json:"trimmed,omitempty"`   // its middle was left out, for its length
	RolledUp      int      `json:"rolled_up,omitempty"` // older summaries that became one
	// RollUpFailed is the range of older summaries that should have become one, and stay as they are.
	RollUpFailed string `json:"roll_up_failed,omitempty"`
	Fallback     string `json:"fallback,omitempty"`    // the model that stood in for the summaries' own
	Unavailable  int    `json:"unavailable,omitempty"` // tool results that could not be read any more
}

// Tell makes the summaries of a task: one of the range, which under a rolling policy continues the active ones, and
// where segments have become too many, one of the older ones. On an error nothing is to be committed, and the draft
// says what the attempt took. What the audit finds never is an error.
func (e *Engine) Summarize(ctx context.Context, t Task) (Draft, error) {
	r := Request{
		Events: t.Events, Target: t.Policy.SegmentTarget(t.Target), Focus: t.Focus, Profile: t.Policy.Profile,
	}
	r.Most = t.most()
	first := t.From + 1
	if whole := compaction.AfterEmptied(t.Active); t.Policy.Rolling && len(whole) > 0 {
		first, r.Previous = whole[0].StartSeq, joined(whole)
	}
	res, err := e.Summarizer.Summarize(ctx, r)
	d := Draft{Model: res.Model, Usage: res.Usage, Cost: res.Cost, Report: res.Report}
	d.Report.SourceTokens, d.Report.SummaryTokens, d.Report.Unavailable = compaction.TokensOf(t.Events), res.Tokens, unavailable(t.Events)
	if err != nil {
		return d, fmt.Errorf("tell events %d to %d of session %s: %w", t.From+1, t.Through, t.Session.Key, err)
	}
	d.Summaries = []sessions.NewSummary{{StartSeq: first, EndSeq: t.Through, Text: res.Text, Tokens: res.Tokens}}
	e.rollUp(ctx, t, &d)
	return d, nil
}

// most is the longest summary, in tokens and healed, that passes the gates of the commit and leaves the chat its room.
func (t Task) most() int {
	source := t.Source
	if source == 0 {
		source = compaction.TokensOf(t.Events)
	}
	if t.Policy.Rolling {
		source += compaction.TokensIn(compaction.AfterEmptied(t.Active))
	}
	most := max(compaction.MinSummary, t.Policy.MostSummary(source))
	if t.Usable > 0 {
		most = min(most, t.Usable/compaction.MaxSummaryShare)
	}
	return most
}

// joined is the text of several summaries.
func joined(active []sessions.Summary) string {
	var texts []string
	for _, s := range active {
		texts = append(texts, s.Text)
	}
	return strings.Join(texts, "\n\n")
}

// unavailable counts the tool results that were moved out of the view and can't be read any more.
func unavailable(events []sessions.Event) int {
	n := 0
	for _, e := range events {
		if e.Blob != "" && e.Content == sessions.Unavailable(e.Blob) {
			n++
		}
	}
	return n
}
