package dingtalk

import "ebb/bot/dingtalk/stream"

// Stats are the counters of a transport.
type Stats struct {
	stream.Stats
	SentWebhook   int64
	SentOpenAPI   int64
	SentCard      int64 // cards ended with a reply
	SendsFailed   int64 // undelivered messages, for any reason
	RateLimited   int64 // undelivered because of DingTalk's or our rate limit
	TokensFetched int64
	Connected     bool
}

// Stats returns the current counters.
func (t *Transport) Stats() Stats {
	out := t.sender
	return Stats{
		Stats:       t.stream.Stats(),
		SentWebhook: out.byWebhook.Load(), SentOpenAPI: out.byOpenAPI.Load(), SentCard: out.onCard.Load(), SendsFailed: out.failed.Load(),
		RateLimited: out.limited.Load() + t.judge.Limited(), TokensFetched: t.api.TokensFetched(),
		Connected: t.Ready(),
	}
}
