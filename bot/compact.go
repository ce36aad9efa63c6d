package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/compaction"
	"ebb/memory"
	"ebb/sessions"
)

// nothingToCompact reports whether an error says that no compaction could make the view smaller.
func nothingToCompact(err error) bool {
	return errors.Is(err, compaction.ErrAllRecent) || errors.Is(err, compaction.ErrSystemDominates)
}

// compact is the one way to a smaller context: every path that compacts, automatic, manual or on overflow, comes
// through here, and the flush is part of it. It returns the row of the compaction log, with the reason in Error and
// in the error where nothing was committed. A failed compaction changes nothing but that row. Where needed is given it
// is asked once the session is ours: a run that was under way may have made the room.
func (b *Bot) compact(ctx context.Context, l sessions.Lease, trigger, focus string, needed func(sessions.View) bool) (sessions.LogEntry, error) {
	unlock, err := b.upkeepLock.lock(ctx, l.Key)
	if err != nil {
		return sessions.LogEntry{}, fmt.Errorf("wait for upkeep of session %s: %w", l.Key, err)
	}
	defer unlock()
	began := time.Now()
	v, err := b.store.Begin(ctx, l, 0)
	if err != nil {
		return sessions.LogEntry{}, fmt.Errorf("read session %s: %w", l.Key, err)
	}
	entry := sessions.LogEntry{
		Key: l.Key, Trigger: trigger, Policy: b.policy.Name, Mode: modeSummaryOnly, Focus: focus, Model: b.summarizer.Name,
		TokensBefore: b.contextSize(v), StartSeq: v.Session.CompactedSeq + 1, EndSeq: v.Session.CompactedSeq,
	}
	entry.TokensAfter = entry.TokensBefore
	if needed != nil && !needed(v) {
		return entry, nil
	}
	zerolog.Ctx(ctx).Info().Str("trigger", trigger).Int("tokens", entry.TokensBefore).Msg("Auto-compacting context")
	err = b.compactView(ctx, l, v, &entry, began)
	entry.Duration = time.Since(began)
	if err != nil && !errors.Is(err, sessions.ErrLeaseLost) {
		b.logFailure(ctx, l, v.Session, &entry, err)
	}
	b.metrics.compaction(entry)
	return entry, err
}

// outcomeRejected is a compaction that would have gained too little.
const outcomeRejected = "rejected"

// modeSummaryOnly summarises and leaves the rest of the view as it is.
const modeSummaryOnly = "summary_only"

// compactView plans, flushes, summarises, checks and commits, and fills in the log entry as it goes.
func (b *Bot) compactView(ctx context.Context, l sessions.Lease, v sessions.View, entry *sessions.LogEntry, began time.Time) error {
	fixed := b.fixed(v)
	b.frame.show(&v)
	previous, supersede, standing := rolling(b.policy, v.Summaries)
	window := inOurTokens(b.frame.window, v.Session.CalibrationFactor)
	cut, err := b.policy.Plan(window, v.Tail, fixed, standing)
	if err != nil {
		return err
	}
	if entry.Trigger == triggerThreshold && v.Session.FlushEpoch == v.Session.CompactionCount {
		cut = within(cut, v.Tail, v.Session.FlushedSeq)
	}
	entry.EndSeq = cut.Through
	entry.FlushOutcome = b.flushFirst(ctx, l, v.Session, cut.Through)
	req := compaction.Request{
		Previous: previous, Events: v.Tail[:cut.Index], Focus: entry.Focus,
		Target: window.SummaryCap(fixed, cut.Recent),
	}
	res, err := b.summarizer.Summarize(ctx, req)
	entry.Usage, entry.Cost = res.Usage, res.Cost
	if err != nil {
		return fmt.Errorf("summarize session %s: %w", l.Key, err)
	}
	entry.Model = res.Model
	// The source is counted with what the previous summary took: merging it is no growth.
	freed := calibrated(cut.Source+standing-res.Tokens, v.Session.CalibrationFactor)
	entry.TokensAfter = max(0, entry.TokensBefore-freed)
	if err := b.policy.Progress(entry.TokensBefore, entry.TokensAfter, cut.Source+standing, res.Tokens); err != nil {
		entry.Outcome = outcomeRejected
		return fmt.Errorf("compaction of session %s: %w", l.Key, err)
	}
	entry.Duration = time.Since(began) // the row is written with the summary
	return b.commitCompaction(ctx, l, v, cut, res, supersede, entry)
}

// inOurTokens is a window as our own counter sees it: budgets are in the provider's tokens, events are counted in ours.
func inOurTokens(w compaction.Window, cal float64) compaction.Window {
	if cal <= 0 {
		return w
	}
	for _, n := range []*int{&w.Context, &w.Reserve, &w.Threshold} {
		*n = int(float64(*n) / cal)
	}
	return w
}

// within cuts no further than the cycle's flush has read, so that one flush is enough, unless that left less than half of
// the cut. Who compacts by hand or for want of room wants the whole of it, and another flush.
func within(cut compaction.Cut, tail []sessions.Event, flushed int64) compaction.Cut {
	at := 0
	for _, i := range compaction.TurnStarts(tail[:cut.Index+1]) {
		if i > 0 && tail[i-1].Seq <= flushed {
			at = i
		}
	}
	source := compaction.TokensOf(tail[:at])
	if 2*source < cut.Source || at == 0 {
		return cut
	}
	return compaction.Cut{Index: at, Through: tail[at-1].Seq, Source: source, Recent: cut.Recent + cut.Source - source}
}

