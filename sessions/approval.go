package sessions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// ApprovalState is the state of a call that needs an approval.
type ApprovalState string

// The states of an approval. Only a waiting one changes.
const (
	ApprovalWaiting  ApprovalState = "waiting"
	ApprovalApproved ApprovalState = "approved"
	ApprovalRejected ApprovalState = "rejected"
	ApprovalExpired  ApprovalState = "expired" // no decision came in time, or the call was erased
)

// Approval is a call of a tool that needs the approval of its asker or of an administrator. It is a row, and holds nothing open: the turn
// that made the call ends, and the turn of the decision makes it.
type Approval struct {
	Key       Key
	ID        int64 // from 1 on in each session, and never used again
	EventID   int64 // first message of the turn that asked
	Tool      string
	Arguments string // JSON text
	AskedBy   UserID // the turn's last asker
	State     ApprovalState
	DecidedBy UserID // empty unless a person decided
	DecidedAt time.Time
	// DecidedEvent is the message with the decision; 0: none.
	DecidedEvent int64
	CreatedAt    time.Time
	ExpiresAt    time.Time
	Wait         time.Duration // until ExpiresAt, from the commit of a new one on
	// Webhook is that of the question, if it outlasts the wait; empty: none.
	Webhook        string
	WebhookExpires time.Time
}

// CallID is the id of the call in the turn that makes it. It is in the record of the run, and so names the run of each approval.
func (a Approval) CallID() string { return fmt.Sprintf("approved-%d", a.ID) }

// AuditDetail names the call in the audit: its number, its tool, and the size and a hash of its arguments, which it leaves out.
func (a Approval) AuditDetail() string {
	return fmt.Sprintf("#%d %s, %d bytes, sha256 %s", a.ID, a.Tool, len(a.Arguments), a.ArgumentsHash())
}

// ArgumentsHash is the beginning of the SHA-256 of the arguments, in hex.
func (a Approval) ArgumentsHash() string {
	sum := sha256.Sum256([]byte(a.Arguments))
	return hex.EncodeToString(sum[:6])
}

// MaxApprovals bounds the waiting calls of a session.
const MaxApprovals = 10

// FoundApproval is an approval as a person sees it.
type FoundApproval struct {
	Approval
	Asked   bool   // the person wrote a message that the turn of the call answered
	Overdue bool   // its time is over
	Asker   string // nick of AskedBy; empty: unknown
	Decider string // nick of DecidedBy; empty: unknown
}

// ApprovalQuery selects approvals of a session: by number, by turn, or all that wait. The ones that Event decided come too.
type ApprovalQuery struct {
	ID     int64
	Turn   int64 // first message of the turn that asked
	Event  int64 // message with the decision
	Person UserID
}

// Decision decides calls that wait. The same message decides them once.
type Decision struct {
	IDs   []int64
	State ApprovalState // approved or rejected
	By    UserID
	Event int64 // message with the decision
}

// Approvals keeps calls of tools that wait for a decision. [Turns].Commit stores them.
type Approvals interface {
	// WaitingApprovals lists the calls of a session that wait, the oldest first, and the session's last number.
	WaitingApprovals(ctx context.Context, key Key) (waiting []Approval, last int64, err error)
	// FindApprovals lists approvals in the order of their numbers.
	FindApprovals(ctx context.Context, key Key, q ApprovalQuery) ([]FoundApproval, error)
	// DecideApprovals decides those that still wait, and returns them.
	DecideApprovals(ctx context.Context, l Lease, d Decision) ([]Approval, error)
	// CountApprovals counts the calls of all sessions that wait, overdue ones too.
	CountApprovals(ctx context.Context) (int, error)
	// DueApprovals lists calls whose time to wait is over, of all sessions, behind the last one of an earlier list. The zero value: from the
	// oldest on.
	DueApprovals(ctx context.Context, after Approval, limit int) ([]Approval, error)
	// ExpireApproval ends the wait of a due call, and stores the message that make makes of the one that asked, as [Inbox].Accept does. It
	// returns [ErrConflict], and writes nothing, if the call does not wait any more.
	ExpireApproval(ctx context.Context, owner ReplicaID, a Approval, make func(asked Message) Message) (Accepted, error)
}
