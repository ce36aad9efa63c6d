package sessions

import (
	"context"
	"errors"
	"time"
)

// Errors of a [Store] that callers act upon. Anything else is trouble with the storage.
var (
	// ErrLeaseLost says that the lease named in a write is not the current one; nothing was written.
	ErrLeaseLost = errors.New("session lease lost")
	// ErrLeaseHeld says that a living replica holds the session.
	ErrLeaseHeld = errors.New("session lease held by another replica")
	// ErrConflict says that the log moved under a compare-and-swap; nothing was written.
	ErrConflict = errors.New("session changed meanwhile")
	// ErrNotFound says that there is no such session, summary or row.
	ErrNotFound = errors.New("not found")
	// ErrRefused says that the data break a rule of the storage: nothing was written, and trying again can't help.
	ErrRefused = errors.New("the storage refused the data")
)

// Store keeps sessions. All methods may be called at once from many goroutines; each is one transaction, and none
// holds anything when it returns. Times are the storage's own.
type Store interface {
	Inbox
	Leaser
	Outbox
	Compactor
	Turner
	Ledger

	// Session returns the state of a session, whoever holds its lease, and nothing of its log: ErrNotFound where there
	// is no such session.
	Session(ctx context.Context, key Key) (Session, error)
}

// Turner takes waiting messages and keeps what a turn made of them.
type Turner interface {
	// Begin opens a turn: it marks up to limit of the oldest pending messages as being in a turn under the lease, and
	// returns the view with them. Beside the oldest these are no more than have [MaxTurnBytes] together. To mark them again under the same lease changes nothing. With limit 0 Begin marks nothing
	// and returns no pending messages (maintenance, status).
	//
	// The oldest are those that are marked, then those that were sent first: by [Message].SentAt, or by their
	// arrival where that is missing or an hour off.
	//
	// A mark whose lease was taken from a replica without a heartbeat counts as an attempt: the process died of the
	// message, as far as anybody knows. A mark whose lease was given up, or freed by an erasure, counts nothing. A message
	// with a counted attempt is a suspect. Where the oldest is one, View.Suspect is its count, nothing is marked, and the
	// rest of the view is empty but for the session. A suspect behind other messages waits, with all that come after it.
	Begin(ctx context.Context, l Lease, limit int) (View, error)

	// BeginAlone is Begin on the oldest message alone, suspect or not.
	BeginAlone(ctx context.Context, l Lease, limit int) (View, error)

	// Abandon ends a turn that began under a lease and did not commit: an attempt is counted on the messages blamed, and
	// no message is marked any more. Where the lease was lost and the turn counted as that of a dead process, that attempt
	// is taken back. To abandon a turn twice changes nothing.
	Abandon(ctx context.Context, l Lease, blamed []int64) error

	// Commit ends a turn: messages that Begin marked and the turn did not take wait unmarked, the taken messages and what it made get their places in the view, in the order given; the
	// session's counters and the outbox row are written with them. All or nothing.
	Commit(ctx context.Context, l Lease, t Turn) (Committed, error)

	// Quoted finds the message of a session that a quote is of: a person's by the quote's ID, and the bot's own, where the
	// quote is of one, by the time when its reply was sent: between commit and settling. The event has Role, Content, SenderID, SenderNick and Message alone.
	// ErrNotFound where the log has no such message, or more than one of the bot's may be meant.
	Quoted(ctx context.Context, key Key, q Quote) (Event, error)

	// Requote replaces what a pending message of the lease's session quotes, and its content, which begins with that.
	Requote(ctx context.Context, l Lease, event int64, content string, q Quote) error

	// RecordRun stores a tool call before it runs, and again with its result.
	RecordRun(ctx context.Context, l Lease, r ToolRun) error
}

// Ledger counts what model calls take.
type Ledger interface {
	// Charge adds a spending that no other write of the session carries to the session's usage and to that of the day.
	// A session that does not exist is charged with nothing.
	Charge(ctx context.Context, key Key, one Spending) error

	// Spent lists the spendings of a session today, one of each kind, in the order of their names. The day is of UTC.
	Spent(ctx context.Context, key Key) ([]Spending, error)
}

// MaxTurnBytes is how many bytes the messages of a turn have together, unless the first one alone has more.
const MaxTurnBytes = 256 << 10