// rolling is the text that a new summary continues, the summaries that it replaces, and their tokens.
func rolling(p compaction.Policy, active []sessions.Summary) (previous string, supersede []int64, tokens int) {
	if !p.Rolling {
		return "", nil, 0
	}
	var texts []string
	for _, s := range active {
		texts, supersede, tokens = append(texts, s.Text), append(supersede, s.ID), tokens+s.Tokens
	}
	return strings.Join(texts, "\n\n"), supersede, tokens
}

func (b *Bot) commitCompaction(ctx context.Context, l sessions.Lease, v sessions.View, cut compaction.Cut, res compaction.Result, supersede []int64, entry *sessions.LogEntry) error {
	pinned, err := b.pinned(ctx, v)
	if err != nil {
		return err
	}
	audit, err := json.Marshal(map[string]int{"summary_tokens": res.Tokens, "source_tokens": cut.Source, "calls": res.Calls})
	if err != nil {
		return fmt.Errorf("encode audit of session %s: %w", l.Key, err)
	}
	entry.Audit, entry.Outcome = string(audit), "committed"
	entry.TokensAfter += calibrated(b.counted.count(pinned)-b.counted.count(v.Session.Pinned), v.Session.CalibrationFactor)
	w := b.frame.window
	err = b.store.Compact(ctx, l, sessions.Compaction{
		Gen: v.Session.Gen, From: v.Session.CompactedSeq, Through: cut.Through, Summary: res.Text, Tokens: res.Tokens,
		Supersede: supersede, Freed: entry.TokensBefore - entry.TokensAfter, Pinned: pinned, Log: *entry,
		RearmTokens: entry.TokensAfter + max(w.MinBatch(), w.Trigger()*15/100),
	})
	if err != nil {
		entry.Outcome = "failed"
		return fmt.Errorf("commit compaction of session %s: %w", l.Key, err)
	}
	zerolog.Ctx(ctx).Info().Str("trigger", entry.Trigger).Int("tokens_before", entry.TokensBefore).
		Int("tokens_after", entry.TokensAfter).Int64("through", cut.Through).Str("flush", entry.FlushOutcome).Msg("Compaction completed")
	return nil
}

// flushFirst makes sure that the cycle was flushed, as far as the events that are to leave the view, and says how that
// went. A conversation may have grown long past its flush while a summary was slow. A flush that fails does not hold
// the compaction up: its range stays owed and is read from the log later.
func (b *Bot) flushFirst(ctx context.Context, l sessions.Lease, s sessions.Session, through int64) string {
	switch {
	case !b.policy.Flush:
		return "off"
	case s.FlushEpoch == s.CompactionCount && s.FlushedSeq >= through:
		return "done before"
	case s.FlushFailures >= compaction.MaxFlushFailures:
		return "owed"
	}
	// Half of the time is the summary's: a flush that is late can be made up for, an answer that is late can't.
	if deadline, ok := ctx.Deadline(); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer stop()
	}
	out, err := b.flush(ctx, l, s, s.CompactionCount)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory flush did not come through, range is owed")
		return "owed"
	}
	return out.String()
}

// pinnedMemories is how many memories a view shows at its head, and pinnedBytes how much of them.
const (
	pinnedMemories = 20
	pinnedBytes    = 1500
)

// pinned is the memory that the view shows from the next turn on, the newest first.
func (b *Bot) pinned(ctx context.Context, v sessions.View) (string, error) {
	ms, err := b.memory.Pinned(ctx, memory.ReaderOf(memory.ChatOf(v.Session, v.Tail)), pinnedMemories)
	if err != nil {
		return "", fmt.Errorf("read memory of session %s: %w", v.Session.Key, err)
	}
	var s strings.Builder
	for _, m := range ms {
		if s.Len()+len(m.Content) > pinnedBytes {
			break
		}
		s.WriteString("- " + m.Content + "\n")
	}
	return s.String(), nil
}

// logFailure records an attempt that changed nothing, and when the next may run: after trouble that may pass, by the
// clock; after one that gained nothing, when the context has grown.
func (b *Bot) logFailure(ctx context.Context, l sessions.Lease, s sessions.Session, e *sessions.LogEntry, cause error) {
	e.Error, e.Failures, e.RetryAt, e.Rearm = compactTrouble(cause), s.CompactFailures, s.CompactRetryAt, s.RearmTokens
	w := b.frame.window
	grown := e.TokensBefore + max(w.MinBatch(), w.Trigger()/4)
	switch {
	case nothingToCompact(cause):
		e.Outcome, e.Rearm = "nothing", grown
	case e.Outcome == outcomeRejected:
		e.Rearm = grown
	case errors.Is(cause, sessions.ErrConflict), errors.Is(context.Cause(ctx), ErrStop):
		e.Outcome = "failed"
	default:
		e.Outcome, e.Failures = "failed", s.CompactFailures+1
		e.RetryAt = time.Now().Add(min(time.Minute<<min(s.CompactFailures, 5), 30*time.Minute))
	}
	e.TokensAfter = e.TokensBefore
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.CommitTimeout)
	defer stop()
	if err := b.store.Log(one, l, *e); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Compaction log row not written")
	}
}

// compactTrouble is why a compaction failed, in words that may stand in the log for admins: never the provider's own.
func compactTrouble(err error) string {
	if _, ok := errors.AsType[*ModelError](err); ok {
		return "model error: " + string(ClassOf(err))
	}
	return err.Error()
}
