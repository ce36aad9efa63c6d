package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/view"
	"ebb/compaction"
	"ebb/compaction/summarize"
	"ebb/compaction/tokens"
	"ebb/sessions"
	"ebb/sessions/redact"
)

// compact shrinks a context: every automatic, manual or overflow compaction calls it, and it includes the flush.
// Without a commit both Error and the error have the reason, and only the row of the compaction log changes.
//
// asked is nil for an automatic compaction. needed is called under the session's lock; it returns the trigger, or ""
// where an earlier run made the room. waiting is the size of the question that waits, in the provider's tokens.
func (c *compactor) compact(ctx context.Context, l sessions.Lease, asked *Request, waiting int, needed func(sessions.View) sessions.Trigger) (Compacted, error) {
	if asked != nil {
		var stop context.CancelFunc
		ctx, stop = attemptContext(ctx, c.shared.CompactDeadline)
		defer stop()
	}
	unlock, err := c.locks.lock(ctx, l.Key)
	if err != nil {
		return Compacted{}, fmt.Errorf("wait for upkeep: %w", err)
	}
	defer unlock()
	began := time.Now()
	v, err := c.turns.Begin(ctx, l, 0)
	if err != nil {
		return Compacted{}, fmt.Errorf("read session: %w", err)
	}
	if asked == nil {
		asked = &Request{Settings: v.Session.Settings}
	}
	v.Session.Settings = asked.Settings
	r := attempt{by: c, lease: l, set: c.views.Choices.Settings(v.Session), began: began, whole: c.views.Words.WithoutCommands(v.Tail), waiting: waiting}
	c.views.Show(&v)
	r.view, r.tokens = v, c.views.Sizes.ContextSize(v)
	r.RequestedModel = c.shared.Current.For(l.Key).SummaryModel
	r.LogEntry = sessions.LogEntry{
		Key: l.Key, Trigger: needed(v), Policy: r.set.Policy.Name, Mode: string(r.set.Policy.Mode), Focus: tokens.HeadTail(redact.Secrets(asked.Focus), maxFocus), RequestedBy: asked.By, Model: r.RequestedModel,
		TokensBefore: r.tokens, TokensAfter: r.tokens, StartSeq: v.Session.CompactedSeq + 1, EndSeq: v.Session.CompactedSeq,
	}
	if r.Trigger == "" {
		return r.Compacted, nil
	}
	end, err := c.marker.begin(ctx, l)
	if err != nil {
		return r.Compacted, err
	}
	defer end()
	zerolog.Ctx(ctx).Info().Str("trigger", string(r.Trigger)).Str("policy", r.Policy).Int("tokens", r.tokens).Msg("Auto-compacting context")
	err = r.execute(ctx)
	r.Duration = time.Since(began)
	if err != nil {
		r.logFailure(ctx, err)
	}
	c.stats.Compacted(r.LogEntry)
	return r.Compacted, err
}

func (r *attempt) execute(ctx context.Context) error {
	p, s := r.set.Policy, r.view.Session
	if s.PinnedDue { // forgotten facts are not pinned again
		var err error
		if r.memories, err = r.by.views.Memory.Pinned(ctx, r.view); err != nil {
			return err
		}
	}
	shown, freed := r.shorten(p)
	after := r.tokens - view.Calibrated(freed, s.CalibrationFactor)
	manual := r.Trigger == TriggerManual
	switch {
	case p.Mode == compaction.OffloadThenCompact && !manual && len(shown) > 0 && !p.StillDue(r.set.Window, after+r.waiting, r.tokens-after),
		p.Mode == compaction.PruneOnly && p.Progress(r.tokens, after, 0, 0) == nil && after < r.set.Window.Trigger():
		return r.commit(ctx, sessions.Compaction{Through: s.CompactedSeq, Shown: shown}, after)
	}
	window := r.set.Window.Counted(s.CalibrationFactor)
	cut, draft, source, err := r.summarize(ctx, window)
	if NothingToCompact(err) && !manual && p.Progress(r.tokens, after, 0, 0) == nil {
		return r.commit(ctx, sessions.Compaction{Through: s.CompactedSeq, Shown: shown}, after)
	}
	if err != nil {
		return err
	}
	c := sessions.Compaction{Through: cut.Through, Summaries: draft.Summaries, Source: source}
	freed = cut.Source + replacedTokens(r.view.Summaries, draft.Summaries)
	if p.Mode != compaction.SummaryOnly {
		for _, one := range shown {
			if one.Seq > cut.Through {
				c.Shown = append(c.Shown, one)
				freed += r.tokensOf(one.Seq) - one.Tokens
			}
		}
	}
	return r.commit(ctx, c, max(0, r.tokens-view.Calibrated(freed, s.CalibrationFactor)))
}

