package sessions

import (
	"context"
	"errors"
	"time"
)

// Errors of the [Stores] that callers act upon. Any other error is a fault of the storage.
var (
	// ErrLeaseLost says that the lease named in a write is not the current one; nothing was written.
	ErrLeaseLost = errors.New("session lease lost")
	// ErrLeaseHeld says that a living replica holds the session.
	ErrLeaseHeld = errors.New("session lease held by another replica")
	// ErrConflict says that a compare-and-swap failed; nothing was written.
	ErrConflict = errors.New("session changed meanwhile")
	// ErrNotFound says that the session, summary or row is missing.
	ErrNotFound = errors.New("not found")
	// ErrRefused says that the data break a rule of the storage: nothing was written, and a retry can't help.
	ErrRefused = errors.New("the storage refused the data")
)

// IsFinal reports whether a write that failed surely changed nothing, and fails again.
func IsFinal(err error) bool {
	return errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrConflict) || errors.Is(err, ErrRefused)
}

// Stores are the stores of one storage, by aggregate; all are required. A package that uses some of them declares the methods that it
// calls, beside its use.
//
// The row of a session may be deleted by an outsider at any moment, while its log stays: that begins its next generation. All methods
// are safe for concurrent use. Each is one transaction, unless it says otherwise, and uses the storage's clock.
type Stores struct {
	Inbox       Inbox
	Turns       Turns
	Sessions    States
	Outbox      Outbox
	Cards       Cards
	Leases      Leases
	Compactions Compactor
	Jobs        Jobs
	Ledger      Ledger
	Limits      Limiter
	Scopes      Scopes
	Withheld    Withholder
}

// Turns takes waiting messages and stores the result of a turn.
type Turns interface {
	// Begin opens a turn. It marks up to limit of the oldest pending messages, of [MaxTurnBytes] together except for
	// the oldest one. It returns the view with them. The lease's term is the id of the attempt: a second call after a
	// lost answer counts nothing and marks the same messages. With limit 0 it marks and returns no messages.
	//
	// The oldest are those already marked, then the first by [Message].SentAt, or by arrival if that is missing or an
	// hour off.
	//
	// A mark whose lease was taken from a replica without a heartbeat counts as an attempt: presumably the process
	// died of the message. A mark whose lease was given up, or freed by an erasure, does not. One death says little. A
	// message whose only count is another cause is taken by itself. A message with [SuspectFrom] counts is a suspect. If
	// the oldest is one, View.Suspect is its count, nothing is marked, and the rest of the view but the session and the
	// width is empty. A suspect behind other messages waits, with all later ones.
	//
	// Each further death halves the width that the mark has. Only at a width of 1 it counts.
	Begin(ctx context.Context, l Lease, limit int) (View, error)

	// BeginAlone is Begin on one pending message, suspect or not. The view has no message if a.Event is not pending.
	BeginAlone(ctx context.Context, l Lease, limit int, a Alone) (View, error)

	// Suspects counts the sessions with suspects that are not set aside, also before a turn counted their second death.
	Suspects(ctx context.Context) (int, error)

	// Abandon ends a turn that did not commit: it counts an attempt on the blamed messages and removes all marks. An
	// attempt counted for a dead process after a lost lease is taken back. Abandon is idempotent.
	Abandon(ctx context.Context, l Lease, blamed []int64) error

	// Commit ends a turn in one transaction. A session whose row was deleted during the turn is created again as by
	// [Inbox.Revive], if the turn's messages are still marked with its term. Taken messages and the turn's events get their places in the view, in the
	// given order.
	Commit(ctx context.Context, l Lease, t TurnResult) (Committed, error)

	// Quoted finds a quoted message: a person's by the quote's ID, the bot's by the send time, between commit and
	// settling. The event has only ID, Role, Content, SenderID, SenderNick, Message and Withheld. ErrNotFound without a match, or
	// with several of the bot's.
	Quoted(ctx context.Context, key Key, q Quote) (Event, error)

	// Requote replaces the quote and the content, which begins with the quote, of a pending message.
	Requote(ctx context.Context, l Lease, event int64, content string, q Quote) error

	// RecordRun stores a tool call before it runs, and again with its result. A deleted row is created again as by Commit.
	RecordRun(ctx context.Context, l Lease, r ToolRun) error
}

