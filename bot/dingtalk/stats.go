package dingtalk

import "sync/atomic"

// Stats counts what a transport did since it was made.
type Stats struct {
	ConnectionsOpened int64 // connections that were opened
	ConnectionsFailed int64 // tries to open one that failed
	ConnectionsLost   int64 // connections that ended without notice
	Rotations         int64 // connections that DingTalk asked to leave, or that were replaced for their silence
	Frames            int64 // frames of bot messages
	Accepted          int64 // of those, accepted and acknowledged with 200, repeated ones included
	Unreadable        int64 // of those, without a message or conversation id
	Rejected          int64 // of those, not stored: storage failed, was too slow or broke
	SentWebhook       int64 // messages sent to session webhooks
	SentOpenAPI       int64 // messages sent through the open API
	SendsFailed       int64 // messages that did not arrive, whatever the reason
	RateLimited       int64 // of those, because DingTalk or our own limit said too many
	TokensFetched     int64 // access tokens received
	Connected         bool  // a connection is up
}

type counters struct {
	opened, openFailed, lost, rotated        atomic.Int64
	frames, accepted, unreadable, rejected   atomic.Int64
	webhook, openAPI, failed, limited, token atomic.Int64
}

// Stats returns the counters as they stand.
func (t *Transport) Stats() Stats {
	c := &t.counters
	return Stats{
		ConnectionsOpened: c.opened.Load(), ConnectionsFailed: c.openFailed.Load(),
		ConnectionsLost: c.lost.Load(), Rotations: c.rotated.Load(),
		Frames: c.frames.Load(), Accepted: c.accepted.Load(), Unreadable: c.unreadable.Load(), Rejected: c.rejected.Load(),
		SentWebhook: c.webhook.Load(), SentOpenAPI: c.openAPI.Load(), SendsFailed: c.failed.Load(),
		RateLimited: c.limited.Load(), TokensFetched: c.token.Load(),
		Connected: t.Ready(),
	}
}
