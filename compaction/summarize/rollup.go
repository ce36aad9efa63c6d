package summarize

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// rollUp replaces the active summaries by one when due. After a failure they stay, and the next compaction tries
// again.
func (e *Engine) rollUp(ctx context.Context, t Task, d *Draft) {
	newest := d.Summaries[0]
	if !t.Policy.RollUpDue(t.Active, newest.Tokens) {
		return
	}
	// One attempt suffices: the model has just answered. A fallback model stays.
	one := *e.Summarizer
	one.Retries = 1
	if d.Report.Fallback != "" {
		one.Name = ""
	}
	first, last := t.Active[0], t.Active[len(t.Active)-1]
	r := e.rollUpRequest(ctx, t)
	res, err := one.Summarize(ctx, r)
	d.Usage, d.Cost, d.Report.Calls = d.Usage.Add(res.Usage), d.Cost+res.Cost, d.Report.Calls+res.Calls
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Int("summaries", len(t.Active)).Msg("Roll-up failed")
		if d.RollUpFault = err; !r.Summaries {
			d.RollUpEvents = r.Events
		}
		d.Report.RollUpFailed = fmt.Sprintf("events %d to %d", first.StartSeq, last.EndSeq)
		return
	}
	level := 0
	for _, s := range t.Active {
		level = max(level, s.Level)
	}
	rolled := sessions.NewSummary{StartSeq: first.StartSeq, EndSeq: last.EndSeq, Text: res.Text, Tokens: res.Tokens, Level: level + 1}
	d.Summaries = []sessions.NewSummary{rolled, newest}
	d.Report.RolledUp = len(t.Active)
	d.Report.mergeFindings(res.Report)
}

// Short raw events are read, so that no detail is lost.
func (e *Engine) rollUpRequest(ctx context.Context, t Task) Request {
	target := t.Policy.RollUpTarget(t.Target)
	// A roll-up is shorter than its source, unless the source is short and only in many pieces.
	most := max(compaction.TokensIn(t.Active)-1, target*12/10)
	if t.Longest > 0 {
		most = min(most, t.Longest)
	}
	r := Request{Target: min(target, most), MaxTokens: most, Focus: t.Focus, Profile: t.Policy.Profile}
	if r.Events = e.rawEvents(ctx, t); r.Events != nil {
		return r
	}
	r.Summaries = true
	for _, s := range t.Active {
		r.Events = append(r.Events, sessions.Event{
			Seq: s.StartSeq, Key: s.Key, Role: sessions.RoleSummary, Content: s.Text, Tokens: s.Tokens, CreatedAt: s.CreatedAt,
		})
	}
	return r
}

// maxRawRollUp bounds raw events in tokens. Each roll-up reads them again: the cost would grow with the square of a
// conversation's length.
const maxRawRollUp = 4000

// rawEvents is nil if there are too many, or not readable.
func (e *Engine) rawEvents(ctx context.Context, t Task) []sessions.Event {
	count := 0
	for _, s := range t.Active {
		count += s.MsgCount
	}
	most := min(maxRawRollUp, e.Summarizer.Context/2)
	if t.Raw == nil || count*tokens.MessageOverhead > most { // a log that is too long is not read
		return nil
	}
	first, last := t.Active[0], t.Active[len(t.Active)-1]
	events, err := t.Raw(ctx, first.StartSeq-1, last.EndSeq)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read events for a roll-up; used their summaries")
		return nil
	}
	if len(events) == 0 || compaction.TokensOf(events) > most {
		return nil
	}
	return events
}
