package compaction

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"ebb/compaction/tokens"
	"ebb/sessions"
)

// segmentTarget is the length to ask of a new summary, in tokens. Of what segments may take together, a third is the
// newest's: next to a roll-up, which takes half, there is room for one more.
func (p Policy) segmentTarget(target int) int {
	if p.Rolling || p.RollUpTokens <= 0 {
		return target
	}
	return min(target, max(minSummary, p.RollUpTokens/3))
}

// rollUpTarget is the length to ask of a roll-up, in tokens.
func (p Policy) rollUpTarget(target int) int {
	if p.RollUpTokens <= 0 {
		return target
	}
	return max(minSummary, p.RollUpTokens/2)
}

// rollUpDue reports whether the active summaries and a new one are too many or too long for one view, where the older
// ones can become one. A rolling summary takes the others' place anyhow.
func (p Policy) rollUpDue(active []sessions.Summary, newest int) bool {
	if p.Rolling || len(active) < 2 || len(afterEmptied(active)) < len(active) {
		return false
	}
	return p.RollUpSegments > 0 && len(active)+1 > p.RollUpSegments || p.RollUpTokens > 0 && tokensIn(active)+newest > p.RollUpTokens
}

func tokensIn(active []sessions.Summary) int {
	n := 0
	for _, s := range active {
		n += s.Tokens
	}
	return n
}

// rollUp makes one summary of the active ones, where that is due, and puts it before the draft's newest. Where it does
// not succeed they stay as they are, and the next compaction tries again: the range of this one is told either way.
func (e *Engine) rollUp(ctx context.Context, t Task, d *Draft) {
	newest := d.Summaries[0]
	if !t.Policy.rollUpDue(t.Active, newest.Tokens) {
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
	target := t.Policy.rollUpTarget(t.Target)
	// It is shorter than what it replaces, unless that is short as it is and only in too many pieces.
	most := max(tokensIn(t.Active)-1, target*12/10)
	if t.Usable > 0 {
		most = min(most, t.Usable/maxSummaryShare)
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
	if len(events) == 0 || TokensOf(events) > most {
		return nil
	}
	return events
}