// Compactor changes what a session's view shows, and keeps the account of it.
type Compactor interface {
	Jobs

	// Compact changes what the view shows: see [Compaction]. It fails with ErrConflict, and writes nothing, when the
	// session's generation is not c.Gen, its cursor does not stand at c.From, or the events that the summaries tell are
	// not those of c.Source any more. It also ends the session's job, and deletes blobs that no event of the view needs.
	Compact(ctx context.Context, l Lease, c Compaction) (Compacted, error)

	// Undo takes back the newest compaction of the session's generation that committed and was not undone: cursor and
	// summaries stand as before it, and its events are shown as before it; bodies that the view refers to again are kept
	// again, and pinned memory is what it was. What was said since stays. The session rests for rest tokens more than its
	// context then has. It returns the row of the compaction log that says so: ErrNotFound where there is nothing to undo.
	// event is the id of the message that asked for it, 0 for none: where an undo that it asked for is in the log already,
	// nothing changes, and that row comes back.
	Undo(ctx context.Context, l Lease, event int64, rest int) (LogEntry, error)

	// Rewrite puts a text in place of an active summary that an erasure emptied, and adds a row to the compaction log.
	// ErrConflict, and nothing is written, where the summary of that id is not one.
	Rewrite(ctx context.Context, l Lease, w Rewritten) error

	// Renew begins a new generation: the view is empty, the log stays. Pinned memory, what waits and what is not flushed
	// yet stay too.
	Renew(ctx context.Context, l Lease) error

	// Configure replaces the session's own settings: a JSON object, or empty for none. The caller has checked them.
	Configure(ctx context.Context, l Lease, settings string) error

	// Compactions lists the compaction log, newest first, at most limit rows; an empty key stands for all sessions.
	Compactions(ctx context.Context, key Key, limit int) ([]LogEntry, error)

	// Blob reads a tool result that was moved out of a view of the session; where its body is gone, from the log.
	// ErrNotFound where that has it no more either, or it was never the session's.
	Blob(ctx context.Context, key Key, blob string) (string, error)

	// Backlogs lists sessions, behind a key in the order of keys, whose context takes at least so many tokens, which rest
	// neither by size nor by the clock, and whose lease is free, stale or owner's: there a compaction may be due although
	// nothing is said. A listed session has its Key, ConversationID, TotalTokens, RearmTokens and SpentToday alone.
	Backlogs(ctx context.Context, owner ReplicaID, tokens int, after Key, limit int) ([]Session, error)

	// Log stores a row of the compaction log that belongs to no committed compaction, and its Failures, RetryAt and
	// Rearm in the session.
	Log(ctx context.Context, l Lease, e LogEntry) error
}

// Jobs keep a compaction that is under way, so that a crash does not lose what was paid for.
type Jobs interface {
	// OpenJob records that a compaction of (j.From, j.Through] is under way, in place of any other job of the session,
	// and returns what there is to tell. Where the same job was staged before, over the same events, it is found again:
	// Source.Staged is its text, and no model need be asked.
	OpenJob(ctx context.Context, l Lease, j Job) (Source, error)

	// StageJob keeps what came of the session's job, so that a crash before Compact does not pay for it twice.
	StageJob(ctx context.Context, l Lease, j Job, staged []byte) error

	// Job returns the session's job: ErrNotFound where there is none.
	Job(ctx context.Context, key Key) (Job, error)
}

// Inbox is where messages become durable.
type Inbox interface {
	// Accept stores a message as a pending event of the session key, making the session if need be, and takes the
	// session's lease for owner where it is free. A message that is there already changes nothing.
	// When Accept returns nil the message survives any crash. A new message with both ids of its sender is remembered for
	// [Inbox.StaffOf].
	Accept(ctx context.Context, owner ReplicaID, key Key, m Message) (Accepted, error)

	// StaffOf returns the staff id that accepted messages to a robot had beside an encrypted id. It is empty where there
	// was none, and where there were several: an id that may be another's gives no rights.
	StaffOf(ctx context.Context, robot RobotCode, encrypted UserID) (UserID, error)

	// Waiting lists sessions that have pending messages or unsent replies and whose lease is free, stale or owner's. It
	// is the sweep that makes up for every lost wake-up. Those that nobody alive holds come before owner's own, so that
	// many busy sessions of owner's can't hide one that is left alone; within each kind the longest waiting comes first.
	Waiting(ctx context.Context, owner ReplicaID, limit int) ([]Key, error)

	// Listen calls wake with the key of a session of owner's when another replica accepted a message for it, and with
	// the empty key when leases were given up; it returns when ctx ends or the notifications break off. Calls of wake
	// come one at a time and must not block.
	Listen(ctx context.Context, owner ReplicaID, wake func(Key)) error
}

// MaxCutTurns is how many turns of a session erasures end before one is committed: the next erasure waits for the turn that
// is under way, so that no member starves a conversation, with a model call each time.
const MaxCutTurns = 3

