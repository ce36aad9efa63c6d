package bot

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// estimate is our own count of the request for asked on a view, not calibrated. Events bring their counts along;
// what else stands in a request is short, or the same in request after request and counted once.
func (b *Bot) estimate(v sessions.View, asked []sessions.Event) int {
	n := b.frame.tokens + clockTokens
	for _, text := range b.frame.references(v, b.settings(v.Session).Policy) {
		n += b.counted.count(text) + tokens.MessageOverhead
	}
	group := v.Session.ConversationType != sessions.Private
	var minute time.Time
	for _, events := range [][]sessions.Event{v.Tail, asked} {
		n += compaction.TokensOf(events)
		for _, e := range events {
			if e.Role != sessions.RoleUser {
				continue
			}
			if at := e.CreatedAt.Truncate(time.Minute); !at.Equal(minute) {
				minute, n = at, n+minuteTokens
			}
			if group {
				n += b.counted.count(sessions.Speaker(e.SenderNick, e.SenderID)) + 1
			}
		}
	}
	return n
}

// What the lines with the time take, at the most: the first with date and place, and one before each message.
const (
	clockTokens  = 120
	minuteTokens = 10
)

// countEvent is what an event's body takes, its calls included.
func (b *Bot) countEvent(e sessions.Event) int {
	n := b.counter.Count(e.Content)
	for _, c := range e.ToolCalls {
		n += b.counter.Count(c.Name) + b.counter.Count(c.Arguments) + tokens.MessageOverhead
	}
	return n
}

// fixed is what a view holds besides conversation and summaries.
func (b *Bot) fixed(v sessions.View) int {
	return b.frame.tokens + b.counted.count(v.Session.Pinned) + tokens.MessageOverhead
}

// size is our estimate of a view as a request, corrected by cal.
func (b *Bot) size(v sessions.View, cal float64) int {
	n := b.fixed(v) + compaction.TokensOf(v.Tail)
	for _, s := range v.Summaries {
		n += s.Tokens + tokens.MessageOverhead
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

// fit assembles the turn's request. A context that would overflow, or that its policy wants smaller before the next
// answer, is compacted first, within a deadline; where that does not make room, the emergency view does.
func (b *Bot) fit(ctx context.Context, t *turn) []ChatMessage {
	usable := b.settings(t.view.Session).Window.Usable()
	shrink(t.asked, usable, t.next())
	t.seen = shownShare(t.view.Pending, t.asked)
	b.pin(ctx, t)
	b.recall(ctx, t)
	projected := func(v sessions.View) int {
		return b.contextSize(v) + calibrated(compaction.TokensOf(t.asked)+t.recallRoom, v.Session.CalibrationFactor)
	}
	b.inline(ctx, t, func(v sessions.View) string { return b.pressing(v, projected(v)) })
	// The whole request is looked at too: names and fences are not in the counts of events.
	cal := t.view.Session.CalibrationFactor
	v := b.capped(t.view)
	if projected(t.view) < usable && calibrated(b.estimate(v, t.asked)+t.recallRoom, cal) < usable {
		return b.request(t, v)
	}
	v = b.emergency(v, func(v sessions.View) bool {
		return calibrated(b.estimate(v, t.asked)+t.recallRoom, max(1, cal)) < usable
	})
	t.cut = true
	zerolog.Ctx(ctx).Warn().Int("left_out", len(t.view.Tail)-len(v.Tail)).Msg("Context does not fit, oldest turns left out of the view")
	return b.request(t, v)
}

// request assembles the turn's request on a view and notes its size. The order says where recalled memory stands in it.
func (b *Bot) request(t *turn, v sessions.View) []ChatMessage {
	recalled := b.beside(t, v)
	t.recalledTokens = 0
	if recalled != "" {
		t.recalledTokens = b.counter.Count(recalled) + tokens.MessageOverhead
	}
	t.size = b.estimate(v, t.asked) + t.recalledTokens
	return b.frame.assemble(v, b.settings(v.Session).Policy, recalled, t.asked)
}

// pressing is the trigger of a compaction that can't wait until the answer is sent; empty for none. Nobody waits for a
// summariser that has just failed, unless the policy's own hard limit says so: the emergency view is there.
func (b *Bot) pressing(v sessions.View, tokens int) string {
	set := b.settings(v.Session)
	need := b.decide(v, tokens)
	switch {
	case !set.Enabled, need.Trigger == "", spent(set, v.Session):
		return ""
	case need.Forced:
		return need.Trigger
	case b.now().Before(v.Session.CompactRetryAt), need.Hard && b.backlogged(v, tokens):
		return ""
	case need.Hard, set.Policy.Inline && need.Compact:
		return need.Trigger
	}
	return ""
}

// backlogged reports whether a view that takes so many tokens is too large even after one attempt: then no answer waits for
// the first of many. They are made in the background, and the emergency view stands in meanwhile.
func (b *Bot) backlogged(v sessions.View, tokens int) bool {
	set := b.settings(v.Session)
	if set.Policy.Mode != compaction.SummaryOnly {
		return false // shortened results may make the room
	}
	cut, partial, err := set.Policy.Part(set.Window.Counted(v.Session.CalibrationFactor), b.state(v, tokens))
	return err == nil && partial && tokens-calibrated(cut.Source, v.Session.CalibrationFactor) >= set.Window.Usable()
}

// inline compacts before the model is asked where needed says so, and reloads the turn's view. A compaction that fails
// or takes too long leaves the view as it is: that is for the emergency view to mend, never for the people to read.
func (b *Bot) inline(ctx context.Context, t *turn, needed func(sessions.View) string) {
	if needed(t.view) == "" || b.upkeepLock.busy(t.key) {
		return // upkeep that is under way may take minutes
	}
	work, stop := context.WithTimeoutCause(ctx, b.cfg.InlineDeadline, errInline)
	defer stop()
	waiting := calibrated(compaction.TokensOf(t.asked)+t.recallRoom, t.view.Session.CalibrationFactor)
	if _, err := b.compact(work, t.lease, "", waiting, needed); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Inline compaction did not make room")
	}
	v, err := b.store.Begin(ctx, t.lease, 0)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("View could not be read again")
		return
	}
	v.Pending, v.Runs, v.More = t.view.Pending, t.view.Runs, t.view.More
	b.show(&v)
	if v.Session.PinnedDue && t.pinned != nil {
		v.Session.Pinned = t.pinned.Text // not committed yet
	} else {
		t.pinned = nil // the compaction has pinned it
	}
	t.view = v
}

// errInline ends a compaction that an answer waits for. It says nothing of the summariser: upkeep, which has more time,
// goes on after the answer.
var errInline = errors.New("the answer waits no longer")

// overflowed is what needs a compaction after a provider found the request too large, whatever our counts say.
func (b *Bot) overflowed(v sessions.View) string {
	set := b.settings(v.Session)
	if !set.Enabled || b.now().Before(v.Session.CompactRetryAt) || spent(set, v.Session) {
		return ""
	}
	return compaction.TriggerOverflow
}
