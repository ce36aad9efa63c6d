package outbox

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/sessions"
)

// queue is the unsent replies of one conversation, in order. What a reply says is in its row alone.
type queue struct {
	parcels []*parcel
	Until   time.Time      // no message goes before
	piled   bool           // replies piled up during a wait: they go out as one message
	wake    chan struct{}  // another reply came, or the outbox closes
	away    []sessions.Key // what was turned away for the length of the queue
}

// parcel is the place of one reply in a queue.
type parcel struct {
	rowID
	lease    sessions.Lease // that the row is claimed by
	nonce    string
	log      *zerolog.Logger    // of the turn that it came from
	then     func()             // runs after the first try
	fresh    *sessions.Outgoing // as the commit wrote it, for the try that the commit claimed
	next     time.Time          // no try before
	joint    string             // the key of the message that it may have arrived in, together with others
	part     int                // of that message, or of its own, that arrived
	maybe    bool               // a try may have arrived
	alone    bool               // it goes in no message with others: one was refused
	refusals int
	failures int               // tries that failed without a refusal, and without a pause that the transport asked for
	owed     *sessions.Settled // a mark that the storage did not take, of a try that may have arrived
	unmarked bool              // the storage did not take the mark of the last try
}

func newParcel(log *zerolog.Logger, l sessions.Lease, out sessions.Outgoing) *parcel {
	p := &parcel{
		rowID: rowID{out.Key, out.ID}, lease: l, nonce: out.Reply.Nonce, log: log, next: out.NextAt,
		part: out.Part, maybe: out.Maybe, refusals: out.Refusals,
	}
	if out.Maybe {
		p.joint = out.Joint
	}
	return p
}

// tried runs what waits for the first try.
func (p *parcel) tried() {
	if p.then != nil {
		p.then()
		p.then = nil
	}
}

// whole reports whether nothing of a reply can have arrived and it was never refused, so that it may go out as a part of
// another message.
func (p *parcel) whole() bool {
	return p.part == 0 && !p.maybe && !p.alone && p.refusals == 0 && !p.aside()
}

// maxBlocking is how often a reply may be refused before the others pass it.
const maxBlocking = 3

// maxFailures is how often a reply may fail otherwise before the others pass it: two to four minutes of an outage. A text
// that makes DingTalk fail each time looks like an outage, and must not silence its conversation for a day.
const maxFailures = 8

// aside reports whether the others pass a reply: it waits by itself for what tries it has left.
func (p *parcel) aside() bool { return p.refused() || p.failures >= maxFailures }

// failures is how often in a row the replies of a message failed without a refusal.
func failures(batch []*parcel) int {
	n := 0
	for _, p := range batch {
		n = max(n, p.failures)
	}
	return n
}

// refused reports whether a reply is likely to be given up soon.
func (p *parcel) refused() bool { return p.refusals >= maxBlocking }

// maxJoined is how many waiting replies become one message.
const maxJoined = 10

// Poke has the queue look again what is due.
func (q *queue) Poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// inLine is how many replies the conversation is expected to wait for. Those that failed count even where others pass them:
// in an outage that is every reply, and the queue has to stay short.
func (q *queue) inLine() int {
	n := 0
	for _, p := range q.parcels {
		if !p.refused() {
			n++
		}
	}
	return n
}

// pick returns the replies of the next message and when it is due: the first in line, or one aside that is due before it.
func (q *queue) pick() (batch []*parcel, due time.Time) {
	var first *parcel
	lined := false
	for _, p := range q.parcels {
		if !p.aside() && lined {
			continue
		}
		lined = lined || !p.aside()
		at := p.next
		if at.Before(q.Until) {
			at = q.Until
		}
		if first == nil || at.Before(due) {
			first, due = p, at
		}
	}
	return q.with(first), due
}

// with returns the replies that go out in one message with first. Replies that may have arrived as one message go out as
// that one again, under its key; where one of them is gone or another replica's, each goes alone.
func (q *queue) with(first *parcel) []*parcel {
	if key := first.joint; key != "" {
		var group []*parcel
		for _, p := range q.parcels {
			if p.joint == key {
				group = append(group, p)
			}
		}
		if jointKey(group) == key {
			return group
		}
		for _, p := range group {
			p.joint, p.part = "", 0
		}
	}
	batch := []*parcel{first}
	if !q.piled || !first.whole() {
		return batch
	}
	for _, p := range q.parcels[slices.Index(q.parcels, first)+1:] {
		if p.aside() {
			continue
		}
		if !p.whole() || len(batch) == maxJoined {
			break
		}
		batch = append(batch, p)
	}
	return batch
}

// jointKey is the key of the message that holds replies together, drawn from theirs: it is another message than any of
// them. For one reply alone it is empty.
func jointKey(batch []*parcel) string {
	if len(batch) < 2 {
		return ""
	}
	keys := sha256.New()
	for _, p := range batch {
		keys.Write([]byte(p.nonce))
	}
	return chat.KeyPrefix + hex.EncodeToString(keys.Sum(nil)[:12])
}
