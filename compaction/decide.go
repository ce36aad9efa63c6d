package compaction

import (
	"time"

	"ebb/sessions"
)

// State is what a decision looks at: nothing else, so that the same question has the same answer in every process.
type State struct {
	Session  sessions.Session
	Tail     []sessions.Event // raw events of the view after the cursor, commands left out, with the tokens that they show
	Standing int              // tokens of the active summaries
	Fixed    int              // tokens of system prompt, tools and pinned memory
	Tokens   int              // size of the context as it would be sent now, in the provider's tokens
	Now      time.Time
}

// Need says what a context calls for.
type Need struct {
	Flush   bool
	Compact bool
	Hard    bool   // a request would not fit: do it before the next call
	Forced  bool   // too much has piled up: do it before the next answer, whatever rests
	Trigger string // what set the compaction off, one of the Trigger constants; empty without Compact
}

// What sets a compaction off by itself, as the compaction log tells it.
const (
	TriggerOverflow  = "overflow"   // a request would not fit
	TriggerHardLimit = "hard_limit" // Policy.HardLimit or Policy.ContextSize
	TriggerThreshold = "threshold"  // Policy.Tokens
	TriggerWindow    = "window"     // Policy.Window
	TriggerMessages  = "messages"   // Policy.MaxMessages
	TriggerTurns     = "turns"      // Policy.Segment
	TriggerBatch     = "batch"      // Policy.Batch
	TriggerCooldown  = "cooldown"   // Policy.Cooldown
	TriggerOffload   = "offload"    // Policy.OffloadAt
)

// MaxFlushFailures is how many failed flushes in a row end the attempts of a cycle: the range stays owed.
const MaxFlushFailures = 3

// Decide says what a context needs, with w in the provider's tokens. Where a flush and a compaction are due at once,
// the flush comes first.
func (p Policy) Decide(w Window, s State) Need {
	s.Tokens = max(0, s.Tokens)
	n := Need{
		Hard: s.Tokens >= w.Usable(),
		Flush: p.Flush && s.Tokens >= w.FlushAt() && s.Session.FlushEpoch != s.Session.CompactionCount &&
			s.Session.FlushFailures < MaxFlushFailures,
	}
	ours := w.Counted(s.Session.CalibrationFactor)
	cut, _ := p.Plan(ours, s) // where nothing can leave, the cut is empty
	n.Forced = cut.Index > 0 && p.overfull(s, cut)
	off := s.Now.Before(s.Session.CompactRetryAt)
	switch {
	case n.Hard && !off:
		n.Trigger = TriggerOverflow
	case n.Forced:
		n.Trigger = TriggerHardLimit
	case !off:
		n.Trigger = p.soft(w, ours, s, cut)
	}
	n.Compact = n.Trigger != ""
	return n
}

// overfull reports whether more events are raw than the policy bears.
func (p Policy) overfull(s State, cut Cut) bool {
	return p.HardLimit > 0 && cut.Index >= p.HardLimit || p.ContextSize > 0 && len(s.Tail) > p.ContextSize
}

// soft names the first trigger that fired and may wait until the reply was sent. Size as a trigger rests until the
// context has grown to Session.RearmTokens. The others arm themselves, since they look at what came after the last
// compaction: they rest as long only after an attempt that changed nothing.
func (p Policy) soft(w, ours Window, s State, cut Cut) string {
	small := s.Tokens < s.Session.RearmTokens
	switch {
	case p.Tokens && !small && s.Tokens >= w.Trigger():
		return TriggerThreshold
	case small && s.Session.CompactError != "":
		return ""
	case cut.Index == 0:
		// Nothing can leave: no job, and none later for the same events.
	case p.Window > 0 && cut.Index >= p.Window:
		return TriggerWindow
	case p.MaxMessages > 0 && len(s.Tail) > p.MaxMessages:
		return TriggerMessages
	case p.Segment > 0:
		return TriggerTurns // Plan cuts nothing before a segment is full
	case p.Batch && cut.Source >= p.batch(ours, s, cut):
		return TriggerBatch
	case p.cooled(s) && cut.Index >= p.LeastCooldown():
		return TriggerCooldown
	}
	if p.offloading(w, s) && len(p.large(s.Tail)) > 0 {
		return TriggerOffload
	}
	return ""
}

// cooled reports whether the last compaction, or else the session's beginning, is as long ago as the policy wants. A
// clock that went backwards has measured nothing: the next compaction by count sets it right.
func (p Policy) cooled(s State) bool {
	at := p.CooledAt(s.Session)
	return !at.IsZero() && !s.Now.Before(at)
}

// CooledAt is the end of a session's cooldown; zero where the policy has none.
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

// LeastCooldown is how many events have to be able to leave for a compaction by cooldown: half of the window where the
// policy does not say, since a compaction for each message is what a window is there to spare.
func (p Policy) LeastCooldown() int {
	if p.CooldownMin > 0 {
		return p.CooldownMin
	}
	return max(1, p.Window/2)
}
