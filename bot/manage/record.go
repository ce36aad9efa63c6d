package manage

import (
	"context"
	"errors"

	"github.com/rs/zerolog"

	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
)

// The actions in the audit.
const (
	Undone         = "undo"
	Forgot         = "forget"
	ForgotFile     = "forget_file"
	ReplacedFile   = "replace_file"
	ForgotPerson   = "forget_person"
	ForgotSession  = "forget_session"
	Exported       = "export_person"
	Promoted       = "promote"
	Erased         = "erase"
	Deleted        = "delete"
	Retried        = "retry"
	Imported       = "import"
	ViewedPrivate  = "view_private"
	ResumedCalls   = "resume_calls"
	Unscheduled    = "cancel_schedule"
	Configured     = "configure"
	ChoseScope     = "scope"
	Renewed        = "new_context"
	outcomeDone    = "done"
	outcomeFailed  = "failed"
	outcomeMissing = "nothing found"
	outcomeOften   = "too often"
	outcomeExpired = "too late"
)

// Record stores an operator's action in the audit, executes it and stores its outcome. Nothing is done without the row.
// detail has ids and counts, and no text or id of a person.
func (m *Manager) Record(ctx context.Context, a Actor, action string, key sessions.Key, detail string, do func(context.Context) error) error {
	return m.record(ctx, a, false, pages.Action{Action: action, Key: key, Detail: detail}, do)
}

// record is [Manager.Record] for every actor. own says that the action concerns nothing but the person who acts and their private chat:
// then the log of the conversation is enough.
func (m *Manager) record(ctx context.Context, a Actor, own bool, what pages.Action, do func(context.Context) error) error {
	if own && a.Role != Operator {
		return do(ctx)
	}
	what.Actor = a.requester()
	return m.audited(ctx, what, do)
}

func (m *Manager) audited(ctx context.Context, a pages.Action, do func(context.Context) error) error {
	return Audited(ctx, m.cfg.Audit, a, outcome, do)
}

// Unrecorded is an audit without rows, for a caller that records its actions by [Audited] itself, as the console does.
type Unrecorded struct{}

// Begin implements [pages.Audit].
func (Unrecorded) Begin(context.Context, pages.Action) (int64, error) { return 0, nil }

// End implements [pages.Audit].
func (Unrecorded) End(context.Context, pages.Action, string) error { return nil }

// Audited is [Manager.Record] for any actor; outcome words the end by its error.
func Audited(ctx context.Context, to pages.Audit, a pages.Action, outcome func(error) string, do func(context.Context) error) (err error) {
	if a.ID, err = to.Begin(ctx, a); err != nil {
		return err
	}
	done := do(ctx)
	if err := to.End(context.WithoutCancel(ctx), a, outcome(done)); err != nil {
		zerolog.Ctx(ctx).Error().Err(err).Msg("End of an action is not in the audit")
	}
	return done
}

func recorded[T any](ctx context.Context, m *Manager, a Actor, own bool, what pages.Action, do func(context.Context) (T, error)) (T, error) {
	var result T
	err := m.record(ctx, a, own, what, func(ctx context.Context) error {
		var err error
		result, err = do(ctx)
		return err
	})
	return result, err
}

// outcome leaves out the error's text, which may hold words of a conversation.
func outcome(err error) string {
	var refused Refusal
	switch {
	case err == nil:
		return outcomeDone
	case errors.As(err, &refused):
		return string(refused)
	case errors.Is(err, sessions.ErrNotFound):
		return outcomeMissing
	case errors.Is(err, memory.ErrTooOften):
		return outcomeOften
	case errors.Is(err, sessions.ErrUndoExpired):
		return outcomeExpired
	}
	return outcomeFailed
}
