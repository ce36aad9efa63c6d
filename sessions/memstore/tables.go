package memstore

import (
	"context"
	"sync"
	"time"

	"ebb/sessions"
)

type tables struct {
	mu        sync.Mutex
	ttl       time.Duration
	beats     map[sessions.ReplicaID]time.Time
	standing  []replicaMark // in the order of their first beats
	sessions  map[sessions.Key]*sessionRows
	lost      map[sessions.Key]*sessionRows // logs whose session's row was deleted
	deleted   map[deletedMessage]bool
	lastID    int64
	staff     staffIDs
	listeners map[*wakeListener]bool
	windows   map[limitSubject]limitWindow
	gone      map[sessions.Key]*sessionRows // usage alone
	cardRows  map[cardID]*cardRow
	scopes    map[sessions.Key]sessions.Scope // by the key of the group
}

type sessionRows struct {
	state     sessions.Session
	events    []*sessions.Event
	summaries []*sessions.Summary
	outbox    []*outboxRow
	runs      []sessions.ToolRun
	approvals []*sessions.Approval
	log       []loggedAttempt
	shown     map[int64]sessions.Shown // by place
	sent      map[int64]time.Time      // send time by the id of a message
	blobs     map[string]string
	job       *compactionJob
	spentOn   string
	spent     map[spentKind]sessions.Spending
	marks     map[int64]turnMark
	fallen    int64 // term of the last lease taken from a replica without a heartbeat
	cut       int   // turns that erasures ended since the last commit
	upkeep    upkeep
}

type spentKind struct {
	day  string
	kind sessions.SpentKind
}

type upkeep struct {
	term  int64 // its lease's
	until time.Time
	cut   int // runs that erasures ended since the last one that stored something
}

type outboxRow struct {
	sessions.Outgoing
	sender   sessions.ReplicaID
	sending  bool // false: it waits for NextAt
	inFlight bool // a try has begun, and its end is unknown
	settled  bool
	sent     bool
	ended    time.Time       // time of settling
	answer   *sessions.Event // nil: a notice
	carriers []string        // keys of its messages
}

// handTime passes before the sweep shows a reply to its own sender again.
const handTime = time.Minute

func (m *tables) isAlive(owner sessions.ReplicaID) bool {
	beat, ok := m.beats[owner]
	return ok && time.Since(beat) < m.ttl
}

// The caller unlocks, unless there is an error.
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

// fencedSession needs the mutex.
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

// The conversation is without the member, whose id may differ in the next delivery.
type deletedMessage struct {
	robot        sessions.RobotCode
	conversation sessions.ConversationID
	id           sessions.MessageID
}

func deletionOf(key sessions.Key, id sessions.MessageID) deletedMessage {
	robot, conversation := key.Conversation()
	return deletedMessage{robot, conversation, id}
}

// turnMark has the term of the message's turn, and of the last one counted because its process seemed dead; turn is the number of the
// committed one.
type turnMark struct {
	attempt, counted int64
	turn             int64
	width            int
	admitted         bool
}

type cardID struct {
	key   sessions.Key
	track string
}

type cardRow struct {
	sessions.Card
	state   sessions.CardState
	rating  sessions.Rating
	next    time.Time // next attempt in the background
	frame   int64     // term of the call under way that shows something
	until   time.Time // end of that call
	carrier string    // key of its message
}

type loggedAttempt struct {
	sessions.LogEntry
	gen     int
	before  *viewBefore
	askedBy int64 // message that asked for the undo; 0 for none
}

type compactionJob struct {
	sessions.Job
	hash   string
	staged []byte
}

type replicaMark struct {
	id sessions.ReplicaID
	sessions.ReplicaStatus
}

type limitSubject struct {
	kind  string
	robot sessions.RobotCode
	id    string
}

type limitWindow struct {
	ends    time.Time
	used    int
	noticed sessions.MessageID
	parts   map[sessions.UserID]int // turns of each person in a group's window
	before  map[sessions.UserID]int // in the window before it
}

// wakeListener is one call of Listen.
type wakeListener struct {
	owner sessions.ReplicaID
	some  chan struct{}

	mu    sync.Mutex
	queue []sessions.Key
}

type staffIDs map[senderID][]sessions.UserID

type viewBefore struct {
	cursor    int64
	summaries []int64 // active ones
	pinned    string
	shown     map[int64]sessions.Shown // zero: the original content
	freed     int                      // uncalibrated size of the texts that left the view
}

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
