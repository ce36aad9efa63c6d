package memstore

import (
	"context"
	"sync"
	"time"

	"ebb/sessions"
)

// tables are the rows of all sessions and replicas, which the parts of a Store share.
type tables struct {
	mu        sync.Mutex
	ttl       time.Duration
	beats     map[sessions.ReplicaID]time.Time
	standing  []replicaMark // in the order of their first beats
	sessions  map[sessions.Key]*sessionRows
	deleted   map[deletedMessage]bool
	lastID    int64
	staff     staffIDs
	listeners map[*wakeListener]bool
	windows   map[limitSubject]limitWindow
	cardRows  map[cardID]*cardRow
	scopes    map[sessions.Key]sessions.Scope // by the key of the group
}

// leases keeps heartbeats, leases and wake-ups.
type leases struct{ *tables }

// outbox keeps replies until they are settled.
type outbox struct{ *tables }

// cards keeps the states of cards.
type cards struct{ *tables }

// compactions changes the views of sessions, and keeps the log of that.
type compactions struct{ *tables }

// groupScopes keeps the chosen scopes of groups.
type groupScopes struct{ *tables }

// sessionRows is the rows of one session.
type sessionRows struct {
	state     sessions.Session
	events    []*sessions.Event
	summaries []*sessions.Summary
	outbox    []*outboxRow
	runs      []sessions.ToolRun
	log       []loggedAttempt
	shown     map[int64]sessions.Shown // by place
	sent      map[int64]time.Time      // by the id of a message: when it was sent
	blobs     map[string]string
	job       *compactionJob
	spentOn   string // the day that state.SpentToday is of
	spent     map[spentKind]sessions.Spending
	marks     map[int64]turnMark
	fallen    int64 // the term of the last lease that was taken from a replica without a heartbeat
	cut       int   // turns that erasures ended since the last commit
	upkeep    upkeep
}

// spentKind is one kind of work on one day.
type spentKind struct{ day, kind string }

// upkeep is a flush, a compaction or a rewriting of a session.
type upkeep struct {
	term  int64     // it is under way under this lease,
	until time.Time // up to this time at most
	cut   int       // how many erasures ended since the last one that stored something
}

// outboxRow is a row of the outbox with its state.
type outboxRow struct {
	sessions.Outgoing
	sender   sessions.ReplicaID
	sending  bool // false: it waits for NextAt
	inFlight bool // a try has begun, and no mark says how it ended
	settled  bool
	sent     bool            // settled as sent
	ended    time.Time       // when it was settled
	answer   *sessions.Event // nil: a notice
}

// handTime is how long a reply counts as being sent before the sweep shows it to its own sender again.
const handTime = time.Minute

func (m *tables) isAlive(owner sessions.ReplicaID) bool {
	beat, ok := m.beats[owner]
	return ok && time.Since(beat) < m.ttl
}

// lockSession locks the store and returns the session that a lease covers. The caller unlocks, unless there is an error.
func (m *tables) lockSession(ctx context.Context, l sessions.Lease) (*sessionRows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	s, err := m.fencedSession(l)
	if err != nil {
		m.mu.Unlock()
	}
	return s, err
}

// fencedSession returns the session that a lease covers; the caller holds the mutex.
func (m *tables) fencedSession(l sessions.Lease) (*sessionRows, error) {
	s, ok := m.sessions[l.Key]
	if !ok || l.Owner == "" || s.state.Lease.Owner != l.Owner || s.state.Lease.Term != l.Term {
		return nil, sessions.ErrLeaseLost
	}
	return s, nil
}

func copyAll[T any](list []*T) []T {
	var c []T
	for _, v := range list {
		c = append(c, *v)
	}
	return c
}

// Store keeps sessions in memory, with everything that a database gives but durability: fencing, dedupe, leases that go
// stale. Several replicas of a test share one. Its clock is time.Now, which a synctest bubble stops.
type Store struct {
	*tables
	leases
	outbox
	cards
	compactions
	inspection
	groupScopes
}

// inspection shows rows to tests, and changes them.
type inspection struct{ *tables }

// deletedMessage is a message that was deleted with its session. The conversation is without the member, whose id may
// differ in the next delivery.
type deletedMessage struct {
	robot        sessions.RobotCode
	conversation sessions.ConversationID
	id           sessions.MessageID
}

func deletionOf(key sessions.Key, id sessions.MessageID) deletedMessage {
	robot, conversation := key.Conversation()
	return deletedMessage{robot, conversation, id}
}

// turnMark says which turn has a message, and which one was counted last because its process seemed dead, by their terms.
type turnMark struct{ attempt, counted int64 }

// cardID is the key of a card's row.
type cardID struct {
	key   sessions.Key
	track string
}

// cardRow is the row of a card.
type cardRow struct {
	sessions.Card
	state  sessions.CardState
	rating sessions.Rating
	next   time.Time // next attempt to close it in the background
}

// loggedAttempt is a row of the compaction log, with what an undo needs.
type loggedAttempt struct {
	sessions.LogEntry
	gen     int
	before  *viewBefore // view before a committed compaction
	askedBy int64       // message that asked for the undo; 0 for none
}

// compactionJob is the row of a compaction under way.
type compactionJob struct {
	sessions.Job
	hash   string
	staged []byte
}

// replicaMark is how one replica stands.
type replicaMark struct {
	id sessions.ReplicaID
	sessions.ReplicaStatus
}

// limitSubject is a person, a group or a notice about one of them.
type limitSubject struct {
	kind  string
	robot sessions.RobotCode
	id    string
}

// limitWindow is the latest window of a subject.
type limitWindow struct {
	ends    time.Time
	used    int
	noticed sessions.MessageID
}

// wakeListener is one call of Listen: its pending keys, and a signal that there are some.
type wakeListener struct {
	owner sessions.ReplicaID
	some  chan struct{}

	mu    sync.Mutex
	queue []sessions.Key
}

// staffIDs are the staff ids seen with each encrypted id.
type staffIDs map[senderID][]sessions.UserID

// viewBefore is what a compaction changed.
type viewBefore struct {
	cursor    int64
	summaries []int64 // the active ones
	pinned    string
	shown     map[int64]sessions.Shown // changed views of its events; zero: as they were said
}

// senderID is an encrypted id as one robot receives it.
type senderID struct {
	robot     sessions.RobotCode
	encrypted sessions.UserID
}

func (s *sessionRows) findEvent(id int64) *sessions.Event {
	for _, e := range s.events {
		if e.ID == id {
			return e
		}
	}
	return nil
}
