package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/sessions"
	"ebb/sessions/guard"
)

// queue has the unsent replies of one conversation, in order. Their texts are in the storage only.
type queue struct {
	channel    // on cards, the order matters within each session alone
	replies    []*pending
	newest     webhook        // conversation's newest
	until      time.Time      // no message goes before
	waited     bool           // replies that gathered during the wait go out as one message
	wake       chan struct{}  // another reply came, or the outbox closes
	turnedAway []sessions.Key // sessions that wait for room in the queue
}

type rowID struct {
	key sessions.Key
	id  int64
}

type pending struct {
	rowID
	lease    sessions.Lease // for claims of the row
	channel  channel
	nonce    string
	card     bool               // begins on a card
	webhook  webhook            // its own, or that of a later message in place of one without use
	lent     bool               // it is that of a later message
	log      *zerolog.Logger    // logger of the turn that committed it
	then     func()             // after the first attempt
	fresh    *sessions.Outgoing // as committed, for the attempt that the commit claimed
	next     time.Time          // no attempt before
	due      bool               // its pause is over in the storage
	joint    string             // key of the joined message in which it may have arrived
	part     int                // index of the part that arrived, of the joined or its own message
	maybe    bool               // an attempt may have arrived
	alone    bool               // a joined message was refused
	aside    bool               // it waits for calls: its webhook is of no use
	reminder bool               // needs more remaining calls than an answer
	refusals int
	failures int                   // attempts that failed without a refusal or a pause by the transport
	owedMark *sessions.SendOutcome // unstored mark of an attempt that may have arrived
	unmarked bool                  // the mark of the last attempt is not stored
	file     *sessions.File        // sent in place of a text
	attempts int                   // begun for its row, as of its last claim
	way      fileState
}

func newPending(log *zerolog.Logger, l sessions.Lease, out sessions.Outgoing) *pending {
	p := &pending{
		rowID: rowID{out.Key, out.ID}, lease: l, channel: channelOf(out), nonce: out.Reply.Nonce, card: out.Reply.Target.Card != "", log: log, next: out.NextAt, due: out.Due,
		part: out.Part, maybe: out.Maybe, refusals: out.Refusals, webhook: webhookOf(out.Reply.Target), reminder: out.Reply.Target.Scheduled,
		file: out.Reply.Target.File,
	}
	if out.Maybe {
		p.joint = out.Joint
	}
	p.aside = out.Via == chat.ViaOpenAPI && !out.NextAt.IsZero()
	return p
}

func (p *pending) runThen() {
	if then := p.then; then != nil {
		p.then = nil
		guard.Run(p.log.WithContext(context.Background()), guard.Session, then)
	}
}

// joinable reports whether a reply may be part of a joined message: it has no card and no file, and no attempt was refused or may
// have arrived.
func (p *pending) joinable() bool {
	return !p.card && p.file == nil && p.part == 0 && !p.maybe && !p.alone && p.refusals == 0 && !p.passed()
}

// MaxBlocking is the number of refusals by DingTalk after which other replies pass one.
const MaxBlocking = 3

// passed reports whether later replies go first. An answer without calls is not passed: a later one has no other way, or its
// webhook serves both. A reminder without calls is: an answer may still have some. So is a file that failed.
func (p *pending) passed() bool {
	return p.refused() || p.aside && (p.reminder || p.file != nil) || p.failures >= maxFailures
}

func failures(batch []*pending) int {
	n := 0
	for _, p := range batch {
		n = max(n, p.failures)
	}
	return n
}

func (p *pending) refused() bool { return p.refusals >= MaxBlocking }

// isFile reports whether a reply is sent as a file. Another one is a text, or words in place of a file.
func (p *pending) isFile() bool { return p.file != nil && p.way.fault == "" }

const maxJoined = 10

func (q *queue) notify() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) holds(key sessions.Key) bool {
	return slices.ContainsFunc(q.replies, func(p *pending) bool { return p.key == key })
}

