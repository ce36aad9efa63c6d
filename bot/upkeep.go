package bot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"ebb/compaction"
	"ebb/memory"
	"ebb/sessions"
)

// What set a compaction off, as the compaction log tells it.
const (
	triggerThreshold = "threshold"
	triggerOverflow  = "overflow"
	triggerManual    = "manual"
)

// estimate is our own count of the request for asked on a view, not calibrated. Events bring their counts along;
// what else stands in a request is short, or the same in request after request and counted once.
func (b *Bot) estimate(v sessions.View, asked []sessions.Event) int {
	n := b.frame.tokens + b.counted.count(reference(v)) + compaction.MessageOverhead + clockTokens
	group := v.Session.ConversationType != sessions.Private
	for _, events := range [][]sessions.Event{v.Tail, asked} {
		n += compaction.TokensOf(events)
		for _, e := range events {
			if group && e.Role == sessions.RoleUser {
				n += b.counted.count(sessions.Speaker(e.SenderNick, e.SenderID)) + 1
			}
		}
	}
	return n
}

// clockTokens is what the line with time and place takes, at the most.
const clockTokens = 120

// countEvent is what an event's body takes, its calls included.
func (b *Bot) countEvent(e sessions.Event) int {
	n := b.counter.Count(e.Content)
	for _, c := range e.ToolCalls {
		n += b.counter.Count(c.Name) + b.counter.Count(c.Arguments) + compaction.MessageOverhead
	}
	return n
}

// fixed is what a view holds besides conversation and summaries.
func (b *Bot) fixed(v sessions.View) int {
	return b.frame.tokens + b.counted.count(v.Session.Pinned) + compaction.MessageOverhead
}

// size is our estimate of a view as a request, corrected by cal.
func (b *Bot) size(v sessions.View, cal float64) int {
	n := b.fixed(v) + compaction.TokensOf(v.Tail)
	for _, s := range v.Summaries {
		n += s.Tokens + compaction.MessageOverhead
	}
	return calibrated(n, cal)
}

func calibrated(tokens int, cal float64) int {
	if cal <= 0 {
		cal = 1
	}
	return int(float64(tokens) * cal)
}

// contextSize is the size of the session's context as it would be sent now: as last reported, or as estimated before
// the first report.
func (b *Bot) contextSize(v sessions.View) int {
	if v.Session.TotalTokens > 0 {
		return v.Session.TotalTokens
	}
	return b.size(v, v.Session.CalibrationFactor)
}

// fit assembles the turn's request. A context that would overflow is compacted first, within a deadline; where that
// does not make room, the emergency view does.
func (b *Bot) fit(ctx context.Context, t *turn) []ChatMessage {
	b.frame.shrink(t.asked)
	usable := b.frame.window.Usable()
	over := func(v sessions.View) bool {
		return b.contextSize(v)+calibrated(compaction.TokensOf(t.asked), v.Session.CalibrationFactor) >= usable
	}
	if over(t.view) {
		b.inline(ctx, t, over)
	}
	// The whole request is looked at too: names and fences are not in the counts of events.
	cal := t.view.Session.CalibrationFactor
	if !over(t.view) && calibrated(b.estimate(t.view, t.asked), cal) < usable {
		return b.request(t, t.view)
	}
	v := emergency(t.view, func(v sessions.View) bool {
		return calibrated(b.estimate(v, t.asked), max(1, cal)) < usable
	})
	t.cut = true
	zerolog.Ctx(ctx).Warn().Int("left_out", len(t.view.Tail)-len(v.Tail)).Msg("Context does not fit, oldest turns left out of the view")
	return b.request(t, v)
}

// request assembles the turn's request on a view and notes its size.
func (b *Bot) request(t *turn, v sessions.View) []ChatMessage {
	t.size = b.estimate(v, t.asked)
	return b.frame.assemble(v, t.asked, time.Now())
}

// inline compacts before the model is asked, and reloads the turn's view. A compaction that fails or takes too long
// leaves the view as it is: that is for the emergency view to mend, never for the people to read.
func (b *Bot) inline(ctx context.Context, t *turn, needed func(sessions.View) bool) {
	if !b.cfg.Compaction || time.Now().Before(t.view.Session.CompactRetryAt) {
		return // the emergency view is all there is; nobody waits for a summariser that has just failed
	}
	work, stop := context.WithTimeout(ctx, b.cfg.InlineDeadline)
	defer stop()
	if _, err := b.compact(work, t.lease, triggerOverflow, "", needed); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Inline compaction did not make room")
	}
	v, err := b.store.Begin(ctx, t.lease, 0)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("View could not be read again")
		return
	}
	v.Pending, v.Runs = t.view.Pending, t.view.Runs
	b.frame.show(&v)
	t.view = v
}

