package summarize

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// rollUp makes one summary of the active ones, where that is due, and puts it before the draft's newest. Where it does
// not succeed they stay as they are, and the next compaction tries again: the range of this one is told either way.
func (e *Engine) rollUp(ctx context.Context, t Task, d *Draft) {
	newest := d.Summaries[0]
	if !t.Policy.RollUpDue(t.Active, newest.Tokens) {
		return
	}
	// The new summary was just written: that is a call that may fail once, and a model that stood in for another stays.
	one := *e.Summarizer
	one.Retries = 1
	if d.Report.Fallback != "" {
		one.Name = ""
	}
	first, last := t.Active[0], t.Active[len(t.Active)-1]
	res, err := one.Summarize(ctx, e.rollUpRequest(ctx, t))
	d.Usage, d.Cost, d.Report.Calls = d.Usage.Add(res.Usage), d.Cost+res.Cost, d.Report.Calls+res.Calls
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Int("summaries", len(t.Active)).Msg("Older summaries not rolled up")
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
	d.Report.merge(res.Report)
}

// rollUpRequest tells the active summaries again: from what was said where that is short, so that
// nothing is lost from one summary of summaries to the next, else from their own texts.
func (e *Engine) rollUpRequest(ctx context.Context, t Task) Request {
	target := t.Policy.RollUpTarget(t.Target)
	// It is shorter than what it replaces, unless that is short as it is and only in too many pieces.
	most := max(compaction.TokensIn(t.Active)-1, target*12/10)
	if t.Usable > 0 {
		most = min(most, t.Usable/compaction.MaxSummaryShare)
	}
	r := Request{Target: target, Most: most, Focus: t.Focus, Profile: t.Policy.Profile}
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

// maxRetold is how many tokens of what was said are read again for a roll-up. More would be paid for anew at each one: the
// cost of a long conversation would grow with its square.
const maxRetold = 4000

// rawEvents are the events that the active summaries tell, or nil where they are too many or can't be read.
func (e *Engine) rawEvents(ctx context.Context, t Task) []sessions.Event {
	count := 0
	for _, s := range t.Active {
		count += s.MsgCount
	}
	most := min(maxRetold, e.Context/2)
	if t.Raw == nil || count*tokens.MessageOverhead > most { // a log that is too long is not even read
		return nil
	}
	first, last := t.Active[0], t.Active[len(t.Active)-1]
	events, err := t.Raw(ctx, first.StartSeq-1, last.EndSeq)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Events to roll up not read, their summaries are told instead")
		return nil
	}
	if len(events) == 0 || compaction.TokensOf(events) > most {
		return nil
	}
	return events
}
