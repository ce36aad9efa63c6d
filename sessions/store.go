package sessions

import (
	"context"
	"errors"
	"time"
)

// Errors of a [Store] that callers act upon. Any other error is a fault of the storage.
var (
	// ErrLeaseLost says that the lease named in a write is not the current one; nothing was written.
	ErrLeaseLost = errors.New("session lease lost")
	// ErrLeaseHeld says that a living replica holds the session.
	ErrLeaseHeld = errors.New("session lease held by another replica")
	// ErrConflict says that the log moved under a compare-and-swap; nothing was written.
	ErrConflict = errors.New("session changed meanwhile")
	// ErrNotFound says that there is no such session, summary or row.
	ErrNotFound = errors.New("not found")
	// ErrRefused says that the data break a rule of the storage: nothing was written, and a retry can't help.
	ErrRefused = errors.New("the storage refused the data")
)

// Store keeps sessions. All methods are safe for concurrent use; each is one transaction and leaves nothing locked.
// Times are the storage's own.
type Store interface {
	Inbox
	Leaser
	Outbox
	Cards
	Compactor
	Turner
	Ledger
	Limiter
	Scopes

	// Session returns the state of a session without its log, at any owner; ErrNotFound without such a session.
	Session(ctx context.Context, key Key) (Session, error)
}

// Turner takes waiting messages and stores the result of a turn.
type Turner interface {
	// Begin opens a turn: it marks up to limit of the oldest pending messages as being in a turn under the lease, and
	// returns the view with them. Together they have at most [MaxTurnBytes], except for the oldest. The term of the lease is
	// the id of the attempt: a second call under it, after a lost answer, counts nothing and marks the same messages. With limit 0 Begin marks nothing and returns no pending messages (maintenance,
	// status).
	//
	// The oldest are those that are marked, then those that were sent first: by [Message].SentAt, or by their arrival if
	// that is missing or an hour off.
	//
	// A mark whose lease was taken from a replica without a heartbeat counts as an attempt: presumably the process died of
	// the message. A mark whose lease was given up, or freed by an erasure, counts nothing. A message with a counted
	// attempt is a suspect. If the oldest is one, View.Suspect is its count, nothing is marked, and the rest of the view
	// is empty but for the session. A suspect behind other messages waits, with all later ones.
	Begin(ctx context.Context, l Lease, limit int) (View, error)

	// BeginAlone is Begin on the oldest message alone, suspect or not.
	BeginAlone(ctx context.Context, l Lease, limit int) (View, error)

	// Abandon ends a turn that did not commit: an attempt is counted on the blamed messages, and all marks go. An
	// attempt that was counted for a dead process after a lost lease is taken back. Abandon is idempotent.
	Abandon(ctx context.Context, l Lease, blamed []int64) error

	// Commit ends a turn. Taken messages and the turn's events get their places in the view, in the given order; marked
	// messages that were not taken wait unmarked. Counters and outbox row are written in the same transaction.
	Commit(ctx context.Context, l Lease, t Turn) (Committed, error)

	// Quoted finds the quoted message of a session: a person's by the quote's ID, the bot's by the send time of its
	// reply, between commit and settling. The event has only Role, Content, SenderID, SenderNick and Message.
	// ErrNotFound without a match, or with several of the bot's.
	Quoted(ctx context.Context, key Key, q Quote) (Event, error)

	// Requote replaces the quote of a pending message of the lease's session, and its content, which begins with the
	// quote.
	Requote(ctx context.Context, l Lease, event int64, content string, q Quote) error

	// RecordRun stores a tool call before it runs, and again with its result.
	RecordRun(ctx context.Context, l Lease, r ToolRun) error
}

// Ledger counts the cost of model calls.
type Ledger interface {
	// Charge adds a spending that no other write carries to the session's usage and to that of the day. A missing
	// session is not charged.
	Charge(ctx context.Context, key Key, one Spending) error

	// Spent lists the spendings of a session since the day of a time, one of each kind, by name. Days are of UTC.
	Spent(ctx context.Context, key Key, since time.Time) ([]Spending, error)
}

// MaxTurnBytes bounds the messages of a turn in bytes, unless the first one alone has more.
const MaxTurnBytes = 256 << 10