// Eraser takes out of a session what must not be kept. It is an administrator's right and needs no lease: whatever turn,
// flush or compaction is under way fails at its next write, as if its lease were lost, and begins again on what is left.
// After [MaxCutTurns] turns it waits for the end of the next one, or of its own context.
type Eraser interface {
	// Erase wipes what the events at the places seqs say, and whatever was made from it: summaries lose the lines that
	// repeat one of them, and one that can't be healed so reads [ErasedText] until [Compactor.Rewrite]; shown texts, bodies,
	// staged text, replies that may repeat the events, and facts that memory has from them go. The rows of the events stay,
	// with [ErasedText], and so do the cursor and the ways back to former views.
	// ErrNotFound, and nothing is wiped, where there is no such session or one of the places is empty.
	Erase(ctx context.Context, key Key, seqs []int64) (Erased, error)

	// Delete removes a session with all its rows and what memory keeps for it alone; what memory learnt for people and
	// groups stays. A later message makes a new session; one that was deleted and is delivered again within a day is not
	// stored. ErrNotFound where there is no such session.
	Delete(ctx context.Context, key Key) (Deleted, error)
}

// ErasedText is what an erased body reads, and ErasedTokens what it counts: a little more than it takes.
const (
	ErasedText   = "[已删除 erased]"
	ErasedTokens = 8
)

// Erased is how many rows of each kind were wiped, by [Eraser.Erase].
type Erased struct {
	Events    int
	Healed    int // summaries of the view that lost lines
	Summaries int // of the view, emptied until they are written again
	Memories  int // deleted
	Blobs     int // deleted
	Replies   int
}

