package dingtalk

// Stats are the counters of a transport.
type Stats struct {
	ConnectionsOpened int64
	ConnectionsFailed int64 // failed attempts to open one
	ConnectionsLost   int64 // ended without notice
	Rotations         int64 // replaced at DingTalk's request or after silence
	Frames            int64 // frames of bot messages
	Accepted          int64 // accepted and acknowledged with 200, redelivered ones included
	Unreadable        int64 // without message or conversation id, or no frame that can be read
	Rejected          int64 // not stored: storage failed or was too slow
	SentWebhook       int64
	SentOpenAPI       int64
	SentCard          int64 // cards ended with a reply
	SendsFailed       int64 // undelivered messages, for any reason
	RateLimited       int64 // undelivered because of DingTalk's or our rate limit
	TokensFetched     int64
	Connected         bool
}

// Stats returns the current counters.
func (t *Transport) Stats() Stats {
	in, out := t.stream.Stats(), t.sender
	return Stats{
		ConnectionsOpened: in.ConnectionsOpened, ConnectionsFailed: in.ConnectionsFailed, ConnectionsLost: in.ConnectionsLost, Rotations: in.Rotations,
		Frames: in.Frames, Accepted: in.Accepted, Unreadable: in.Unreadable, Rejected: in.Rejected,
		SentWebhook: out.byWebhook.Load(), SentOpenAPI: out.byOpenAPI.Load(), SentCard: out.onCard.Load(), SendsFailed: out.failed.Load(),
		RateLimited: out.limited.Load() + t.judge.Limited(), TokensFetched: t.api.TokensFetched(),
		Connected: t.Ready(),
	}
}
