package compaction

import (
	"time"

	"ebb/sessions"
)

// Need is the work that a context requires.
type Need struct {
	Flush   bool
	Compact bool
	Hard    bool             // the next request would not fit: compact before it
	Forced  bool             // too many raw events: compact before the next answer, without pauses
	Trigger sessions.Trigger // one of the Trigger constants; empty without Compact
}

// Triggers of a compaction, as stored in the compaction log.
const (
	TriggerOverflow  sessions.Trigger = "overflow"   // the next request would not fit
	TriggerHardLimit sessions.Trigger = "hard_limit" // Policy.HardLimit or Policy.ContextSize
	TriggerThreshold sessions.Trigger = "threshold"  // Policy.Tokens
	TriggerWindow    sessions.Trigger = "window"     // Policy.Window
	TriggerMessages  sessions.Trigger = "messages"   // Policy.MaxMessages
	TriggerTurns     sessions.Trigger = "turns"      // Policy.Segment
	TriggerBatch     sessions.Trigger = "batch"      // Policy.Batch
	TriggerCooldown  sessions.Trigger = "cooldown"   // Policy.Cooldown
	TriggerOffload   sessions.Trigger = "offload"    // Policy.OffloadAt
)

// MaxFlushFailures in a row end the attempts of a cycle; the range stays owed.
const MaxFlushFailures = 3

// Decide names the work that a context requires, with w in the provider's tokens.
func (p Policy) Decide(w Window, s State) Need {
	s.Tokens = max(0, s.Tokens)
	n := Need{
		Hard: s.Tokens >= w.Usable(),
		Flush: p.Flush && s.Tokens >= w.FlushAt() && s.Session.FlushEpoch != s.Session.CompactionCount &&
			s.Session.FlushFailures < MaxFlushFailures,
	}
	ours := w.Counted(s.Session.CalibrationFactor)
	cut, _ := p.Plan(ours, s) // empty when no event can leave
	n.Forced = cut.Index > 0 && p.exceedsLimits(s, cut)
	off := s.Now.Before(s.Session.CompactRetryAt)
	switch {
	case n.Hard && !off:
		n.Trigger = TriggerOverflow
	case n.Forced:
		n.Trigger = TriggerHardLimit
	case !off:
		n.Trigger = p.softTrigger(w, ours, s, cut)
	}
	n.Compact = n.Trigger != ""
	return n
}

func (p Policy) exceedsLimits(s State, cut Cut) bool {
	return p.HardLimit > 0 && cut.Index >= p.HardLimit || p.ContextSize > 0 && len(s.Tail) > p.ContextSize
}

// softTrigger names the first trigger that may wait for the reply. The size trigger pauses until Session.RearmTokens.
// The others count from the last compaction, so they pause only after an attempt that changed nothing.
func (p Policy) softTrigger(w, ours Window, s State, cut Cut) sessions.Trigger {
	small := s.Tokens < s.Session.RearmTokens
	switch {
	case p.Tokens && !small && s.Tokens >= w.Trigger():
		return TriggerThreshold
	case small && s.Session.CompactError != "":
		return ""
	case cut.Index == 0:
		// No event can leave, now or later.
	case p.Window > 0 && cut.Index >= p.Window:
		return TriggerWindow
	case p.MaxMessages > 0 && len(s.Tail) > p.MaxMessages:
		return TriggerMessages
	case p.Segment > 0:
		return TriggerTurns // Plan cuts whole segments only
	case p.Batch && cut.Source >= p.batchTokens(ours, s, cut):
		return TriggerBatch
	case p.cooldownOver(s) && cut.Index >= p.LeastCooldown():
		return TriggerCooldown
	}
	if p.offloadsAt(w, s) && len(p.largeResults(s.Tail)) > 0 {
		return TriggerOffload
	}
	return ""
}

// cooldownOver counts from the last compaction or the session's creation. A clock that went backwards counts as over.
func (p Policy) cooldownOver(s State) bool {
	at := p.CooledAt(s.Session)
	return !at.IsZero() && !s.Now.Before(at)
}

// CooledAt is the end of a session's cooldown; zero without one.
func (p Policy) CooledAt(s sessions.Session) time.Time {
	last := s.CompactedAt
	if last.IsZero() {
		last = s.CreatedAt
	}
	if p.Cooldown <= 0 || last.IsZero() {
		return time.Time{}
	}
	return last.Add(p.Cooldown)
}

// LeastCooldown is the number of events that a compaction by cooldown needs: half of the window. With one event a slow conversation would
// get a compaction for each message.
func (p Policy) LeastCooldown() int { return max(1, p.Window/2) }
