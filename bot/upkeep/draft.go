package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/view"
	"ebb/compaction"
	"ebb/compaction/summarize"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// The outcomes of a flush before a cut, besides those of [extract.Outcome].
const (
	FlushedOff    sessions.FlushOutcome = "off"
	FlushedBefore sessions.FlushOutcome = "done before"
	FlushedOwed   sessions.FlushOutcome = "owed"
	FlushedLater  sessions.FlushOutcome = "later"
)

// flushBeforeCut flushes the events that are to leave the view. A failure does not delay the compaction: the range
// stays owed and is read from the log later.
func (r *attempt) flushBeforeCut(ctx context.Context, through int64) sessions.FlushOutcome {
	s, p, to := r.view.Session, r.set.Policy, r.flushEnd(through)
	switch {
	case !p.Flush:
		return FlushedOff
	case s.FlushedSeq >= through && (s.FlushEpoch == s.CompactionCount || to < s.LastSeq):
		return FlushedBefore
	case s.FlushFailures >= compaction.MaxFlushFailures:
		return FlushedOwed
	case p.FlushLag > 0 && r.unflushedTokens() < p.FlushLag:
		return FlushedLater
	}
	// The summary gets half of the time: a late flush can be repeated, a late answer can't.
	if deadline, ok := ctx.Deadline(); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer stop()
	}
	trigger := flushCompaction
	switch r.Trigger {
	case TriggerManual:
		trigger = flushManual
	case compaction.TriggerOverflow:
		trigger = flushOverflow
	}
	out, err := r.by.flusher.flush(ctx, r.lease, s, s.CompactionCount, to, trigger)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory flush failed, range is owed")
		return FlushedOwed
	}
	r.Memory = out.Receipt
	return sessions.FlushOutcome(out.String())
}

// flushEnd is the newest event, or in a backlog as much as one part summarizes, and at least through.
func (r *attempt) flushEnd(through int64) int64 {
	s := r.view.Session
	room, to := r.set.Window.Counted(s.CalibrationFactor).Context/2, through
	for _, e := range r.whole {
		if e.Seq <= s.FlushedSeq {
			continue
		}
		if room -= e.Tokens + tokens.MessageOverhead; room < 0 && e.Seq > through {
			return to
		}
		to = max(to, e.Seq)
	}
	return s.LastSeq
}

// unflushedTokens is an estimate from the average event of the view.
func (r *attempt) unflushedTokens() int {
	if len(r.whole) == 0 {
		return 0
	}
	each := compaction.TokensOf(r.whole) / len(r.whole)
	return each * int(r.view.Session.LastSeq-r.view.Session.FlushedSeq)
}

// summarize uses a draft again that was staged before a crash, so that no range is summarized twice. The returned draft
// has passed the policy's gate and is staged.
func (r *attempt) summarize(ctx context.Context, w compaction.Window) (compaction.Cut, summarize.Draft, string, error) {
	s, p := r.view.Session, r.set.Policy
	cut, err := r.plan(ctx, w)
	if err != nil {
		return cut, summarize.Draft{}, "", err
	}
	r.EndSeq = cut.Through
	r.FlushOutcome = r.flushBeforeCut(ctx, cut.Through)
	if r.memories, err = r.by.views.Memory.Pinned(ctx, r.view); err != nil {
		return cut, summarize.Draft{}, "", err
	}
	job := sessions.Job{Gen: s.Gen, From: s.CompactedSeq, Through: cut.Through, Version: r.version()}
	src, err := r.by.jobs.OpenJob(ctx, r.lease, job)
	if err != nil {
		return cut, summarize.Draft{}, "", err
	}
	var draft summarize.Draft
	if src.Staged != nil && json.Unmarshal(src.Staged, &draft) == nil {
		r.recordDraft(draft)
		r.staged = true
		return cut, draft, src.Hash, nil
	}
	state, events := r.by.views.Sizes.State(r.view, r.tokens), r.by.accuser.readable(r.Key, src.Events)
	cut.Whole = compaction.TokensOf(events)
	task := summarize.Task{
		Policy: p, Session: s, Active: r.view.Summaries, Events: events, From: s.CompactedSeq, Through: cut.Through,
		Target: p.SummaryTarget(w, state, cut), Longest: p.LongestSummary(w, state, cut), Focus: r.Focus, Source: cut.Source,
		Raw: func(ctx context.Context, from, through int64) ([]sessions.Event, error) {
			events, err := r.by.log.Range(ctx, r.Key, from, through, maxRaw)
			if err == nil && len(events) == maxRaw {
				err = fmt.Errorf("more than %d events in %d to %d", maxRaw, from, through)
			}
			return r.by.accuser.readable(r.Key, events), err
		},
	}
	long, stop := r.extendDeadline(ctx, cut)
	draft, err = r.writeDraft(long, task)
	stop()
	if err != nil {
		err = fmt.Errorf("%w: %w", errNoSummary, err)
		part, ok := r.summarizedPart(draft)
		if !ok {
			return cut, draft, "", err
		}
		zerolog.Ctx(ctx).Warn().Err(err).Int64("through", part.Through).Msg("Summary ended early: its first part is kept")
		cut, r.EndSeq, job.Through, r.partial = part, part.Through, part.Through, true
	}
	one, stop := r.paidContext(ctx)
	defer stop()
	if job.Through < task.Through {
		if src, err = r.by.jobs.OpenJob(one, r.lease, job); err != nil {
			return cut, draft, "", err
		}
	}
	if err := r.gate(p, cut, draft); err != nil {
		return cut, draft, "", err
	}
	text, err := json.Marshal(draft)
	if err != nil {
		return cut, draft, "", fmt.Errorf("encode draft: %w", err)
	}
	if err := r.by.jobs.StageJob(one, r.lease, job, text, sessions.Spending{Kind: sessions.SpentSummary, Usage: draft.Usage, Cost: draft.Cost, Model: draft.Model}); err != nil {
		return cut, draft, "", err
	}
	r.staged = true
	return cut, draft, src.Hash, nil
}

