package view

import (
	"time"

	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// Estimate is our own count of the request for asked on a view, not calibrated. Events bring their counts along;
// what else stands in a request is short, or the same in request after request and counted once.
func (b *Builder) Estimate(v sessions.View, asked []sessions.Event) int {
	n := b.Frame.Tokens + clockTokens
	for _, text := range b.Frame.references(v, b.Settings(v.Session).Policy) {
		n += b.Counted.Count(text) + tokens.MessageOverhead
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
				n += b.Counted.Count(sessions.Speaker(e.SenderNick, e.SenderID)) + 1
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

// CountEvent is what an event's body takes, its calls included.
func (b *Builder) CountEvent(e sessions.Event) int {
	n := b.Counter.Count(e.Content)
	for _, c := range e.ToolCalls {
		n += b.Counter.Count(c.Name) + b.Counter.Count(c.Arguments) + tokens.MessageOverhead
	}
	return n
}

// Fixed is what a view holds besides conversation and summaries.
func (b *Builder) Fixed(v sessions.View) int {
	return b.Frame.Tokens + b.Counted.Count(v.Session.Pinned) + tokens.MessageOverhead
}

// Size is our estimate of a view as a request, corrected by cal.
func (b *Builder) Size(v sessions.View, cal float64) int {
	n := b.Fixed(v) + compaction.TokensOf(v.Tail)
	for _, s := range v.Summaries {
		n += s.Tokens + tokens.MessageOverhead
	}
	return Calibrated(n, cal)
}

func Calibrated(tokens int, cal float64) int {
	if cal <= 0 {
		cal = 1
	}
	return int(float64(tokens) * cal)
}

// ContextSize is the size of the session's context as it would be sent now: as last reported, or as estimated before
// the first report.
func (b *Builder) ContextSize(v sessions.View) int {
	if v.Session.TotalTokens > 0 {
		return v.Session.TotalTokens
	}
	return b.Size(v, v.Session.CalibrationFactor)
}