// Compactor changes the view of a session, and keeps the compaction log.
type Compactor interface {
	Jobs

	// Compact changes the view, see [Compaction]. It fails with ErrConflict, and writes nothing, if the session's
	// generation is not c.Gen, its cursor is not at c.From, or the source events differ from c.Source. It also ends the
	// session's job, and deletes blobs that no event of the view needs.
	Compact(ctx context.Context, l Lease, c Compaction) (Compacted, error)

	// Undo reverts the newest committed compaction of the session's generation: cursor, summaries, shown events,
	// referenced bodies and pinned memory are as before it. Later events stay. The session rests for rest tokens more
	// than its context then has. It returns the row of the undo in the compaction log; ErrNotFound if nothing can be
	// undone. event is the id of the requesting message, 0 for none: if its undo is in the log already, nothing
	// changes, and that row is returned. The sender of the message is the one who asked.
	Undo(ctx context.Context, l Lease, event int64, rest int) (LogEntry, error)

	// Rewrite fills an active summary that an erasure emptied, and adds a row to the compaction log. It fails with
	// ErrConflict, and writes nothing, if the summary is not such a one.
	Rewrite(ctx context.Context, l Lease, w Rewritten) error

	// Renew begins a new generation: the view is empty, the log stays. Pinned memory, waiting messages and unflushed
	// events stay too.
	Renew(ctx context.Context, l Lease) error

	// Configure replaces the session's own settings: a JSON object, or empty for none. The caller has checked them.
	Configure(ctx context.Context, l Lease, settings string) error

	// Compactions lists the compaction log, newest first, at most limit rows; an empty key stands for all sessions.
	Compactions(ctx context.Context, key Key, limit int) ([]LogEntry, error)

	// Blob reads an offloaded tool result of the session, from the log if its body is gone. ErrNotFound if the log has
	// it no more either, or if it was never the session's.
	Blob(ctx context.Context, key Key, blob string) (string, error)

	// Backlogs lists sessions that may be due for a compaction without new messages, behind a key in key order. Their
	// context has at least the given tokens, no pause is in force, and the lease is free, stale or owner's. Only Key,
	// ConversationID, TotalTokens, RearmTokens and SpentToday are set.
	Backlogs(ctx context.Context, owner ReplicaID, tokens int, after Key, limit int) ([]Session, error)

	// Log stores a row of the compaction log that belongs to no committed compaction, and its Failures, RetryAt and
	// Rearm in the session.
	Log(ctx context.Context, l Lease, e LogEntry) error
}

// Jobs keep a running compaction, so that a crash does not lose its cost.
type Jobs interface {
	// OpenJob records a running compaction of (j.From, j.Through] in place of any other job of the session, and returns
	// its source. If the same job over the same events was staged before, Source.Staged is its text, and no model call
	// is needed.
	OpenJob(ctx context.Context, l Lease, j Job) (Source, error)

	// StageJob stores the result of the session's job, so that a crash before Compact does not pay for it twice. It also
	// charges the cost, which an erasure of the result can't take back: Compact charges nothing.
	StageJob(ctx context.Context, l Lease, j Job, staged []byte, paid Spending) error

	// MarkUpkeep records that a flush, a compaction, a rewriting or a digest runs under the lease, for limit at most: erasures
	// count it, see [MaxCuts]. A limit of 0 records its end.
	MarkUpkeep(ctx context.Context, l Lease, limit time.Duration) error

	// Job returns the session's job, or ErrNotFound.
	Job(ctx context.Context, key Key) (Job, error)
}

// Inbox makes messages durable.
type Inbox interface {
	// Accept stores a message as a pending event of the session key, creating the session if needed, and takes a free
	// lease for owner. A stored message is not changed. After nil the message survives any crash. A new message with
	// both ids of its sender is remembered for [Inbox.StaffIDs].
	Accept(ctx context.Context, owner ReplicaID, key Key, m Message) (Accepted, error)

	// StaffIDs lists, in order, the staff ids that accepted messages to a robot had next to an encrypted id. Several are
	// ambiguous: the encrypted id then gives no rights.
	StaffIDs(ctx context.Context, robot RobotCode, encrypted UserID) ([]UserID, error)

	// Pending lists the pending messages of a session, in a turn or not, the newest first, at most limit. Each has only
	// the first [MaxPeek] characters of its content, and no text.
	Pending(ctx context.Context, key Key, limit int) ([]Event, error)

	// Waiting lists sessions with pending messages or unsent replies whose lease is free, stale or owner's. This sweep
	// finds every lost wake-up. Sessions without a living owner come before owner's own, so that busy sessions can't
	// hide them; within each kind the longest waiting comes first.
	Waiting(ctx context.Context, owner ReplicaID, limit int) ([]Key, error)

	// Listen calls wake with the key of an owner's session when another replica accepted a message for it, and with the
	// empty key when leases were released. It returns when ctx or the notifications end. Calls of wake are sequential
	// and must not block.
	Listen(ctx context.Context, owner ReplicaID, wake func(Key)) error
}