// MaxTurnBytes bounds a turn's messages, unless the first alone has more.
const MaxTurnBytes = 256 << 10

// Compactor changes the view of a session, and keeps the compaction log.
type Compactor interface {
	// Compact changes the view, see [Compaction], and ends the session's job. It deletes blobs that no event of the
	// view needs. It fails with ErrConflict, and writes nothing, if the session's generation is not c.Gen, its cursor
	// is not at c.From, or the source events differ from c.Source.
	Compact(ctx context.Context, l Lease, c Compaction) (Compacted, error)

	// Undo reverts the newest committed compaction of the generation: cursor, summaries, shown events, referenced
	// bodies and pinned memory. Later events stay. The session rests for rest tokens more than its context then has.
	// It returns the undo's row of the compaction log, or ErrNotFound if nothing can be undone. event is the id of the
	// requesting message, 0 for none. If the log has the undo of that event already, nothing changes, and that row is
	// returned. The event's sender is the one who asked.
	Undo(ctx context.Context, l Lease, event int64, rest int) (LogEntry, error)

	// Rewrite fills an active summary that an erasure emptied or that a model refuses, and logs it. It fails with
	// ErrConflict, and writes nothing, on any other summary.
	Rewrite(ctx context.Context, l Lease, w Rewritten) error

	// Compactions lists the compaction log, newest first, at most limit rows; an empty key stands for all sessions.
	Compactions(ctx context.Context, key Key, limit int) ([]LogEntry, error)

	// Blob reads an offloaded tool result, from the log if its body is gone. ErrNotFound if the log has it no more, or
	// if it was never the session's.
	Blob(ctx context.Context, key Key, blob string) (string, error)

	// Backlogs lists sessions, behind a key in key order, that may be due for upkeep without new messages. Their context has at least
	// the given tokens, and no pause is in force; or rows are under suspicion. The lease is free, stale or owner's. Only Key,
	// ConversationID, TotalTokens, RearmTokens, SpentToday and Suspicion are set.
	Backlogs(ctx context.Context, owner ReplicaID, tokens int, after Key, limit int) ([]Session, error)

	// Log stores a row that belongs to no committed compaction, and its Failures, RetryAt and Rearm in the session.
	Log(ctx context.Context, l Lease, e LogEntry) error
}

// Jobs keep a running compaction, so that a crash does not lose its cost.
type Jobs interface {
	// OpenJob records a running compaction of (j.From, j.Through] in place of any other job, and returns its source.
	// Source.Staged is the text of the same job over the same events, if one was staged before.
	OpenJob(ctx context.Context, l Lease, j Job) (Source, error)

	// StageJob stores the result of the session's job, so that a crash before Compact does not pay for it twice. It
	// charges the cost, and Compact charges nothing: an erasure of the result can't take the cost back.
	StageJob(ctx context.Context, l Lease, j Job, staged []byte, paid Spending) error

	// MarkUpkeep records that a flush, compaction, rewriting or digest runs under the lease, for limit at most.
	// Erasures count it, see [MaxCuts]. A limit of 0 records its end.
	MarkUpkeep(ctx context.Context, l Lease, limit time.Duration) error

	// Job returns the session's job, or ErrNotFound.
	Job(ctx context.Context, key Key) (Job, error)
}

