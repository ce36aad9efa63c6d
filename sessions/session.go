package sessions

import "time"

// Session is the state of one session, one row of dingtalk_sessions.
type Session struct {
	Key               Key
	RobotCode         RobotCode
	ConversationID    ConversationID
	ConversationType  ConversationType
	Title             string
	TotalTokens       int // of the context as it would be sent now
	CompactionCount   int
	FlushCount        int
	LastActiveAt      time.Time
	CreatedAt         time.Time
	LastSeq           int64     // of the newest event that has a place in the view; 0 for none
	Gen               int       // grows when a conversation is begun anew: what belongs to an older one never commits
	BaseSeq           int64     // events up to here belong to older generations: they are in no view
	ViewVersion       int       // grows with every compaction, undo, erasure and new generation; commits of turns leave it
	Lease             Lease     // as stored: Owner is empty when nobody holds it
	CompactedSeq      int64     // events up to here are told by summaries
	FlushedSeq        int64     // events up to here were flushed into memory
	FlushEpoch        int       // CompactionCount at the last flush; -1 before the first
	FlushFailures     int       // in a row, in this cycle
	CompactFailures   int       // in a row
	CompactedAt       time.Time // the last compaction that committed; zero before the first
	CompactError      string    // why the last attempt changed nothing, or undone; empty after one that did
	CompactRetryAt    time.Time
	RearmTokens       int     // soft compaction rests until the context is this large; 0 for armed
	ObservedTokens    int     // prompt tokens of the last chat call as the provider counted them; 0 for never
	ObservedSeq       int64   // newest event that ObservedTokens covers
	CalibrationFactor float64 // provider's count over our estimate, smoothed; 1 at birth
	Pinned            string  // memory shown at the head of the view, read anew by a compaction
	PinnedDue         bool    // the next turn reads it anew, too: the session begins, or a memory was taken out of it
	Candidates        int     // messages after FlushedSeq that look worth remembering
	Usage             Usage   // of all model calls of the session
	Settings          string  // the conversation's own, over the file's: a JSON object of keys of agent.compaction; empty for none
	SpentToday        int     // tokens that flushes and compactions took since midnight UTC, input and output together
}

// CompactUndone is the CompactError of a session whose last compaction was taken back.
const CompactUndone = "undone"

// Lease is the right to run turns of one session and to write what they give. Term grows with every change of
// owner; every write names it and fails with [ErrLeaseLost] when it is not the stored one.
type Lease struct {
	Key   Key
	Owner ReplicaID
	Term  int64
}

// Summary tells a range of the log in few words. Ranges are inclusive; those of active summaries lie end to end.
type Summary struct {
	ID         int64
	Key        Key
	StartSeq   int64
	EndSeq     int64
	StartMsgID int64 // event ids of the range's ends
	EndMsgID   int64
	MsgCount   int
	Text       string
	Tokens     int
	Level      int // 0: made from events
	Status     SummaryStatus
	CreatedAt  time.Time
}

// Emptied reports whether an erasure left nothing of the summary: its range is to be summarized again.
func (s Summary) Emptied() bool { return s.Text == ErasedText }

// SummaryStatus says whether a summary is in the view.
type SummaryStatus string

// The states of a summary.
const (
	Active     SummaryStatus = "active"
	Superseded SummaryStatus = "superseded" // a newer summary tells its range: kept for undo
	Undone     SummaryStatus = "undone"     // its compaction was taken back
	Closed     SummaryStatus = "closed"     // it belongs to an older generation
)

// View is what a session's context is assembled from: the active summaries, oldest first, the events after them in
// the order of the view, and the messages that wait for an answer in the order in which they were sent.
type View struct {
	Session   Session
	Summaries []Summary
	Tail      []Event
	Pending   []Event
	Runs      []ToolRun // calls recorded by an earlier attempt at the pending messages
	// Gap says what the view leaves out between summaries and tail; empty for nothing. Whoever cuts a view writes it.
	Gap string
	// Suspect is how many attempts are counted on the oldest pending message: see [Store.Begin].
	Suspect int
	More    bool // other messages wait beside Pending
}
