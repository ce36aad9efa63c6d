package view

import (
	"time"

	"ebb/bot/parts"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// Sizes count requests, in tokens.
type Sizes struct {
	shared  *parts.Shared
	choices Choices
	frames  Frames
	Counted *TokenCache
}

// Estimate returns the uncalibrated token count of a request with the question asked.
func (sz Sizes) Estimate(v sessions.View, asked []sessions.Event) int {
	frame := sz.frames.FrameOf(v.Session)
	n := frame.Tokens + frame.Offer(v.Tail, asked).Tokens + clockTokens + sz.Counted.Count(Reference(v, sz.choices.Settings(v.Session).Policy)) + tokens.MessageOverhead
	group := v.Session.ConversationType != sessions.Private
	var minute time.Time
	for _, events := range [][]sessions.Event{v.Tail, asked} {
		n += compaction.TokensOf(events) + sz.MediaTokens(v.Session.Key, events)
		for _, e := range events {
			if e.Role != sessions.RoleUser {
				continue
			}
			if at := e.CreatedAt.Truncate(time.Minute); !at.Equal(minute) {
				minute, n = at, n+minuteTokens
			}
			if group {
				n += sz.Counted.Count(sessions.Speaker(e.SenderNick, e.SenderID)) + 1
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
func (sz Sizes) CountEvent(e sessions.Event) int {
	n := sz.shared.Counter.Count(e.Content)
	for _, c := range e.ToolCalls {
		n += sz.shared.Counter.Count(c.Name) + sz.shared.Counter.Count(c.Arguments) + tokens.MessageOverhead
	}
	return n
}

// Fixed counts a view besides conversation and summaries.
func (sz Sizes) Fixed(v sessions.View) int {
	frame := sz.frames.FrameOf(v.Session)
	return frame.Tokens + frame.Offer(v.Tail).Tokens + sz.Counted.Count(v.Session.Pinned) + tokens.MessageOverhead
}

// Size estimates a view as a request, in tokens corrected by cal.
func (sz Sizes) Size(v sessions.View, cal float64) int {
	n := sz.Fixed(v) + compaction.TokensOf(v.Tail)
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
func (sz Sizes) ContextSize(v sessions.View) int {
	if v.Session.TotalTokens > 0 {
		return v.Session.TotalTokens
	}
	return sz.Size(v, v.Session.CalibrationFactor)
}

// State takes the size of the context in tokens.
func (sz Sizes) State(v sessions.View, size int) compaction.State {
	s := compaction.State{Session: v.Session, Tail: v.Tail, Fixed: sz.Fixed(v), Tokens: size, Now: sz.shared.Now()}
	for _, a := range v.Summaries {
		s.SummaryTokens += a.Tokens + tokens.MessageOverhead
	}
	return s
}

// Decide returns the due work on a view of the given tokens.
func (sz Sizes) Decide(v sessions.View, tokens int) compaction.Need {
	set := sz.choices.Settings(v.Session)
	if !set.Enabled {
		return compaction.Need{Hard: tokens >= set.Window.Usable()}
	}
	return set.Policy.Decide(set.Window, sz.State(v, tokens))
}

// MediaTokens is the size of the attachments of events in a request.
func (sz Sizes) MediaTokens(key sessions.Key, events []sessions.Event) (n int) {
	for i := range events {
		e := &events[i]
		if len(e.Media) == 0 {
			continue
		}
		for _, a := range e.Media {
			if a.Picture != nil {
				n += a.Tokens + tokens.MessageOverhead
			}
			n += sz.Counted.Count(MediaNote(a, e.Seq))
		}
		if text := fileTexts(key, e.Media); text != "" {
			n += sz.Counted.Count(text) + tokens.MessageOverhead
		}
	}
	return n
}