// AuditRecord is the audit of a committed compaction, as JSON in its log entry.
type AuditRecord struct {
	summarize.Report
	Memories  []int64 `json:"memories,omitempty"` // saved by its flush
	Preserved int     `json:"preserved_count"`    // events that stay raw
	Pinned    int     `json:"pinned_growth,omitempty"`
}

func (r *attempt) commit(ctx context.Context, c sessions.Compaction, after int) error {
	s, p, w := r.view.Session, r.set.Policy, r.set.Window
	r.Preserved, r.PinnedGrowth = r.countRaw(c.Through), max(0, view.Calibrated(r.pinnedGrowth(), s.CalibrationFactor))
	r.Summarized = len(r.view.Tail) - r.Preserved
	text, err := json.Marshal(AuditRecord{r.Report, r.Memory.Saved, r.Preserved, r.PinnedGrowth})
	if err != nil {
		return fmt.Errorf("encode audit: %w", err)
	}
	r.Audit, r.Outcome, r.EndSeq = string(text), sessions.CompactionCommitted, c.Through
	r.TokensAfter = max(0, after+view.Calibrated(r.pinnedGrowth(), s.CalibrationFactor))
	r.Duration = time.Since(r.began) // the row is written with the summary
	c.Gen, c.From, c.Pinned, c.Log = s.Gen, s.CompactedSeq, r.memories, r.LogEntry
	c.Freed, c.RearmTokens = r.TokensBefore-r.TokensAfter, s.RearmTokens // shortened bodies alone start no cooldown
	switch {
	case r.partial:
		c.RearmTokens = 0 // the next part is due at once
	case len(c.Summaries) > 0:
		c.RearmTokens = p.RearmAfter(w, r.TokensAfter, true)
	}
	c.Notice = r.newNotice(c)
	ctx, stop := r.paidContext(ctx)
	defer stop()
	done, err := r.by.store.Compact(ctx, r.lease, c)
	if err != nil {
		r.Outcome = sessions.CompactionFailed
		r.by.outbox.Invalidate(r.Key) // a commit with a lost answer may have stored a notice
		return err
	}
	r.BlobsDeleted = done.BlobsDeleted
	if len(done.Replies) > 0 {
		r.by.outbox.Send(ctx, r.lease, done.Replies, func() {})
	}
	zerolog.Ctx(ctx).Info().Str("trigger", string(r.Trigger)).Str("policy", r.Policy).Int("tokens_before", r.TokensBefore).
		Int("tokens_after", r.TokensAfter).Int64("through", c.Through).Str("flush", string(r.FlushOutcome)).Msg("Compaction completed")
	return nil
}

// logFailure sets when the next attempt may run. Each failure delays it; after an attempt without gain the context must
// also have grown. Parts of a backlog shrink with each failure: see [compaction.Policy.Part]. Without the lease only
// the tokens are counted.
func (r *attempt) logFailure(ctx context.Context, cause error) {
	s, e := r.view.Session, &r.LogEntry
	if r.staged { // charged, and logged by the attempt that commits the draft
		e.Usage, e.Cost = sessions.Usage{}, 0
	}
	spent := sessions.Spending{Kind: sessions.SpentSummary, Usage: e.Usage, Cost: e.Cost, Model: e.Model}
	if errors.Is(cause, sessions.ErrLeaseLost) {
		r.by.charger.charge(ctx, r.Key, spent)
		return
	}
	e.Error, e.Failures, e.RetryAt, e.Rearm = compactionFailureReason(cause), s.CompactFailures, s.CompactRetryAt, s.RearmTokens
	grown := r.set.Policy.RearmAfter(r.set.Window, e.TokensBefore, false)
	switch {
	case NothingToCompact(cause):
		e.Outcome, e.Rearm = sessions.CompactionNothing, grown
	case errors.Is(cause, sessions.ErrConflict), isCut(ctx):
		e.Outcome = sessions.CompactionFailed
	default:
		e.Failures = s.CompactFailures + 1
		e.RetryAt = r.by.shared.Now().Add(min(time.Minute<<min(s.CompactFailures, 5), 30*time.Minute))
		switch {
		case e.Outcome != sessions.CompactionRejected:
			e.Outcome = sessions.CompactionFailed
		case !r.partial: // the next part of a backlog is shorter
			e.Rearm = grown
		}
	}
	if r.Trigger == TriggerManual { // a failed manual attempt does not delay automatic ones
		e.Failures, e.RetryAt, e.Rearm = s.CompactFailures, s.CompactRetryAt, s.RearmTokens
	}
	e.TokensAfter = e.TokensBefore
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), r.by.shared.CommitTimeout)
	defer stop()
	if err := r.by.store.Log(one, r.lease, *e); err != nil {
		if sessions.IsFinal(err) {
			r.by.charger.charge(ctx, r.Key, spent)
		}
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Compaction log row not written")
	}
}