// Deleted is how many rows of each kind were deleted, by [Eraser.Delete].
type Deleted struct {
	Events      int
	Summaries   int
	Compactions int // of the log
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

// Leaser hands out the right to run a session's turns. A lease stands while its owner's heartbeat is younger than the
// time to live that the store was opened with.
type Leaser interface {
	// Beat says that owner is alive, and returns the storage's clock.
	Beat(ctx context.Context, owner ReplicaID) (time.Time, error)
	// Acquire takes the session's lease, or returns the one that owner holds: ErrLeaseHeld where another living
	// replica has it, ErrNotFound where there is no such session.
	Acquire(ctx context.Context, key Key, owner ReplicaID) (Lease, error)
	// Release gives up one lease, where it is the current one. Where messages wait, other replicas are woken with the
	// session's key.
	Release(ctx context.Context, l Lease) error
	// Rest gives up those of owner's leases of keys whose sessions rest, and returns their keys. Nothing was said for so
	// long, no message waits, no reply is unsent and no compaction is under way; and everything is flushed or owed, or
	// nothing was said for as long as unflushed.
	Rest(ctx context.Context, owner ReplicaID, keys []Key, rest, unflushed time.Duration) ([]Key, error)
	// Resign gives up all leases of owner at once, wakes other replicas where work waits, and removes its heartbeat.
	// It returns the number of leases.
	Resign(ctx context.Context, owner ReplicaID) (int, error)
}

// Turn is what a turn made, for [Store.Commit].
type Turn struct {
	Taken []int64 // ids of the pending messages that it answers, in the order of the view
	// TakenTokens are the counts of the taken messages, in the same order.
	TakenTokens []int
	// TakenTexts are what the taken messages say, in the same order, for searches to find them by from now on. Of those
	// that are not given a store finds out later.
	TakenTexts []string
	Command    bool    // it is a slash command and what that told, which no search finds
	Outcome    Outcome // of the command, kept with the taken messages; empty: they stay as they are
	Events     []Event // assistant and tool events, in order; Role, Content, tool fields, Tokens
	Dead       []int64 // ids of pending messages to set aside: they get no place in the view
	Reply      *Reply  // nil: nothing to send
	// ReplyWaits says that the reply waits behind others: it is not sent before it is claimed. Otherwise the commit is the
	// claim of its first try.
	ReplyWaits bool

	Marked []int64 // of Taken: those that look worth remembering
	Pinned *Pinned // what the view pins of memory from this turn on, if the ViewVersion still holds; nil: as it is

	// TotalTokens is the size of the context as it would be sent next, if the view is still of the ViewVersion that the
	// turn saw; where something changed it meanwhile, Appended is added to what that left, and ObservedTokens is dropped.
	TotalTokens    int
	Appended       int
	ViewVersion    int
	ObservedTokens int // prompt tokens of the last call as the provider counted them; 0: it did not say
	Calibration    float64
	Usage          Usage // of all model calls of the turn
	Cost           float64
	Model          string
}

// Pinned is the memory that a view shows at its head.
type Pinned struct {
	Text string
	// Rows are the memories in Text. A write that pins one which is deleted, or which a running transaction deletes, fails
	// with ErrLeaseLost and writes nothing: its author has read what is forgotten, and begins again.
	Rows []int64
}

// Committed is the outcome of [Store.Commit].
type Committed struct {
	LastSeq int64
	Replies []Outgoing // the row of Turn.Reply, if there was one
}

// Compaction is a change of what a session's view shows, for [Store.Compact].
type Compaction struct {
	Gen     int
	From    int64 // the cursor as planned: CompactedSeq
	Through int64 // where it goes: the last event that summaries tell; From where only bodies are shown shortened
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
	Pinned      *Pinned // what the view shows of memory from now on; nil: as it is
	// Notice, where set, is an outbox row that the compaction writes: what people are to read of it.
	Notice *Reply
	// Log is the row of the compaction log; where there are summaries its range is theirs. An undo gives back what its
	// TokensBefore is more than its TokensAfter.
	Log LogEntry
}

// Range is the events that a compaction with summaries takes out of the view: what an undo puts back. One that only writes
// summaries again names what they tell.
func (c Compaction) Range() (start, end int64) {
	start = c.From + 1
	if c.Through == c.From {
		for _, n := range c.Summaries {
			start = min(start, n.StartSeq)
		}
	}
	return start, c.Through
}

// NewSummary tells the events StartSeq to EndSeq.
type NewSummary struct {
	StartSeq int64  `json:"start_seq"`
	EndSeq   int64  `json:"end_seq"`
	Text     string `json:"text"`
	Tokens   int    `json:"tokens"`
	Level    int    `json:"level"` // 0: made from events
}

// Rewritten is a summary that takes the place of one that was emptied.
type Rewritten struct {
	ID     int64 // of the summary
	Text   string
	Tokens int
	Growth int      // what is added to the session's TotalTokens
	Log    LogEntry // of the attempt
}

// Shown is what a view shows of an event from now on. The log keeps the body.
type Shown struct {
	Seq    int64
	Text   string
	Tokens int
	// Blob, where set, is the address under which the body is kept for whoever reads the reference in Text: see
	// [BlobOf].
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
	Version  string // of the instructions that the text is made by: staged text of others is not used
	Attempts int    // how often it was opened
	Staged   bool
}

// Source is what a compaction tells.
type Source struct {
	// Events are those of the range as they were said, results that had been moved out of the view among them. One
	// that can't be read any more is [Unavailable], and its Blob is set; no other's is.
	Events []Event
	Hash   string
	Staged []byte // of the same job before a crash; nil for none
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
	Undone       time.Time // when it was taken back; zero for never
	CreatedAt    time.Time

	// Failures and RetryAt go to the session with a failed attempt: how many in a row, and when the next may run.
	Failures int
	RetryAt  time.Time
	Rearm    int
}

// Reply is what a turn tells the conversation, for the outbox.
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
	Attempts int    // tries begun, the one at hand included
	Refusals int    // tries that DingTalk surely refused, under a code that names no cause
	Part     int    // parts of a split reply that are known to have arrived
	Joint    string // the key of the message that the last try sent it in, together with others; empty: alone
	Maybe    bool   // a try may have arrived: its process died before it was marked, or DingTalk's answer was lost
	Took     bool   // another process had it before this one
	Created  time.Time
	NextAt   time.Time
	Joined   []Reply // the replies that this message holds, where it holds several
}

// Outbox holds replies between the commit of their turn and DingTalk's word that they arrived. The row decides: a reply is
// sent by its commit or by a claim, and no copy of it is sent later.
type Outbox interface {
	// Unsent lists the unsent replies of a session that the lease covers, oldest first, without their texts.
	Unsent(ctx context.Context, l Lease) ([]Outgoing, error)
	// Claim takes unsent replies for one try and returns them as they are now, oldest first. A reply that was settled or
	// erased meanwhile does not come back. It fails with ErrLeaseLost, and takes none, where the lease is not the current one.
	Claim(ctx context.Context, l Lease, t Try) ([]Outgoing, error)
	// Settle records the outcome of a try. ErrNotFound where there is no such reply, or where the outcome leaves it open and
	// a later try has begun.
	Settle(ctx context.Context, s Settled) error
	// PutDown says that owner sends nothing any more, and has settled every try: its open replies are in nobody's hand.
	PutDown(ctx context.Context, owner ReplicaID) error
}

// Try is one request to DingTalk: a message, or one part of it.
type Try struct {
	IDs   []int64 // of the replies in the message
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
	Failed  bool // given up for good
	Maybe   bool // the try did not come through, and may have arrived all the same
	Refused bool // DingTalk refused this text surely, under a code that names no cause
	Part    int
	Via     string // webhook or openapi
	Error   string
	NextAt  time.Time // of the next try, where neither Sent nor Failed
}
