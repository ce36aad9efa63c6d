package answer

import (
	"context"

	"ebb/bot/approval"
	"ebb/bot/parts"
	"ebb/bot/sendfile"
	"ebb/bot/view"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Upkeep is the work on a session apart from its turns.
type Upkeep interface {
	// Busy reports whether a flush or a compaction runs.
	Busy(key sessions.Key) bool
	// Inline compacts before the model is asked; waiting is the size of the question in tokens. needed returns the
	// trigger, or "".
	Inline(ctx context.Context, l sessions.Lease, waiting int, needed func(sessions.View) sessions.Trigger) error
	// Charge counts the spending of failed work.
	Charge(ctx context.Context, key sessions.Key, s sessions.Spending)
}

// Store reads the view again after a compaction, and records the calls of tools. See [sessions.Turns].
type Store interface {
	Begin(ctx context.Context, l sessions.Lease, limit int) (sessions.View, error)
	RecordRun(ctx context.Context, l sessions.Lease, r sessions.ToolRun) error
}

// Memory is searched before the model is asked. See [memory.Searcher].
type Memory interface {
	Search(ctx context.Context, r memory.Reader, q memory.Query) ([]memory.Hit, error)
}

// ToolOutcome is the outcome of a tool's run.
type ToolOutcome string

// The outcomes of tools.
const (
	ToolOK      ToolOutcome = "ok"
	ToolFailed  ToolOutcome = "error"
	ToolStopped ToolOutcome = "stopped" // a stop of its turn ended it
)

// Media reads the attachments of messages. See package media.
type Media interface {
	// Fetch downloads and stores those that are not stored. The error is one of the storage, or the end of ctx.
	Fetch(ctx context.Context, l sessions.Lease, events []sessions.Event) error
	// Show fills in Event.Media. It leaves out pages that the model refuses.
	Show(ctx context.Context, key sessions.Key, reads sessions.ModelID, events []sessions.Event) error
	// Passages returns the parts of large documents that a question is about, at most room tokens; empty for none.
	Passages(ctx context.Context, key sessions.Key, reads sessions.ModelID, before, asked []sessions.Event, question string, room int) (string, error)
}

// NoMedia reads no attachments: requests name them, and none can be kept. A terminal has no files.
type NoMedia struct{}

// Fetch implements [Media].
func (NoMedia) Fetch(context.Context, sessions.Lease, []sessions.Event) error { return nil }

// Show implements [Media].
func (NoMedia) Show(context.Context, sessions.Key, sessions.ModelID, []sessions.Event) error {
	return nil
}

// Passages implements [Media].
func (NoMedia) Passages(context.Context, sessions.Key, sessions.ModelID, []sessions.Event, []sessions.Event, string, int) (string, error) {
	return "", nil
}

// List implements knowledge.Media.
func (NoMedia) List(context.Context, sessions.Key, sessions.Event) ([]sessions.Media, error) {
	return nil, nil
}

// Files keeps the files that the reply of a turn sends. See package media of sql.
type Files interface {
	// Keep stores a file of the turn that begins with a message, in place of the one of the same source, and returns its id.
	Keep(ctx context.Context, l sessions.Lease, event int64, f sessions.File) (int64, error)
	// Kept lists the files of turns that have not committed, without their bytes.
	Kept(ctx context.Context, key sessions.Key, events []int64) ([]sessions.File, error)
}

// Refused is the place of what a provider refuses.
type Refused string

// The places of refusals.
const (
	RefusedQuestion Refused = "question"
	RefusedHistory  Refused = "history"
	RefusedAll      Refused = "model" // the provider refuses a greeting too
)

// Stats counts the calls of tools, and the permanent refusals by what the provider refused.
type Stats interface {
	ToolCalled(tool string, outcome ToolOutcome)
	RequestRefused(what Refused)
}

// Config has the dependencies and settings of an [Asker]. All are required.
type Config struct {
	Shared *parts.Shared
	Views  *view.Builder
	Store  Store
	Memory Memory
	Model  llm.Model
	Upkeep Upkeep
	May    func(e sessions.Event, command string) bool // whether a message's sender has the right to a command, by its English name
	Stats  Stats
	// Approvals keeps calls that need an approval.
	Approvals *approval.Desk
	Media     Media
	Files     sendfile.Desk

	MaxToolRounds int
}
