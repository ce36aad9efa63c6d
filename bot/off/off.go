package off

import (
	"context"
	"time"

	"ebb/bot"
	"ebb/bot/chat"
	"ebb/bot/manage"
	"ebb/bot/schedule"
	"ebb/bot/turn/answer"
	"ebb/memory"
	"ebb/sessions"
)

// Parts are those of a bot with everything off. A caller replaces those that it has.
func Parts() bot.Parts {
	return bot.Parts{
		Tidying: Tidying{}, Index: Tidying{}, Rights: Rights{}, Erasures: Erasures{}, Requests: Requests{}, Schedules: Schedules{},
		Planner: &schedule.Planner{
			Store: Schedules{}, Calls: schedule.Uncounted{}, Location: time.UTC, Settings: func() schedule.Settings { return schedule.Settings{} },
		},
		Approvals: Approvals{}, Media: answer.NoMedia{}, Files: Files{}, Kept: Kept{}, Audit: manage.Unrecorded{}, Reporter: Reporter{}, Outside: chat.NoTools{},
		Embeddings: bot.NoEmbeddings{}, Display: chat.NoDisplay{},
	}
}

// Tidying finds no facts to maintain, and nothing to index.
type Tidying struct{}

// DeleteExpired implements [memory.Upkeep].
func (Tidying) DeleteExpired(context.Context) (int, error) { return 0, nil }

// OverfullScopes implements [memory.Upkeep].
func (Tidying) OverfullScopes(context.Context, int, memory.OverfullScope) ([]memory.OverfullScope, error) {
	return nil, nil
}

// FactGroups implements [memory.Upkeep].
func (Tidying) FactGroups(context.Context, memory.OverfullScope) ([]memory.FactGroup, error) {
	return nil, nil
}

// Oldest implements [memory.Upkeep].
func (Tidying) Oldest(context.Context, memory.FactGroup, int) ([]memory.Memory, error) {
	return nil, nil
}

// WithholdFacts implements [memory.Upkeep].
func (Tidying) WithholdFacts(context.Context, sessions.Withholding) error { return ErrOff }

// Consolidate implements [memory.Upkeep].
func (Tidying) Consolidate(context.Context, []memory.Memory, []memory.Draft) (memory.Receipt, error) {
	return memory.Receipt{}, ErrOff
}

// IndexBacklog implements upkeep.Index.
func (Tidying) IndexBacklog(context.Context, int) (int, error) { return 0, nil }

// Rights refuse all questions: /memory, /forget and /export answer that memory is unavailable.
type Rights struct{}

// Known implements [memory.Rights].
func (Rights) Known(context.Context, memory.Asker, int, int) ([]memory.Known, int, error) {
	return nil, 0, ErrOff
}

// KnownByID implements [memory.Rights].
func (Rights) KnownByID(context.Context, memory.Asker, int64) (memory.Known, error) {
	return memory.Known{}, ErrOff
}

// Promote implements [memory.Rights].
func (Rights) Promote(context.Context, int64, sessions.UserID) (memory.Memory, error) {
	return memory.Memory{}, ErrOff
}

// People implements [memory.Rights].
func (Rights) People(context.Context, sessions.RobotCode, sessions.Key, string) ([]memory.Person, error) {
	return nil, ErrOff
}

// FactsOf implements [memory.Export].
func (Rights) FactsOf(context.Context, sessions.RobotCode, sessions.UserID, int64, int) ([]memory.Memory, error) {
	return nil, ErrOff
}

// MessagesOf implements [memory.Export].
func (Rights) MessagesOf(context.Context, sessions.RobotCode, sessions.UserID, int64, int) ([]memory.PersonMessage, error) {
	return nil, ErrOff
}

// RecordsOf implements [memory.Export].
func (Rights) RecordsOf(context.Context, sessions.RobotCode, sessions.UserID) ([]memory.Record, error) {
	return nil, ErrOff
}

// Erasures erase nothing. No message has a preview of an erasure before it.
type Erasures struct{}

// ForgetMemory implements [memory.Erasures].
func (Erasures) ForgetMemory(context.Context, int64, memory.Asking) (memory.Forgotten, error) {
	return memory.Forgotten{}, ErrOff
}

// MessagesBefore implements [memory.Erasures].
func (Erasures) MessagesBefore(context.Context, sessions.Key, sessions.UserID, int64, int) ([]sessions.Event, error) {
	return nil, nil
}

// ForgetMessage implements [memory.Erasures].
func (Erasures) ForgetMessage(context.Context, int64, memory.Asking) (memory.Forgotten, error) {
	return memory.Forgotten{}, ErrOff
}

// ForgetPerson implements [memory.Erasures].
func (Erasures) ForgetPerson(context.Context, memory.Forget) (memory.Forgotten, error) {
	return memory.Forgotten{}, ErrOff
}

// PreviewForget implements [memory.Erasures].
func (Erasures) PreviewForget(context.Context, memory.Forget) (memory.Preview, error) {
	return memory.Preview{}, ErrOff
}