// remindersAfter counts the reminders behind a reply that wait for calls.
func (q *queue) remindersAfter(p *pending) (n int) {
	for _, x := range q.replies[slices.Index(q.replies, p)+1:] {
		if x.aside && x.reminder {
			n++
		}
	}
	return n
}

// blocks reports whether the queue has replies of the session that no other passes. A nil queue has none.
func (q *queue) blocks(key sessions.Key) bool {
	return q != nil && slices.ContainsFunc(q.replies, func(p *pending) bool { return p.key == key && !p.passed() })
}

// renew gives a session's queued replies a newer lease, and ends a pause that the storage has ended. It reports whether
// the queue has p.
func (q *queue) renew(p *pending) (known bool) {
	for _, x := range q.replies {
		if x.key == p.key && x.lease.Term < p.lease.Term {
			x.lease = p.lease
		}
		if x.rowID == p.rowID {
			known, x.maybe = true, x.maybe || p.maybe
			if p.due {
				q.endPause(x)
			}
		}
	}
	q.notify()
	return known
}

func (q *queue) endPause(p *pending) {
	if q.until.Equal(p.next) {
		q.until = time.Time{}
	}
	p.next = time.Time{}
}

// lend gives texts, and words in place of files, that wait for calls the newest webhook of their conversation: it takes none.
func (q *queue) lend() {
	for _, p := range q.replies {
		if p.aside && !p.isFile() && q.newest.isAfter(p.webhook) {
			p.webhook, p.lent, p.aside = q.newest, true, false
			q.endPause(p)
			q.waited = true
			q.notify()
		}
	}
}

// length leaves out replies that are refused repeatedly, or wait aside. Failed replies count even if others pass them: in an outage
// all replies fail, and the queue has to stay short.
func (q *queue) length() int {
	n := 0
	for _, p := range q.replies {
		if !p.refused() && !p.aside {
			n++
		}
	}
	return n
}

// nextBatch takes the first reply of a line, or a passed one that is due earlier. It is empty if all are held back: the session has
// an earlier reply in another queue.
func (q *queue) nextBatch(held func(sessions.Key) bool) (batch []*pending, due time.Time) {
	var first *pending
	lined := map[sessions.Key]bool{}
	for _, p := range q.replies {
		line := q.line(p)
		if !p.passed() && lined[line] || q.card && held(p.key) {
			continue
		}
		lined[line] = lined[line] || !p.passed()
		at := p.next
		if at.Before(q.until) {
			at = q.until
		}
		if first == nil || at.Before(due) {
			first, due = p, at
		}
	}
	if first == nil {
		return nil, time.Time{}
	}
	return q.batchOf(first), due
}

// line is one for all replies of a queue, or one for each session among replies on cards.
func (q *queue) line(p *pending) sessions.Key {
	if q.card {
		return p.key
	}
	return ""
}

// batchOf returns the replies that go out in one message with first. Those that may have arrived as one message go out
// as that message again, under its key. If one of them is missing, each goes alone.
func (q *queue) batchOf(first *pending) []*pending {
	if key := first.joint; key != "" {
		var group []*pending
		for _, p := range q.replies {
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
	batch := []*pending{first}
	if !q.waited || !first.joinable() {
		return batch
	}
	for _, p := range q.replies[slices.Index(q.replies, first)+1:] {
		if p.passed() || q.line(p) != q.line(first) {
			continue
		}
		if !p.joinable() || len(batch) == maxJoined {
			break
		}
		batch = append(batch, p)
	}
	return batch
}

// jointKey differs from the key of each reply; empty for one reply.
func jointKey(batch []*pending) string {
	if len(batch) < 2 {
		return ""
	}
	keys := sha256.New()
	for _, p := range batch {
		keys.Write([]byte(p.nonce))
	}
	return chat.KeyPrefix + hex.EncodeToString(keys.Sum(nil)[:12])
}
