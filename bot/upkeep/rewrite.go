package upkeep

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/view"
	"ebb/compaction"
	"ebb/compaction/summarize"
	"ebb/sessions"
)

// rewriteWindows limits the newest events that a rewrite reads, in windows of the model.
const rewriteWindows = 4

// rewriteDue reports whether an erasure emptied a summary of the view, and a model may be asked now.
func (c *compactor) rewriteDue(v sessions.View) bool {
	set := c.views.Choices.Settings(v.Session)
	return set.Enabled && !view.Spent(set, v.Session) && !c.shared.Now().Before(v.Session.CompactRetryAt) &&
		slices.ContainsFunc(v.Summaries, sessions.Summary.Emptied)
}

// rewrite reads the events that are left in the log. Other summaries stay.
func (c *compactor) rewrite(ctx context.Context, l sessions.Lease) error {
	unlock, err := c.locks.lock(ctx, l.Key)
	if err != nil {
		return fmt.Errorf("wait for upkeep: %w", err)
	}
	defer unlock()
	began := time.Now()
	v, err := c.turns.Begin(ctx, l, 0)
	if err != nil {
		return fmt.Errorf("read session: %w", err)
	}
	c.views.Show(&v)
	if !c.rewriteDue(v) { // an earlier run has done it
		return nil
	}
	end, err := c.marker.begin(ctx, l)
	if err != nil {
		return err
	}
	defer end()
	r := attempt{by: c, lease: l, set: c.views.Choices.Settings(v.Session), view: v, tokens: c.views.Sizes.ContextSize(v)}
	old := v.Summaries[slices.IndexFunc(v.Summaries, sessions.Summary.Emptied)]
	r.LogEntry = sessions.LogEntry{
		Key: l.Key, Trigger: TriggerRewrite, Policy: r.set.Policy.Name, Mode: string(r.set.Policy.Mode), Model: c.shared.Current.For(l.Key).SummaryModel,
		TokensBefore: r.tokens, TokensAfter: r.tokens, StartSeq: old.StartSeq, EndSeq: old.EndSeq,
	}
	err = r.rewrite(ctx, old, began)
	if r.Duration = time.Since(began); err != nil {
		r.logFailure(ctx, err)
	}
	c.stats.Compacted(r.LogEntry)
	return err
}

func (r *attempt) rewrite(ctx context.Context, old sessions.Summary, began time.Time) error {
	text, tokens, err := r.summarizeAgain(ctx, old)
	if err != nil {
		return err
	}
	report, err := json.Marshal(AuditRecord{Report: r.Report})
	if err != nil {
		return fmt.Errorf("encode audit: %w", err)
	}
	growth := view.Calibrated(tokens-old.Tokens, r.view.Session.CalibrationFactor)
	r.Audit, r.TokensAfter, r.Duration, r.Outcome = string(report), max(0, r.tokens+growth), time.Since(began), sessions.CompactionCommitted
	if err := r.by.store.Rewrite(ctx, r.lease, sessions.Rewritten{ID: old.ID, Text: text, Tokens: tokens, Growth: growth, Log: r.LogEntry}); err != nil {
		r.Outcome = sessions.CompactionFailed
		return err
	}
	zerolog.Ctx(ctx).Info().Int64("from", old.StartSeq).Int64("through", old.EndSeq).Int("tokens", tokens).Msg("Summary rewritten")
	return nil
}

func (r *attempt) summarizeAgain(ctx context.Context, old sessions.Summary) (text string, tokens int, err error) {
	events, from, err := r.readNewest(ctx, old)
	if err != nil {
		return "", 0, err
	}
	note := ""
	switch {
	case len(events) == 0:
		note = r.missingNote(old.StartSeq, old.EndSeq)
		return note, r.by.shared.Counter.Count(note), nil
	case from > old.StartSeq:
		note = r.missingNote(old.StartSeq, from-1) + "\n\n"
	}
	w, p := r.set.Window.Counted(r.view.Session.CalibrationFactor), r.set.Policy
	p.Rolling = false // the other summaries stay
	task := summarize.Task{
		Policy: p, Session: r.view.Session, Events: events, From: old.StartSeq - 1, Through: old.EndSeq, Longest: w.MaxSummary(),
		Target: min(w.Summary, max(compaction.MinTarget, compaction.TokensOf(events)/4)),
	}
	draft, err := r.writeDraft(ctx, task)
	if err != nil {
		return "", 0, fmt.Errorf("%w: %w", errNoSummary, err)
	}
	text = note + draft.Summaries[0].Text
	return text, r.by.shared.Counter.Count(text), nil
}

// readNewest returns from as the number that the events begin with. A range over the limit is read from its end.
func (r *attempt) readNewest(ctx context.Context, old sessions.Summary) (events []sessions.Event, from int64, err error) {
	from = max(old.StartSeq, old.EndSeq-maxRaw+1)
	if events, err = r.by.log.Range(ctx, r.Key, from-1, old.EndSeq, maxRaw); err != nil {
		return nil, 0, err
	}
	events = slices.DeleteFunc(r.by.accuser.readable(r.Key, events), func(e sessions.Event) bool { return e.Content == sessions.ErasedText })
	room := rewriteWindows * r.set.Window.Context
	for i, e := range slices.Backward(events) {
		if room -= e.Tokens; room < 0 {
			return events[i+1:], e.Seq + 1, nil
		}
	}
	return events, from, nil
}

func (r *attempt) missingNote(from, through int64) string {
	if r.by.shared.Language(r.view.Session.Key) == "en" {
		return fmt.Sprintf("[Numbers %d-%d are not in this summary. To read them: %s.]", from, through, sessions.ReadCallOf(from, through))
	}
	return fmt.Sprintf("[序号 %d-%d 没有写进这份摘要。看原文：%s。]", from, through, sessions.ReadCallOf(from, through))
}
