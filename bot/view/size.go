package view

import (
	"time"

	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// Estimate returns the uncalibrated token count of a request with the question asked.
func (b *Builder) Estimate(v sessions.View, asked []sessions.Event) int {
	frame := b.FrameOf(v.Session)
	n := frame.Tokens + frame.Offer(v.Tail, asked).Tokens + clockTokens + b.Counted.Count(Reference(v, b.Settings(v.Session).Policy)) + tokens.MessageOverhead
	group := v.Session.ConversationType != sessions.Private
	var minute time.Time
	for _, events := range [][]sessions.Event{v.Tail, asked} {
		n += compaction.TokensOf(events) + b.MediaTokens(v.Session.Key, events)
		for _, e := range events {
			if e.Role != sessions.RoleUser {
				continue
			}
			if at := e.CreatedAt.Truncate(time.Minute); !at.Equal(minute) {
				minute, n = at, n+minuteTokens
			}
			if group {
				n += b.Counted.Count(sessions.Speaker(e.SenderNick, e.SenderID)) + 1
			}
		}
	}
	return n
}

// Upper bounds in tokens: the first clock line, with date and group, and each later one.
const (
	clockTokens  = 120
	minuteTokens = 10
)

// CountEvent counts an event's body, its calls included.
func (b *Builder) CountEvent(e sessions.Event) int {
	n := b.shared.Counter.Count(e.Content)
	for _, c := range e.ToolCalls {
		n += b.shared.Counter.Count(c.Name) + b.shared.Counter.Count(c.Arguments) + tokens.MessageOverhead
	}
	return n
}

// Fixed counts a view besides conversation and summaries.
func (b *Builder) Fixed(v sessions.View) int {
	frame := b.FrameOf(v.Session)
	return frame.Tokens + frame.Offer(v.Tail).Tokens + b.Counted.Count(v.Session.Pinned) + tokens.MessageOverhead
}

// Size estimates a view as a request, in tokens corrected by cal.
func (b *Builder) Size(v sessions.View, cal float64) int {
	n := b.Fixed(v) + compaction.TokensOf(v.Tail)
	for _, s := range v.Summaries {
		n += s.Tokens + tokens.MessageOverhead
	}
	return Calibrated(n, cal)
}

// Calibrated corrects a token count; a factor of 0 or less counts as 1.
func Calibrated(tokens int, cal float64) int {
	if cal <= 0 {
		cal = 1
	}
	return int(float64(tokens) * cal)
}

// ContextSize returns the last reported size in tokens, or an estimate before the first report.
func (b *Builder) ContextSize(v sessions.View) int {
	if v.Session.TotalTokens > 0 {
		return v.Session.TotalTokens
	}
	return b.Size(v, v.Session.CalibrationFactor)
}
