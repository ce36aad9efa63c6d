package summarize

import (
	"context"
	"strings"

	"ebb/compaction"
	"ebb/sessions"
)

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
