package manage

import (
	"context"
	"fmt"
	"strconv"

	"github.com/rs/zerolog"

	"ebb/bot/upkeep"
	"ebb/compaction"
	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
)

// Compact compacts the actor's conversation at once; settings replace its own for it. Without a commit the error
// has the reason.
func (m *Manager) Compact(ctx context.Context, a Actor, s sessions.Session, focus, settings string) (upkeep.Compacted, error) {
	if err := a.actsIn(s.Key); err != nil {
		return upkeep.Compacted{}, err
	}
	asked := &upkeep.Request{Focus: focus, Settings: settings, By: a.requester()}
	return m.cfg.Upkeep.Compact(ctx, a.Asking.Lease, asked, 0, func(sessions.View) sessions.Trigger { return upkeep.TriggerManual })
}

// NewContext flushes the memory of the actor's conversation and begins a new context. The log stays. owed: the next
// flush reads the remaining events from it.
func (m *Manager) NewContext(ctx context.Context, a Actor, s sessions.Session) (owed bool, err error) {
	if err := a.actsIn(s.Key); err != nil {
		return false, err
	}
	// A running compaction is not awaited: it finds another generation, and commits nothing.
	owed = m.cfg.Upkeep.Busy(s.Key)
	if !owed {
		soon, stop := context.WithTimeout(ctx, m.cfg.FlushDeadline)
		defer stop()
		if _, err := m.cfg.Upkeep.FlushAll(soon, a.Asking.Lease, upkeep.FlushNew); err != nil {
			zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory flush before a new conversation failed, range is owed")
			owed = true
		}
	}
	return owed, m.record(ctx, a, a.Reader.Private, pages.Action{Action: Renewed, Key: s.Key}, func(ctx context.Context) error {
		return m.cfg.Sessions.Renew(ctx, a.Asking.Lease)
	})
}

// View reads a conversation for an operator. A private chat is recorded in the audit before.
func (m *Manager) View(ctx context.Context, a Actor, s sessions.Session, read func(context.Context) error) error {
	if s.ConversationType == sessions.Group {
		return read(ctx)
	}
	return m.Record(ctx, a, ViewedPrivate, s.Key, "", read)
}

// ViewFact is [Manager.View] for a memory with all values of its fact. The row has the private chat of an earlier value too.
func (m *Manager) ViewFact(ctx context.Context, a Actor, f memory.Memory, values []memory.Memory, read func(context.Context) error) error {
	key, private := memory.PrivateSource(values)
	if !private {
		return read(ctx)
	}
	return m.Record(ctx, a, ViewedPrivate, key, memoryDetail(f.ID), read)
}

// Undo reverts the newest compaction and returns its row in the log, or [sessions.ErrNotFound] for none. The session
// then rests: its next turn would repeat the compaction.
func (m *Manager) Undo(ctx context.Context, a Actor, s sessions.Session) (sessions.LogEntry, error) {
	switch {
	case !a.owns(s.Key):
		return sessions.LogEntry{}, NotAllowed
	case a.Role == Operator:
		return m.UndoCompaction(ctx, a, s, 0)
	}
	unlock, err := m.cfg.Upkeep.Lock(ctx, s.Key)
	if err != nil {
		return sessions.LogEntry{}, err
	}
	defer unlock()
	return recorded(ctx, m, a, a.Reader.Private, pages.Action{Action: Undone, Key: s.Key}, func(ctx context.Context) (sessions.LogEntry, error) {
		return m.cfg.Compactions.Undo(ctx, a.Asking.Lease, a.Asking.Event, m.restAfterUndo(s))
	})
}

// UndoCompaction is an operator's [Manager.Undo] of the compaction with an id, or of the newest one if id is 0. It
// returns [sessions.ErrConflict] if another one is the newest.
func (m *Manager) UndoCompaction(ctx context.Context, a Actor, s sessions.Session, id int64) (sessions.LogEntry, error) {
	if a.Role < Operator {
		return sessions.LogEntry{}, NotAllowed
	}
	return recorded(ctx, m, a, false, pages.Action{Action: Undone, Key: s.Key}, func(ctx context.Context) (sessions.LogEntry, error) {
		return m.cfg.Operators.Compactions.UndoCompaction(ctx, s.Key, id, a.requester(), m.restAfterUndo(s))
	})
}

