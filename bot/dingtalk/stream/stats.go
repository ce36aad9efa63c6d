package stream

import "sync/atomic"

// Stats are the counters of a stream.
type Stats struct {
	ConnectionsOpened int64
	ConnectionsFailed int64 // failed attempts to open one
	ConnectionsLost   int64 // ended without notice
	Rotations         int64 // replaced at DingTalk's request or after silence
	Frames            int64 // frames of bot messages
	Accepted          int64 // accepted and acknowledged with 200, redelivered ones included
	Unreadable        int64 // without message or conversation id, or no frame that can be read
	Rejected          int64 // not stored: storage failed or was too slow
}

type counters struct {
	opened, openFailed, lost, rotated      atomic.Int64
	frames, accepted, unreadable, rejected atomic.Int64
}

func (c *counters) stats() Stats {
	return Stats{
		ConnectionsOpened: c.opened.Load(), ConnectionsFailed: c.openFailed.Load(),
		ConnectionsLost: c.lost.Load(), Rotations: c.rotated.Load(),
		Frames: c.frames.Load(), Accepted: c.accepted.Load(), Unreadable: c.unreadable.Load(), Rejected: c.rejected.Load(),
	}
}