// MaxPeek bounds the characters of a message in [Inbox.Pending]. A command behind a quote is shorter.
const MaxPeek = 1000

// MaxCuts bounds the turns of a session that erasures interrupt before one commits. The next erasure waits for the
// running turn, so that no member starves a conversation. Flushes and compactions are counted likewise, apart from
// turns, until one of them stores something.
const MaxCuts = 3

// Eraser removes content from a session. It is an administrator's right and needs no lease: running turns, flushes and
// compactions fail at their next write, as after a lost lease, and begin again. After [MaxCuts] of them it waits for
// the end of the next one, or of its own context. It also waits while a replica may be sending a reply of the session, for
// [SendTime] at most for each part, so that no erased word arrives after it.
type Eraser interface {
	// Erase wipes the events at the places seqs and everything made from them. Summaries lose the lines that repeat one
	// of them; one that can't be healed becomes [ErasedText] until [Compactor.Rewrite]. Shown texts, bodies, staged
	// text, possibly repeating replies and facts are deleted. The rows of the events stay with [ErasedText], and so do
	// the cursor and the ways back to former views. It fails with ErrNotFound, and wipes nothing, without such a
	// session or with an empty place.
	Erase(ctx context.Context, key Key, seqs []int64) (Erased, error)

	// Delete removes a session with all its rows and the memory of that session alone; memory of people and groups
	// stays. A later message makes a new session; a deleted message that is redelivered within a day is not stored.
	// ErrNotFound without such a session.
	Delete(ctx context.Context, key Key) (Deleted, error)
}

// ErasedText replaces an erased body, and ErasedTokens is its count: a little more than its size.
const (
	ErasedText   = "[已删除 erased]"
	ErasedTokens = 8
)

// Erased counts the rows wiped by [Eraser.Erase], by kind.
type Erased struct {
	Events    int
	Healed    int // summaries of the view that lost lines
	Summaries int // summaries of the view, emptied until they are written again
	Memories  int // deleted
	Blobs     int // deleted
	Replies   int
}

// Deleted counts the rows deleted by [Eraser.Delete], by kind.
type Deleted struct {
	Events      int
	Summaries   int
	Compactions int // entries in the log of compactions
	Memories    int
	Blobs       int
	Replies     int
}

// Accepted is the outcome of [Inbox.Accept].
type Accepted struct {
	New     bool  // false: the message had been stored before, by another call
	EventID int64 // 0: the message was deleted with its session
	Lease   Lease // as it stands now: of owner, or of another living replica
	// Clash reports that the sender's encrypted id was accepted with another staff id before, and now with this one.
	Clash bool
}

// Leaser grants the right to run a session's turns. A lease is valid while its owner's heartbeat is younger than the
// time to live of the store.
type Leaser interface {
	// Beat stores owner's heartbeat and returns the storage's clock.
	Beat(ctx context.Context, owner ReplicaID) (time.Time, error)
	// Acquire takes the session's lease, or returns the one that owner holds. It returns ErrLeaseHeld if another living
	// replica has it, and ErrNotFound if there is no such session.
	Acquire(ctx context.Context, key Key, owner ReplicaID) (Lease, error)
	// Release gives up one lease if it is the current one. If messages wait, other replicas are woken with the
	// session's key.
	Release(ctx context.Context, l Lease) error
	// Rest releases those of owner's leases of keys whose sessions are idle, and returns their keys. Idle means no
	// message for the given time, no pending message, unsent reply or running compaction, and everything flushed or
	// owed, or no message for the time unflushed.
	Rest(ctx context.Context, owner ReplicaID, keys []Key, rest, unflushed time.Duration) ([]Key, error)
	// Resign gives up all leases of owner at once, wakes other replicas where work waits, and removes its heartbeat.
	// It returns the number of leases.
	Resign(ctx context.Context, owner ReplicaID) (int, error)
}

