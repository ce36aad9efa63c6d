package summarize

import (
	"context"

	"ebb/compaction"
	"ebb/sessions"
)

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

// Engine makes summaries, and neither plans nor stores. It is safe for concurrent use if its model is.
type Engine struct {
	Summarizer *Summarizer
}