// summarizedPart is the cut after the chunks before a failed one; ok is false where they end within a turn.
func (r *attempt) summarizedPart(d summarize.Draft) (part compaction.Cut, ok bool) {
	if len(d.Summaries) == 0 {
		return part, false
	}
	return cutAt(r.view.Tail, d.Summaries[0].EndSeq)
}

// writeDraft records the draft of an error too.
func (r *attempt) writeDraft(ctx context.Context, t summarize.Task) (d summarize.Draft, err error) {
	engine := &summarize.Engine{Summarizer: r.by.summaries.of(r.Key)}
	if t.Policy.Mode == compaction.PruneOnly {
		d = engine.WriteNote(t)
	} else {
		d, err = engine.Summarize(ctx, t)
	}
	if err != nil && r.by.accuser.accuse(ctx, r.lease, r.view.Session, err, t.Active, t.Events) { // the text is written again, without the events at fault
		lost := d
		t.Events = sessions.Readable(t.Events, r.by.accuser.reads(r.Key))
		d, err = engine.Summarize(ctx, t)
		d.Usage, d.Cost, d.Report.Calls = d.Usage.Add(lost.Usage), d.Cost+lost.Cost, d.Report.Calls+lost.Report.Calls
	}
	if d.RollUpFault != nil { // the next one leaves the events at fault out
		r.by.accuser.accuse(ctx, r.lease, r.view.Session, d.RollUpFault, slices.Clone(t.Active), d.RollUpEvents)
	}
	r.recordDraft(d)
	return d, err
}

// recordDraft counts the usage for the attempt that commits the draft, also when another process paid and crashed.
func (r *attempt) recordDraft(d summarize.Draft) {
	r.Report, r.Usage, r.Cost = d.Report, d.Usage, d.Cost
	if d.Model != "" {
		r.Model = d.Model
	}
}

// maxFocus is in bytes.
const maxFocus = 1500

const maxRaw = 2000

// plan is the policy's cut, or that of a staged job that was not committed.
func (r *attempt) plan(ctx context.Context, w compaction.Window) (cut compaction.Cut, err error) {
	s, p := r.view.Session, r.set.Policy
	job, err := r.by.jobs.Job(ctx, r.Key)
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		return cut, err
	}
	if err == nil && job.Staged && job.Gen == s.Gen && job.From == s.CompactedSeq && job.Version == r.version() {
		if cut, ok := cutAt(r.view.Tail, job.Through); ok {
			return cut, nil
		}
	}
	state := r.by.views.Sizes.State(r.view, r.tokens)
	if cut, r.partial, err = p.Part(w, state); err == nil && r.Trigger == TriggerManual {
		err = p.Worth(w, state, cut)
	}
	if err != nil {
		return cut, err
	}
	if r.Trigger == compaction.TriggerThreshold && s.FlushEpoch == s.CompactionCount {
		cut = cutAtFlush(cut, r.view.Tail, s.FlushedSeq)
	}
	return cut, nil
}

// gate counts replaced summaries in the source, since merging them is no growth. Newly pinned memory does not count: it
// is a gain of its own.
func (r *attempt) gate(p compaction.Policy, cut compaction.Cut, d summarize.Draft) error {
	source, summary := cut.Source, 0
	for _, one := range d.Summaries {
		if one.EndSeq == cut.Through {
			summary = one.Tokens
			source += replacedTokens(r.view.Summaries, []sessions.NewSummary{one}) + summary + tokens.MessageOverhead
		}
	}
	freed := cut.Source + replacedTokens(r.view.Summaries, d.Summaries)
	r.TokensAfter = max(0, r.tokens-view.Calibrated(freed, r.view.Session.CalibrationFactor))
	err := p.Progress(r.tokens, r.TokensAfter, source, summary)
	if err == nil && r.Trigger == TriggerManual && r.TokensAfter >= r.tokens {
		err = fmt.Errorf("frees nothing of %d tokens", r.tokens) // a manual compaction must free something
	}
	if err != nil {
		r.Outcome = sessions.CompactionRejected
		return fmt.Errorf("%w: %w", errNoGain, err)
	}
	return nil
}

// extendDeadline adds the time of an attempt for each further chunk that offloaded results make. An answer that waits for
// a compaction keeps its deadline.
func (r *attempt) extendDeadline(ctx context.Context, cut compaction.Cut) (context.Context, context.CancelFunc) {
	whole, extends := ctx.Value(unboundedKey{}).(context.Context)
	more := (cut.Whole - cut.Source) / max(1, r.set.Window.Context/4)
	if more < 1 || !extends {
		return context.WithCancel(ctx)
	}
	limit := time.Duration(1+more) * r.by.shared.CompactDeadline
	_ = r.by.jobs.MarkUpkeep(ctx, r.lease, limit) // without it the mark ends early
	return context.WithTimeout(whole, limit)
}

// paidContext outlives ctx: a summary that a model wrote is not lost.
func (r *attempt) paidContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 2*r.by.shared.CommitTimeout)
}
