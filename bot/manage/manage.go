package manage

import (
	"context"
	"time"

	"ebb/bot/upkeep"
	"ebb/compaction"
	"ebb/memory"
	"ebb/memory/extract"
	"ebb/memory/pages"
	"ebb/sessions"
)

// Role has the rights of those before it.
type Role int

// The roles.
const (
	Member     Role = iota
	GroupAdmin      // an administrator of the group of the request, and of nothing else
	Admin           // an administrator of the installation
	Operator        // operator of the installation, in no conversation
)

// Actor is the person who asks for an action.
type Actor struct {
	Role   Role
	Name   string          // an operator's name in the audit
	Person sessions.UserID // empty for an operator
	Reader memory.Reader   // conversation of the request; zero for an operator
	Asking memory.Asking   // turn of the request; zero for an operator
}

func (a Actor) owns(key sessions.Key) bool {
	return a.administers(key) || a.Reader.Private && a.Reader.Key == key
}

func (a Actor) administers(key sessions.Key) bool {
	return a.Role >= Admin || a.Role == GroupAdmin && !a.Reader.Private && a.Reader.Key.Group() == key.Group()
}

func (a Actor) actsIn(key sessions.Key) error {
	switch {
	case a.Role == Operator || a.Reader.Key != key:
		return NoTurn
	case !a.owns(key):
		return NotAllowed
	}
	return nil
}

func (a Actor) requester() string {
	if a.Role == Operator {
		return a.Name
	}
	return string(a.Person)
}

func (a Actor) asker() memory.Asker {
	return memory.Asker{Reader: a.Reader, Person: a.Person, Admin: a.Role >= GroupAdmin}
}

// Refusal is why an action was refused, and nothing changed.
type Refusal string

// The refusals.
const (
	NotAllowed Refusal = "the actor lacks the right"
	NotSetter  Refusal = "the actor did not set the schedule"
	Over       Refusal = "the schedule has ended"
	NotTheirs  Refusal = "the memory is neither about the actor nor said by them"

	Superseded  Refusal = "the memory is superseded"
	Expired     Refusal = "the memory is expired"
	TeamAlready Refusal = "the memory is the team's already"
	OfATask     Refusal = "the memory is about work in progress"
	OfADay      Refusal = "the memory is the digest of a group's day"
	OfAPerson   Refusal = "the memory is one person's"
	OfASession  Refusal = "the memory belongs to its session"

	FileOnly   Refusal = "the setting belongs to the configuration file"
	GroupsOnly Refusal = "only groups have a scope"
	NoTurn     Refusal = "the action needs a turn of its conversation"
)

// Error implements error.
func (r Refusal) Error() string { return string(r) }

// InvalidSetting is a setting that the conversation can't have.
type InvalidSetting struct{ Reason error }

// Error implements error.
func (e *InvalidSetting) Error() string { return "invalid setting: " + e.Reason.Error() }

// Unwrap returns the reason.
func (e *InvalidSetting) Unwrap() error { return e.Reason }

// IdleSetting is a setting without effect on the policy. Needs is such as `policy "turns"`.
type IdleSetting struct {
	Key, Needs string
	Policy     compaction.Policy
}

// Error implements error.
func (e *IdleSetting) Error() string { return e.Key + ": does nothing without " + e.Needs }

// Ambiguous is a name of several people.
type Ambiguous struct{ People []memory.Person }

// Error implements error.
func (e *Ambiguous) Error() string { return "several people have the name" }

// States changes the state of a session under the lease of the turn that asks. See [sessions.States].
type States interface {
	Configure(ctx context.Context, l sessions.Lease, settings string) error
	Renew(ctx context.Context, l sessions.Lease) error
}

// Compactions reverts a compaction under the lease of the turn that asks. See [sessions.Compactor].
type Compactions interface {
	Undo(ctx context.Context, l sessions.Lease, event int64, rest int) (sessions.LogEntry, error)
}

// Scopes keeps the scopes of groups. See [sessions.Scopes].
type Scopes interface {
	ChooseScope(ctx context.Context, l sessions.Lease, s sessions.Scope) error
}

// Upkeep is [upkeep.Worker].
type Upkeep interface {
	Lock(ctx context.Context, key sessions.Key) (unlock func(), err error)
	Busy(key sessions.Key) bool
	Compact(ctx context.Context, l sessions.Lease, asked *upkeep.Request, waiting int, needed func(sessions.View) sessions.Trigger) (upkeep.Compacted, error)
	FlushAll(ctx context.Context, l sessions.Lease, trigger memory.FlushTrigger) (extract.Outcome, error)
}

// Operators is the storage of operators' actions, which need no lease. An unknown target is [sessions.ErrNotFound].
type Operators struct {
	Facts interface {
		MemoryByID(ctx context.Context, id int64) (m memory.Memory, values []memory.Memory, err error)
	}
	Sessions interface {
		Session(ctx context.Context, key sessions.Key) (sessions.Session, error)
	}
	Erasure interface {
		ForgetSession(ctx context.Context, key sessions.Key) (memory.Forgotten, error)
		EraseEvents(ctx context.Context, key sessions.Key, seqs, ids []int64) (sessions.Erased, error)
		Delete(ctx context.Context, key sessions.Key) (sessions.Deleted, error)
	}
	Compactions interface {
		UndoCompaction(ctx context.Context, key sessions.Key, id int64, by string, rest int) (sessions.LogEntry, error)
	}
	Requests interface {
		RequestCompaction(ctx context.Context, r sessions.CompactionRequest) error
	}
	Flushes interface {
		RetryDebt(ctx context.Context, key sessions.Key) error
	}
	Letters interface {
		RetryDeadLetter(ctx context.Context, id int64) (sessions.Key, error)
	}
	Calls interface {
		ResumeCalls(ctx context.Context, month string) (sessions.ResumedCalls, error)
	}
}

// Resolve returns the settings in force that a conversation's own settings would make.
type Resolve func(id sessions.ConversationID, settings string) (compaction.Settings, error)

// Files keeps and deletes files.
type Files interface {
	// KeepFile stores a file whose pages the session has. It refuses a further one with [sessions.ErrManyFiles] or [sessions.ErrManyPages], and with
	// [sessions.ErrOthersFile] a version of a file that may does not allow to replace. Then it returns that file.
	KeepFile(ctx context.Context, l sessions.Lease, f sessions.KeptFile, may sessions.FileRights) (sessions.Keeping, error)
	// ForgetFile returns [sessions.ErrNotFound] without such a file.
	ForgetFile(ctx context.Context, key sessions.Key, id int64) error
}

// Config is what a [Manager] needs. Without actors in a chat Sessions, Compactions, Scopes and Upkeep may be nil,
// and without operators the parts of Operators.
type Config struct {
	Rights      memory.Rights
	Erasures    memory.Erasures
	Sessions    States
	Compactions Compactions
	Scopes      Scopes
	Upkeep      Upkeep
	Operators   Operators
	Schedules   sessions.Schedules
	Files       Files       // nil without kept files
	Audit       pages.Audit // keeps actions of operators, and in chats those on others and on a group
	// FlushDeadline bounds the flush before a new context.
	FlushDeadline time.Duration
	// Settings returns the settings in force for a session, and Resolve those that its own settings would make.
	Settings func(sessions.Session) compaction.Settings
	Resolve  Resolve
}

// Manager executes actions.
type Manager struct{ cfg Config }

// New returns a Manager.
func New(cfg Config) *Manager { return &Manager{cfg: cfg} }
