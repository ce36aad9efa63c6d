package dingtalk

import "sync/atomic"

// Stats are the counters of a transport.
type Stats struct {
	ConnectionsOpened int64
	ConnectionsFailed int64 // failed attempts to open one
	ConnectionsLost   int64 // ended without notice
	Rotations         int64 // replaced at DingTalk's request or after silence
	Frames            int64 // frames of bot messages
	Accepted          int64 // accepted and acknowledged with 200, redelivered ones included
	Unreadable        int64 // without message or conversation id
	Rejected          int64 // not stored: storage failed or was too slow
	SentWebhook       int64
	SentOpenAPI       int64
	SentCard          int64 // cards ended with a reply
	SendsFailed       int64 // undelivered messages, for any reason
	RateLimited       int64 // undelivered because of DingTalk's or our rate limit
	TokensFetched     int64
	Connected         bool
}

type counters struct {
	opened, openFailed, lost, rotated      atomic.Int64
	frames, accepted, unreadable, rejected atomic.Int64
}

// Stats returns the current counters.
func (t *Transport) Stats() Stats {
	c, s := &t.counters, t.sender
	return Stats{
		ConnectionsOpened: c.opened.Load(), ConnectionsFailed: c.openFailed.Load(),
		ConnectionsLost: c.lost.Load(), Rotations: c.rotated.Load(),
		Frames: c.frames.Load(), Accepted: c.accepted.Load(), Unreadable: c.unreadable.Load(), Rejected: c.rejected.Load(),
		SentWebhook: s.byWebhook.Load(), SentOpenAPI: s.byOpenAPI.Load(), SentCard: s.onCard.Load(), SendsFailed: s.failed.Load(),
		RateLimited: s.limited.Load() + t.judge.Limited(), TokensFetched: t.api.TokensFetched(),
		Connected: t.Ready(),
	}
}