// Inbox makes messages durable.
type Inbox interface {
	// Accept stores a message as a pending event, creates the session if needed, and takes a free lease for owner. Session and
	// lease may be a second transaction: after a crash between the two, [Inbox.Revive] and [Inbox.Waiting] find the message. A
	// stored message is not changed. After nil the message survives any crash. A new message with both ids of its
	// sender is remembered for [Inbox.LinkedIDs]. The lease has no owner if an outsider deleted the session's row under a turn,
	// which [Inbox.Revive] returns to it.
	Accept(ctx context.Context, owner ReplicaID, key Key, m Message) (Accepted, error)

	// AcceptHere is Accept for key with all members in one session, in the same step as a look at the sessions that may have the
	// message; none: it is Accept. It stores nothing, and reports Elsewhere, when [Scopes.PlaceOf] may name another session.
	AcceptHere(ctx context.Context, owner ReplicaID, key Key, m Message, among []Key) (Accepted, error)

	// LinkedIDs lists, in order, the staff ids that messages to a robot had next to an encrypted id, or the encrypted ids next to a
	// staff id. Several staff ids are ambiguous: the encrypted id then gives no rights.
	LinkedIDs(ctx context.Context, robot RobotCode, id UserID) ([]UserID, error)

	// LearnIDs remembers both ids of the sender of a message that is not stored, if it has both.
	LearnIDs(ctx context.Context, m Message) error

	// Pending lists at most limit pending messages of a session, in a turn or not, the newest first. Each has only the
	// first [MaxPeek] characters of its content, and no text.
	Pending(ctx context.Context, key Key, limit int) ([]Event, error)

	// Revive creates missing sessions of pending messages, unsent replies and owed flushes: an outsider may delete a row,
	// and a message may arrive during a deletion. The numbers go on behind the end of the log; the view is empty, in the
	// next generation. If a turn has a message, the session is created under the turn's lease, if under has it. A lease
	// without an owner in under says that the turn's process is dead. Otherwise the session is returned.
	Revive(ctx context.Context, under []Lease) (turns []Key, err error)

	// Waiting lists sessions with pending messages or unsent replies whose lease is free, stale or owner's. Sessions
	// without a living owner come before owner's own, which could hide them. Within each kind the longest waiting comes
	// first.
	Waiting(ctx context.Context, owner ReplicaID, limit int) ([]Key, error)

	// Listen calls wake with the key of an owner's session when another replica accepted a message for it. It calls
	// wake with the empty key when leases were released. It returns when ctx or the notifications end. Calls of wake
	// are sequential and must not block.
	Listen(ctx context.Context, owner ReplicaID, wake func(Key)) error
}

// MaxPeek bounds the characters of a message in [Inbox.Pending]. A command behind a quote is shorter.
const MaxPeek = 1000

// MaxCuts bounds the turns of a session that erasures interrupt before one commits. The next erasure waits for the
// running turn, so that no member starves a conversation. Flushes and compactions are counted likewise, apart from
// turns, until one of them stores something.
const MaxCuts = 3

// Eraser removes content from a session, by an administrator's right and without a lease. It ends the term of the lease,
// whose owner stays. Running turns, flushes and compactions fail at their next write with ErrLeaseLost, and begin again. After [MaxCuts] of them it waits for
// the end of the next one, or of its own context. It also waits while a replica may be sending a reply, for [SendTime]
// at most for each part. At its end it waits for calls of ended terms that show something. So no erased word arrives later.
type Eraser interface {
	// Erase wipes the events at the places seqs and everything made from them. Summaries lose the lines that repeat
	// one of them; one that can't be healed becomes [ErasedText] until [Compactor.Rewrite]. Shown texts, bodies,
	// staged text, possibly repeating replies and facts are deleted. The rows of the events stay with [ErasedText], and so
	// do the cursor and the ways back to former views. It fails with ErrNotFound, and wipes nothing, without such a session or with an empty
	// place.
	Erase(ctx context.Context, key Key, seqs []int64) (Erased, error)

	// Delete removes a session with all its rows and its own memory; memory of people and groups stays. A later
	// message makes a new session; a deleted message redelivered within a day is not stored. ErrNotFound without such
	// a session.
	Delete(ctx context.Context, key Key) (Deleted, error)
}

// Erased counts the rows wiped by [Eraser.Erase].
type Erased struct {
	Events    int
	Healed    int // summaries of the view that lost lines
	Summaries int // summaries of the view, emptied until they are written again
	Memories  int // deleted
	Blobs     int // deleted
	Replies   int
}

// Deleted counts the rows deleted by [Eraser.Delete].
type Deleted struct {
	Events      int
	Summaries   int
	Compactions int
	Memories    int
	Blobs       int
	Replies     int
}