// due reports whether a context of so many tokens calls for maintenance.
func (b *Bot) due(s sessions.Session, tokens int) bool {
	need := b.policy.Assess(s, b.frame.window, tokens, time.Now())
	return b.cfg.Compaction && (need.Flush || need.Compact)
}

// maintain is steps 9 to 11 for one session, after its reply was sent: it flushes and compacts what the context calls
// for. Its failures are logged and tried again later; they never reach the group.
func (b *Bot) maintain(ctx context.Context, key sessions.Key) (more bool, err error) {
	if err := b.spare.Acquire(ctx, 1); err != nil {
		return false, nil
	}
	defer b.spare.Release(1)
	lease, err := b.leases.Get(ctx, key)
	if err != nil {
		return false, fmt.Errorf("take lease of session %s: %w", key, err)
	}
	log := zerolog.Ctx(ctx).With().EmbedObject(key).Int64("term", lease.Term).Logger()
	ctx = log.WithContext(ctx)
	s, err := b.store.Session(ctx, key)
	if err != nil {
		return false, fmt.Errorf("read session %s: %w", key, err)
	}
	assess := func(s sessions.Session) compaction.Need {
		return b.policy.Assess(s, b.frame.window, s.TotalTokens, time.Now())
	}
	need := assess(s)
	work, stop := context.WithTimeout(ctx, b.cfg.CompactDeadline)
	defer stop()
	switch {
	case need.Compact:
		_, err = b.compact(work, lease, triggerThreshold, "", func(v sessions.View) bool { return assess(v.Session).Compact })
	case need.Flush:
		_, err = b.flushCycle(work, lease)
	}
	if err != nil {
		log.Warn().Err(b.leases.Check(key, err)).Msg("Upkeep did not finish")
	}
	return false, nil
}

// flushCycle makes the cycle's one flush, unless a run that was under way has made it.
func (b *Bot) flushCycle(ctx context.Context, l sessions.Lease) (memory.Outcome, error) {
	unlock, err := b.upkeepLock.lock(ctx, l.Key)
	if err != nil {
		return memory.Outcome{}, fmt.Errorf("wait for upkeep of session %s: %w", l.Key, err)
	}
	defer unlock()
	s, err := b.store.Session(ctx, l.Key)
	if err != nil {
		return memory.Outcome{}, fmt.Errorf("read session %s: %w", l.Key, err)
	}
	if s.FlushEpoch == s.CompactionCount {
		return memory.Outcome{}, nil
	}
	return b.flush(ctx, l, s, s.CompactionCount)
}

// flush saves what matters of the session's events so far, whatever asked for it: threshold, compaction or shutdown.
// What fails is recorded as owed.
func (b *Bot) flush(ctx context.Context, l sessions.Lease, s sessions.Session, epoch int) (memory.Outcome, error) {
	log := zerolog.Ctx(ctx)
	log.Info().Int64("from", s.FlushedSeq).Int64("through", s.LastSeq).Int("tokens", s.TotalTokens).Msg("Executing memory flush")
	out, err := b.flusher.Flush(ctx, memory.Due{Session: s, Lease: l, Through: s.LastSeq, Epoch: epoch})
	b.metrics.flush(out, err)
	if err == nil {
		log.Info().Str("outcome", out.String()).Ints64("memories", out.Receipt.Saved).Msg("Memory flush completed")
		return out, nil
	}
	if errors.Is(err, sessions.ErrLeaseLost) {
		return out, err
	}
	owe, stop := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.CommitTimeout)
	defer stop()
	failures := s.FlushFailures + 1
	if errors.Is(context.Cause(ctx), ErrStop) {
		failures = s.FlushFailures // cut off, not failed
	}
	if oweErr := b.memory.Owe(owe, l, s.LastSeq, failures, flushTrouble(err)); oweErr != nil {
		err = errors.Join(err, fmt.Errorf("record flush as owed: %w", oweErr))
	}
	return out, err
}

// flushTrouble is why a flush failed, in words that may stand in a table: never the provider's own.
func flushTrouble(err error) string {
	switch {
	case errors.Is(err, memory.ErrNotSaved):
		return memory.ErrNotSaved.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "ran out of time"
	}
	return "model error: " + string(ClassOf(err))
}
