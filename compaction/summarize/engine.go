package summarize

import (
	"context"
	"strings"

	"ebb/compaction"
	"ebb/sessions"
)

// Engine makes summaries, and neither plans nor stores. It is safe for concurrent use if its model is.
type Engine struct {
	Summarizer *Summarizer
}

// Task is a range to summarize: the events (From, Through] of a session.
type Task struct {
	Policy  compaction.Policy
	Session sessions.Session
	// Active are the view's summaries, oldest first, contiguous up to From.
	Active []sessions.Summary
	// Events are the raw events of the range, at least one, without commands and their answers.
	Events        []sessions.Event
	From, Through int64
	Target        int    // tokens of the new summary
	Focus         string // an operator's wish
	// Longest is the bound of each summary in tokens, see [compaction.Policy.LongestSummary]; 0: none.
	Longest int
	// Source is the size of Events in the view, for [compaction.Policy.MostSummary]; 0: that of Events themselves.
	Source int
	// Raw reads the events (from, through] of the log. Nil: roll-ups read summaries only.
	Raw func(ctx context.Context, from, through int64) ([]sessions.Event, error)
}

// Draft is the result of a [Task]. Its JSON form is staged and found again after a crash.
type Draft struct {
	// Summaries are new, oldest first; each replaces the active ones in its range.
	Summaries []sessions.NewSummary `json:"summaries"`
	Model     string                `json:"model"` // writer of the newest summary
	Usage     sessions.Usage        `json:"usage"`
	Cost      float64               `json:"cost"`
	Report    Report                `json:"report"`

	// RollUpFault is the error of a failed roll-up, and RollUpEvents are the raw events that it read, if any.
	RollUpFault  error            `json:"-"`
	RollUpEvents []sessions.Event `json:"-"`
}

// Report is a draft's audit in the compaction log. Recall is the share of the source's identifiers in the model's
// text, Precision the reverse, both of the worst chunk before healing.
type Report struct {
	SummaryTokens int      `json:"summary_tokens"`
	SourceTokens  int      `json:"source_tokens"`
	Calls         int      `json:"calls"` // model calls
	Recall        float64  `json:"recall"`
	Precision     float64  `json:"precision"`
	Missing       []string `json:"missing,omitempty"`   // some of the added identifiers
	Invented      []string `json:"invented,omitempty"`  // some of the identifiers without a source
	Added         int      `json:"added,omitempty"`     // number of added identifiers
	Repaired      bool     `json:"repaired,omitempty"`  // a second text of the model replaced the first
	Healed        bool     `json:"healed,omitempty"`    // the text was changed without a model
	Trimmed       bool     `json:"trimmed,omitempty"`   // its middle was cut
	RolledUp      int      `json:"rolled_up,omitempty"` // number of summaries rolled up
	// RollUpFailed is the range of a failed roll-up.
	RollUpFailed string `json:"roll_up_failed,omitempty"`
	Fallback     string `json:"fallback,omitempty"`    // model that replaced the summary model
	Unavailable  int    `json:"unavailable,omitempty"` // tool results that are no longer readable
}

// Summarize makes a summary of the range, which continues the active ones under a rolling policy, and a roll-up if
// there are too many. After an error the draft holds the cost, and the summary of the chunks before. Audit findings
// are no errors.
func (e *Engine) Summarize(ctx context.Context, t Task) (Draft, error) {
	r := Request{
		Events: t.Events, Target: t.Policy.SegmentTarget(t.Target), Focus: t.Focus, Profile: t.Policy.Profile,
	}
	r.MaxTokens = t.maxSummary()
	first := t.From + 1
	if whole := compaction.AfterEmptied(t.Active); t.Policy.Rolling && len(whole) > 0 {
		first, r.Previous = whole[0].StartSeq, joinTexts(whole)
	}
	res, err := e.Summarizer.Summarize(ctx, r)
	d := Draft{Model: res.Model, Usage: res.Usage, Cost: res.Cost, Report: res.Report}
	d.Report.SourceTokens, d.Report.SummaryTokens, d.Report.Unavailable = compaction.TokensOf(t.Events), res.Tokens, countUnavailable(t.Events)
	if err != nil {
		if res.Through > 0 {
			d.Summaries = []sessions.NewSummary{{StartSeq: first, EndSeq: res.Through, Text: res.Text, Tokens: res.Tokens}}
		}
		return d, err
	}
	d.Summaries = []sessions.NewSummary{{StartSeq: first, EndSeq: t.Through, Text: res.Text, Tokens: res.Tokens}}
	e.rollUp(ctx, t, &d)
	return d, nil
}

// maxSummary lets a healed summary pass the commit gate and leaves room to the chat, in tokens.
func (t Task) maxSummary() int {
	source := t.Source
	if source == 0 {
		source = compaction.TokensOf(t.Events)
	}
	if t.Policy.Rolling {
		source += compaction.TokensIn(compaction.AfterEmptied(t.Active))
	}
	most := max(compaction.MinSummary, t.Policy.MostSummary(source))
	if t.Longest > 0 {
		most = min(most, t.Longest)
	}
	return most
}

func joinTexts(active []sessions.Summary) string {
	var texts []string
	for _, s := range active {
		texts = append(texts, s.Text)
	}
	return strings.Join(texts, "\n\n")
}

func countUnavailable(events []sessions.Event) int {
	n := 0
	for _, e := range events {
		if e.Blob != "" && e.Content == sessions.Unavailable(e.Blob) {
			n++
		}
	}
	return n
}