// TurnResult is the result of a turn, for [Turns.Commit].
type TurnResult struct {
	Taken []int64 // ids of the answered pending messages, in the order of the view
	// TakenTokens are the counts of the taken messages, in their order.
	TakenTokens   []int
	TakenWithheld []Withheld // models that refuse them, in their order; missing ones: none
	Suspicion     *Suspicion // the session's from now on; nil: unchanged
	Command       bool       // a slash command or a reminder with its answer, which no search finds
	Outcome       Outcome    // kept with the taken messages; empty: they stay as they are
	Events        []Event    // assistant and tool events, in order; Role, Content, tool fields, Tokens, Withheld
	Stops         []Event    // pending commands that ended the turn, by ID and Tokens; they are behind Events, with the outcome StopDone
	CardTo        int64      // a message that waits on and gets the open reply cards of the taken ones; 0: none
	Dead          []int64    // ids of pending messages to set aside, without a place in the view
	Reply         *Reply     // nil: nothing to send
	Files         []Reply    // files behind Reply, each in its target; one whose bytes are deleted meanwhile is left out
	Waits         []Approval // calls of tools that wait for a decision, see [Approvals]
	// ReplyWaits says that the reply is not sent before it is claimed. Otherwise the commit is the claim of its first
	// try.
	ReplyWaits bool

	Askers []UserID // senders of the taken messages, who share the usage; none: it is no person's
	Left   []int64  // ids of messages of the view that wait on: they lose their marks
	Ran    bool     // tool calls are recorded: those that no message needs are deleted

	Marked []int64 // places in Taken of messages that look worth remembering
	Pinned *Pinned // pinned memory from this turn on, if the ViewVersion still holds; nil: unchanged
	// Read are the other memories that the turn read. A deleted one ends the turn as in [Pinned].
	Read []int64

	// TotalTokens is the size of the next request, if the view still is of the ViewVersion that the turn saw.
	// Otherwise Appended is added to the current size, and ObservedTokens is dropped.
	TotalTokens    int
	Appended       int
	ViewVersion    int
	ObservedTokens int // the provider's count of the last prompt; 0: not reported
	Calibration    float64
	Spent          Spending // on all model calls of the turn; its model answered, or used the tokens
}

// Pinned is the memory that a view shows at its head.
type Pinned struct {
	Text string
	// Rows are the memories in Text. Pinning a deleted one, or one being deleted, fails with ErrLeaseLost and writes
	// nothing: its author has read forgotten content, and begins again.
	Rows []int64
}

// Committed is the outcome of [Turns.Commit].
type Committed struct {
	LastSeq int64
	Replies []Outgoing // the rows of TurnResult.Reply and TurnResult.Files
}

// Compaction is a change of a session's view, for [Compactor.Compact].
type Compaction struct {
	Gen     int
	From    int64 // the cursor as planned: CompactedSeq
	Through int64 // the last summarized event; From if only bodies are shown shortened
	// Summaries are the new ones, oldest first. Each replaces the active ones within its range. The active summaries
	// must then lie end to end, from the first event of the generation to Through.
	Summaries []NewSummary
	Shown     []Shown
	// Source is the hash of the summarized events, as OpenJob gave it; empty: not compared.
	Source string
	// Freed is taken from the session's TotalTokens, to which a turn may have added since the plan.
	Freed       int
	RearmTokens int
	Pinned      *Pinned // the pinned memory from now on; nil: unchanged
	// Notice is an outbox row for its conversation.
	Notice *Reply
	// Log is the row of the compaction log; with summaries its range is theirs. An undo restores TokensBefore minus
	// TokensAfter.
	Log LogEntry
}

// Range is the range of events that a compaction with summaries removes from the view, and that an undo restores. A
// rewriting's is that of its summaries.
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

// Rewritten replaces an emptied summary.
type Rewritten struct {
	ID     int64
	Text   string
	Tokens int
	Growth int // tokens added to the session's TotalTokens
	Log    LogEntry
}

// Shown is the form of an event in the view from now on. The log keeps the body.
type Shown struct {
	Seq    int64
	Text   string
	Tokens int
	// Blob is the address of the kept body, see [BlobOf], for readers of the reference in Text.
	Blob string
}