// Turn is the result of a turn, for [Store.Commit].
type Turn struct {
	Taken []int64 // ids of the pending messages that it answers, in the order of the view
	// TakenTokens are the counts of the taken messages, in the same order.
	TakenTokens []int
	// TakenTexts are the searchable texts of the taken messages, in the same order. A store indexes missing ones later.
	TakenTexts []string
	Command    bool    // it is a slash command with its answer, which no search finds
	Outcome    Outcome // outcome of the command, kept with the taken messages; empty: they stay as they are
	Events     []Event // assistant and tool events, in order; Role, Content, tool fields, Tokens
	Dead       []int64 // ids of pending messages to set aside: they get no place in the view
	Reply      *Reply  // nil: nothing to send
	// ReplyWaits says that the reply waits behind others: it is not sent before it is claimed. Otherwise the commit is the
	// claim of its first try.
	ReplyWaits bool

	Marked []int64 // places in Taken of messages that look worth remembering
	Pinned *Pinned // pinned memory from this turn on, if the ViewVersion still holds; nil: unchanged
	// Read are the other memories that the turn read, and may repeat. A deleted one ends the turn as in [Pinned].
	Read []int64

	// TotalTokens is the size of the next request, if the view still is of the ViewVersion that the turn saw. Otherwise
	// Appended is added to the current size, and ObservedTokens is dropped.
	TotalTokens    int
	Appended       int
	ViewVersion    int
	ObservedTokens int // prompt tokens of the last call as the provider counted them; 0: it did not say
	Calibration    float64
	Usage          Usage // usage of all model calls of the turn
	Cost           float64
	Model          string
}

// Pinned is the memory that a view shows at its head.
type Pinned struct {
	Text string
	// Rows are the memories in Text. Pinning a deleted one, or one that a running transaction deletes, fails with
	// ErrLeaseLost and writes nothing: its author has read forgotten content, and begins again.
	Rows []int64
}

// Committed is the outcome of [Store.Commit].
type Committed struct {
	LastSeq int64
	Replies []Outgoing // the row of Turn.Reply, if there was one
}

// Compaction is a change of a session's view, for [Store.Compact].
type Compaction struct {
	Gen     int
	From    int64 // the cursor as planned: CompactedSeq
	Through int64 // the last event that summaries cover; From if only bodies are shown shortened
	// Summaries are the new ones, oldest first. Each takes the place of the active ones within its range. After that the
	// active summaries must lie end to end, from the first event of the generation to Through.
	Summaries []NewSummary
	// Shown are events that the view shows otherwise from now on.
	Shown []Shown
	// Source is the hash of the events that the summaries were made from, as OpenJob gave it; empty: not compared.
	Source string
	// Freed is taken from the session's TotalTokens, to which a turn may have added since the plan.
	Freed       int
	RearmTokens int
	Pinned      *Pinned // the pinned memory of the view from now on; nil: unchanged
	// Notice is an outbox row that the compaction writes for its conversation.
	Notice *Reply
	// Log is the row of the compaction log; with summaries its range is theirs. An undo restores TokensBefore minus
	// TokensAfter.
	Log LogEntry
}

// Range is the range of events that a compaction with summaries removes from the view, and that an undo restores. A
// rewrite names the range of its summaries.
func (c Compaction) Range() (start, end int64) {
	start = c.From + 1
	if c.Through == c.From {
		for _, n := range c.Summaries {
			start = min(start, n.StartSeq)
		}
	}
	return start, c.Through
}

// NewSummary summarizes the events StartSeq to EndSeq.
type NewSummary struct {
	StartSeq int64  `json:"start_seq"`
	EndSeq   int64  `json:"end_seq"`
	Text     string `json:"text"`
	Tokens   int    `json:"tokens"`
	Level    int    `json:"level"` // 0: made from events
}

// Rewritten is a summary that replaces an emptied one.
type Rewritten struct {
	ID     int64 // id of the summary
	Text   string
	Tokens int
	Growth int      // tokens added to the session's TotalTokens
	Log    LogEntry // log entry of the attempt
}

// Shown is the shown form of an event in the view from now on. The log keeps the body.
type Shown struct {
	Seq    int64
	Text   string
	Tokens int
	// Blob is the address of the kept body for readers of the reference in Text, see [BlobOf].
	Blob string
}

// Compacted is the outcome of [Store.Compact].
type Compacted struct {
	BlobsDeleted int
	Replies      []Outgoing // the row of Compaction.Notice, if there was one
}

// Job is a compaction under way.
type Job struct {
	Gen      int
	From     int64
	Through  int64
	Version  string // version of the instructions that the text is made by; staged text of another version is not used
	Attempts int    // how often it was opened
	Staged   bool
}