// Settings are those in force for a session.
func (m *Manager) Settings(s sessions.Session) compaction.Settings { return m.cfg.Settings(s) }

func (m *Manager) restAfterUndo(s sessions.Session) int {
	return m.cfg.Settings(s).Window.RearmAfter(0, false)
}

const lastMessages = 500

// ForgetLast erases the actor's last message in the conversation before they asked, with its answer. It passes over
// messages that skip accepts, and returns [sessions.ErrNotFound] if none is left.
func (m *Manager) ForgetLast(ctx context.Context, a Actor, skip func(sessions.Event) bool) (sessions.Event, memory.Forgotten, error) {
	said, err := m.cfg.Erasures.MessagesBefore(ctx, a.Reader.Key, a.Person, a.Asking.Event, lastMessages)
	if err != nil {
		return sessions.Event{}, memory.Forgotten{}, err
	}
	for _, e := range said {
		if !skip(e) {
			done, err := m.cfg.Erasures.ForgetMessage(ctx, e.ID, a.Asking)
			return e, done, err
		}
	}
	return sessions.Event{}, memory.Forgotten{}, sessions.ErrNotFound
}

// ForgetSession deletes a session's memory. Its log stays.
func (m *Manager) ForgetSession(ctx context.Context, a Actor, key sessions.Key) (memory.Forgotten, error) {
	if err := m.operates(ctx, a, key); err != nil {
		return memory.Forgotten{}, err
	}
	return recorded(ctx, m, a, false, pages.Action{Action: ForgotSession, Key: key}, func(ctx context.Context) (memory.Forgotten, error) {
		return m.cfg.Operators.Erasure.ForgetSession(ctx, key)
	})
}

// EraseEvents wipes events of a session, by their places and ids, and the data derived from them.
func (m *Manager) EraseEvents(ctx context.Context, a Actor, key sessions.Key, seqs, ids []int64) (sessions.Erased, error) {
	if a.Role < Operator {
		return sessions.Erased{}, NotAllowed
	}
	return recorded(ctx, m, a, false, pages.Action{Action: Erased, Key: key, Detail: fmt.Sprintf("%d events", len(seqs)+len(ids))}, func(ctx context.Context) (sessions.Erased, error) {
		return m.cfg.Operators.Erasure.EraseEvents(ctx, key, seqs, ids)
	})
}

// DeleteSession deletes all of a session. A later message creates it again.
func (m *Manager) DeleteSession(ctx context.Context, a Actor, key sessions.Key) (sessions.Deleted, error) {
	if a.Role < Operator {
		return sessions.Deleted{}, NotAllowed
	}
	return recorded(ctx, m, a, false, pages.Action{Action: Deleted, Key: key}, func(ctx context.Context) (sessions.Deleted, error) {
		return m.cfg.Operators.Erasure.Delete(ctx, key)
	})
}

// ImportSession records an import, which do executes.
func (m *Manager) ImportSession(ctx context.Context, a Actor, key sessions.Key, messages int, do func(context.Context) error) error {
	if a.Role < Operator {
		return NotAllowed
	}
	return m.Record(ctx, a, Imported, key, fmt.Sprintf("%d messages", messages), do)
}

// RetryDeadLetter queues a message that was set aside, and returns its session. key is the session for the audit, if
// it is known before.
func (m *Manager) RetryDeadLetter(ctx context.Context, a Actor, key sessions.Key, id int64) (sessions.Key, error) {
	if a.Role < Operator {
		return "", NotAllowed
	}
	return recorded(ctx, m, a, false, pages.Action{Action: Retried, Key: key, Detail: "message " + strconv.FormatInt(id, 10)}, func(ctx context.Context) (sessions.Key, error) {
		return m.cfg.Operators.Letters.RetryDeadLetter(ctx, id)
	})
}

func (m *Manager) operates(ctx context.Context, a Actor, key sessions.Key) error {
	if a.Role < Operator {
		return NotAllowed
	}
	_, err := m.cfg.Operators.Sessions.Session(ctx, key)
	return err
}