// Compacted is the outcome of [Compactor.Compact].
type Compacted struct {
	BlobsDeleted int
	Replies      []Outgoing // the row of Compaction.Notice, if there was one
}

// Job is a compaction under way.
type Job struct {
	Gen      int
	From     int64
	Through  int64
	Version  string // version of the summary instructions; staged text of another version is not used
	Attempts int    // how often it was opened
	Staged   bool
}

// Source is the input of a compaction.
type Source struct {
	// Events are the raw events of the range, with offloaded results. An unreadable one is [Unavailable] and has its
	// Blob set.
	Events []Event
	Hash   string
	Staged []byte // result of the same job before a crash; nil for none
}

// SendTime bounds one try to send a reply, from its claim: 5 s for the request, and one for the claim and the rate of
// calls. An erasure waits as long for a try under way, whose text was read before.
const SendTime = 6 * time.Second

// FrameTime bounds one call that changes a card while its turn runs, from its record. An erasure and the next owner of the session wait as
// long.
const FrameTime = 3 * time.Second

// Outbox holds replies between the commit of their turn and DingTalk's confirmation. A reply is sent by its commit or
// by a claim; no copy is sent later.
type Outbox interface {
	// Unsent lists the unsent replies of a session that the lease covers, oldest first, without their texts.
	Unsent(ctx context.Context, l Lease) ([]Outgoing, error)
	// Announce stores a notice that no turn commits, once for each nonce; its first try needs a claim. It returns
	// nothing if the notice was stored before, or if the lease is not the current one.
	Announce(ctx context.Context, l Lease, r Reply) ([]Outgoing, error)
	// Claim takes unsent replies for one try and returns their current form, oldest first. It omits replies that were
	// settled or erased meanwhile. It fails with ErrLeaseLost, and takes none, if the lease is not the current one.
	Claim(ctx context.Context, l Lease, t SendAttempt) ([]Outgoing, error)
	// Settle records the outcome of a try. ErrNotFound without such a reply, or if the outcome leaves it open and a
	// later try has begun.
	Settle(ctx context.Context, s SendOutcome) error
	// PutDown releases owner's open replies at its stop, after every attempt is settled.
	PutDown(ctx context.Context, owner ReplicaID) error
}

// SendAttempt is one request to DingTalk: a message, or one part of it.
type SendAttempt struct {
	IDs   []int64 // replies in the message
	Joint string  // key of a message that holds several replies; empty for one alone
	Part  int     // parts of a reply alone that are known to have arrived: the row keeps them where its key is Nonce
	Nonce string  // key of a reply alone, as its sender knows it; an erasure that changes the text changes the key
	// Carrier is the platform's key of the part that arrived last, by which people quote it; empty: unknown.
	Carrier string
}

// SendOutcome is the outcome of a try to send one reply.
type SendOutcome struct {
	Key     Key
	ID      int64
	Attempt int // its number: Outgoing.Attempts
	Sent    bool
	Failed  bool // given up permanently
	Maybe   bool // the attempt failed, and may have arrived
	Refused bool // DingTalk definitely refused this text, under a code without a cause
	Part    int
	Via     string    // webhook, openapi or card; after a failure, openapi if it waits for calls
	Card    CardState // new state of the reply's card; empty: unchanged
	Carrier string    // the platform's key of the card or the message, by which people quote it; empty: unknown
	Error   string
	NextAt  time.Time // next try, if neither Sent nor Failed
}

// WithheldCount counts what a model refuses of a session.
type WithheldCount struct {
	Events    int // refused whole, or in part
	Summaries int // summaries of the view
	Facts     int // in force, said in the session
	// Newest is the newest of the events: its place, author and time, without text. Zero for none.
	Newest Event
}

// Withholder keeps rows that a model refuses out of requests to it.
type Withholder interface {
	// Withhold adds marks, and replaces the suspicion that it settles. Erased and missing rows are skipped. The next turn reads pinned
	// memory again if facts are marked.
	Withhold(ctx context.Context, l Lease, w Withholding) error

	// CountWithheld counts the events of the session's generation, summaries and facts that the model refuses. Without a model it counts
	// all with a mark.
	CountWithheld(ctx context.Context, key Key, model ModelID) (WithheldCount, error)
}