// Source is the source of a compaction.
type Source struct {
	// Events are the raw events of the range, with offloaded results. An unreadable one is [Unavailable] and has its
	// Blob set.
	Events []Event
	Hash   string
	Staged []byte // result of the same job before a crash; nil for none
}

// LogEntry is one row of compaction_log: one attempt at a compaction.
type LogEntry struct {
	ID           int64
	Key          Key
	Trigger      string // threshold, window, hard_limit, cooldown, messages, turns, batch, offload, overflow, manual, undo
	Policy       string
	Mode         string
	Model        string
	TokensBefore int
	TokensAfter  int
	StartSeq     int64
	EndSeq       int64
	FlushOutcome string
	Audit        string // JSON
	Duration     time.Duration
	Cost         float64
	Usage        Usage
	Outcome      string // committed, rejected, failed, nothing
	Error        string
	Focus        string
	RequestedBy  string    // the person who asked for it, by id, or an operator's name; empty: automatic
	Undone       time.Time // time of its undo; zero for never
	CreatedAt    time.Time

	// Failures and RetryAt are stored in the session with a failed attempt: consecutive failures, and the earliest next
	// attempt.
	Failures int
	RetryAt  time.Time
	Rearm    int
}

// Reply is a turn's reply to the conversation, for the outbox.
type Reply struct {
	Target Target
	Text   string // Markdown
	// Nonce is the key by which DingTalk recognises a reply that is sent again.
	Nonce string
}

// Outgoing is a row of the outbox.
type Outgoing struct {
	ID       int64
	Key      Key
	Reply    Reply
	Attempts int    // attempts begun, including the current one
	Refusals int    // attempts that DingTalk definitely refused, under a code without a cause
	Part     int    // parts of a split reply that are known to have arrived
	Joint    string // the key of the message that the last try sent it in, together with others; empty: alone
	Maybe    bool   // an attempt may have arrived: its process died before the mark, or DingTalk's answer was lost
	Took     bool   // another process had it before this one
	Due      bool   // the pause before its next attempt is over, which has not begun
	Created  time.Time
	NextAt   time.Time
	Joined   []Reply // the replies of a joined message
}

// SendTime bounds one try to send a reply, from its claim. A request to DingTalk has 5 s, and the claim and the rate of
// calls before it have a second. An erasure waits as long for a try under way, whose text was read before.
const SendTime = 6 * time.Second

// Outbox holds replies between the commit of their turn and DingTalk's confirmation. The row decides: a reply is sent
// by its commit or by a claim, and no copy is sent later.
type Outbox interface {
	// Unsent lists the unsent replies of a session that the lease covers, oldest first, without their texts.
	Unsent(ctx context.Context, l Lease) ([]Outgoing, error)
	// Announce stores a notice that no turn commits, once for each nonce. It is claimed before its first try. It returns nothing
	// if the notice was stored before, or if the lease is not the current one.
	Announce(ctx context.Context, l Lease, r Reply) ([]Outgoing, error)
	// Claim takes unsent replies for one try and returns their current form, oldest first. It omits replies that were
	// settled or erased meanwhile. It fails with ErrLeaseLost, and takes none, if the lease is not the current one.
	Claim(ctx context.Context, l Lease, t Try) ([]Outgoing, error)
	// Settle records the outcome of a try. It returns ErrNotFound if there is no such reply, or if the outcome leaves
	// it open and a later try has begun.
	Settle(ctx context.Context, s Settled) error
	// PutDown releases owner's open replies at its stop, after every attempt is settled.
	PutDown(ctx context.Context, owner ReplicaID) error
}

// Try is one request to DingTalk: a message, or one part of it.
type Try struct {
	IDs   []int64 // ids of the replies in the message
	Joint string  // the key of a message that holds several replies; empty for one alone
	Part  int     // parts of a reply alone that are known to have arrived: the row keeps them where its key is Nonce
	Nonce string  // the key of a reply alone, as its sender knows it; an erasure that changes the text changes the key
}

// Settled is the outcome of a try to send one reply.
type Settled struct {
	Key     Key
	ID      int64
	Attempt int // its number: Outgoing.Attempts
	Sent    bool
	Failed  bool // given up permanently
	Maybe   bool // the attempt failed, and may have arrived
	Refused bool // DingTalk definitely refused this text, under a code without a cause
	Part    int
	Via     string    // webhook, openapi or card
	Card    CardState // the new state of the reply's card; empty: unchanged
	Error   string
	NextAt  time.Time // time of the next try, if neither Sent nor Failed
}
