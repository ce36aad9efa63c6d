package manage

import (
	"context"
	"errors"
	"strconv"
	"time"

	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
)

// Fact returns a memory that the actor may see, or [sessions.ErrNotFound]. Operators see each one.
func (m *Manager) Fact(ctx context.Context, a Actor, id int64) (memory.Known, error) {
	if a.Role == Operator {
		f, _, err := m.cfg.Operators.Facts.MemoryByID(ctx, id)
		return memory.Known{Memory: f}, err
	}
	return m.cfg.Rights.KnownByID(ctx, a.asker(), id)
}

// ForgettableFact returns a memory that the actor may delete, and whether it is their own. Otherwise the error is that of
// [Manager.ForgetFact].
func (m *Manager) ForgettableFact(ctx context.Context, a Actor, id int64) (f memory.Known, own bool, err error) {
	if f, err = m.Fact(ctx, a, id); err != nil {
		return f, false, err
	}
	_, own, err = a.erases(f)
	return f, own, err
}

// A private chat belongs to its person, but team facts belong to no single member.
func (a Actor) erases(f memory.Known) (from memory.Asking, own bool, err error) {
	from, own = a.Asking, f.Own || a.Reader.Private && f.Scope == memory.ScopeSession
	switch {
	case a.Role >= Admin:
	case own:
		from.Only = a.Person
	case a.Role == GroupAdmin && f.Scope != memory.ScopeTeam && a.administers(f.SourceSession):
		from.GroupOnly = true
	default:
		return from, false, NotTheirs
	}
	return from, own, nil
}

// ForgetFact deletes a memory. A member may delete memories about them, those that they said, and in their private chat
// those of the chat; messages by other people stay then. An error may come with counts; a repetition does the rest.
func (m *Manager) ForgetFact(ctx context.Context, a Actor, id int64) (memory.Known, memory.Forgotten, error) {
	f, err := m.Fact(ctx, a, id)
	if err != nil {
		return f, memory.Forgotten{}, err
	}
	from, own, err := a.erases(f)
	if err != nil {
		return f, memory.Forgotten{}, err
	}
	what := pages.Action{Action: Forgot, Key: f.SourceSession, Detail: memoryDetail(id)}
	if !own {
		what.Person = f.SaidBy
	}
	done, err := recorded(ctx, m, a, own, what, func(ctx context.Context) (memory.Forgotten, error) {
		done, err := m.cfg.Erasures.ForgetMemory(ctx, id, from)
		if errors.Is(err, memory.ErrOthersKnow) && a.Role == GroupAdmin {
			err = NotTheirs
		}
		return done, err
	})
	return f, done, err
}

// Promote makes a group's memory one of the team; by decided it. It returns a [Refusal] for a memory that can't be
// shared, and [sessions.ErrNotFound] if it was superseded meanwhile.
func (m *Manager) Promote(ctx context.Context, a Actor, id int64) (memory.Memory, error) {
	if a.Role < Admin {
		return memory.Memory{}, NotAllowed
	}
	f, err := m.Fact(ctx, a, id)
	if err != nil {
		return f.Memory, err
	}
	if why := unshareable(f.Memory, time.Now()); why != "" {
		return f.Memory, why
	}
	return recorded(ctx, m, a, false, pages.Action{Action: Promoted, Key: f.SourceSession, Detail: memoryDetail(id)}, func(ctx context.Context) (memory.Memory, error) {
		return m.cfg.Rights.Promote(ctx, id, sessions.UserID(a.requester()))
	})
}

func memoryDetail(id int64) string { return "memory " + strconv.FormatInt(id, 10) }

func unshareable(f memory.Memory, now time.Time) Refusal {
	switch {
	case f.SupersededBy != 0:
		return Superseded
	case f.Scope == memory.ScopeTeam:
		return TeamAlready
	case !f.ExpiresAt.IsZero() && !f.ExpiresAt.After(now):
		return Expired
	case f.Kind == memory.KindTask:
		return OfATask
	case f.Kind == memory.KindDigest:
		return OfADay
	case f.Scope == memory.ScopeUser:
		return OfAPerson
	case f.Scope == memory.ScopeGroup:
		return ""
	}
	return OfASession
}
