package manage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
)

// audit keeps the rows of actions.
type audit struct {
	rows []string
	down error
}

func (a *audit) Begin(_ context.Context, row pages.Action) (int64, error) {
	one := fmt.Sprintf("%s %s %s %s", row.Actor, row.Action, row.Key, row.Detail)
	if row.Person != "" {
		one += "of " + string(row.Person)
	}
	a.rows = append(a.rows, one)
	return int64(len(a.rows)), a.down
}

func (a *audit) End(_ context.Context, row pages.Action, outcome string) error {
	a.rows[row.ID-1] += ": " + outcome
	return nil
}

// In a chat each action on another person or on a group has a row with its actor and place. Those on oneself and one's private chat have
// none: they are in the log of the conversation.
func TestActionsInAChatAreInTheAudit(t *testing.T) {
	t.Parallel()
	ctx, session := t.Context(), sessions.Session{Key: "s"}
	own := func(m *Manager, a Actor) error { _, err := m.ForgetPerson(ctx, a, a.Person); return err }
	undo := func(m *Manager, a Actor) error { _, err := m.Undo(ctx, a, session); return err }
	policy := func(m *Manager, a Actor) error {
		_, err := m.Configure(ctx, a, session, "policy", "turns")
		return err
	}
	renew := func(m *Manager, a Actor) error { _, err := m.NewContext(ctx, a, session); return err }
	leading := Actor{Role: GroupAdmin, Person: "lead", Reader: admin.Reader, Asking: admin.Asking}
	for name, c := range map[string]struct {
		by   Actor
		act  func(*Manager, Actor) error
		want string
	}{
		"undo":   {leading, undo, "lead undo s : done"},
		"policy": {leading, policy, "lead configure s policy turns: done"},
		"a long value": {leading, func(m *Manager, a Actor) error {
			_, err := m.ChooseModel(ctx, a, session, "words of a person")
			return err
		}, "lead configure s model …: done"},
		"scope":            {leading, func(m *Manager, a Actor) error { return m.ChooseScope(ctx, a, session, "") }, "lead scope s default: done"},
		"new context":      {leading, renew, "lead new_context s : done"},
		"promote":          {admin, func(m *Manager, a Actor) error { _, err := m.Promote(ctx, a, 3); return err }, "root promote s memory 3: done"},
		"forget a memory":  {leading, func(m *Manager, a Actor) error { _, _, err := m.ForgetFact(ctx, a, 3); return err }, "lead forget s memory 3of carol: done"},
		"forget a person":  {leading, func(m *Manager, a Actor) error { _, err := m.ForgetPerson(ctx, a, "bob"); return err }, "lead forget_person s of bob: done"},
		"forget oneself":   {leading, own, ""},
		"a refused action": {member, undo, ""},
		"undo in private":  {chatting, undo, ""},
		"policy, private":  {chatting, policy, ""},
		"new, private":     {chatting, renew, ""},
	} {
		kept := &audit{}
		m := newTestManager(&storage{fact: memory.Known{Memory: memory.Memory{ID: 3, Scope: memory.ScopeGroup, SourceSession: "s", SaidBy: "carol"}}})
		m.cfg.Audit = kept
		_ = c.act(m, c.by)
		if got := strings.Join(kept.rows, "; "); got != c.want {
			t.Errorf("%s: the audit has %q, want %q", name, got, c.want)
		}
		if kept.rows, kept.down = nil, errors.New("the database is away"); c.want == "" {
			continue
		}
		if err := c.act(m, c.by); !errors.Is(err, kept.down) {
			t.Errorf("%s: without its row the end is %v", name, err)
		}
	}
}

// Each change by an operator has a row with its outcome, and none without the row.
func TestOperatorsAreInTheAudit(t *testing.T) {
	t.Parallel()
	ctx, session := t.Context(), sessions.Session{Key: "s"}
	changes := map[string]func(*Manager, Actor) error{
		"undo s : done":               func(m *Manager, a Actor) error { _, err := m.Undo(ctx, a, session); return err },
		"forget s memory 3: done":     func(m *Manager, a Actor) error { _, _, err := m.ForgetFact(ctx, a, 3); return err },
		"promote s memory 3: done":    func(m *Manager, a Actor) error { _, err := m.Promote(ctx, a, 3); return err },
		"forget_person  of bob: done": func(m *Manager, a Actor) error { _, err := m.ForgetPerson(ctx, a, "bob"); return err },
		"export_person  of bob: done; cli:root view_private r/p1 exportof bob: done": func(m *Manager, a Actor) error {
			return m.Export(ctx, a, "bob", nothing)
		},
		"forget_session s : done": func(m *Manager, a Actor) error { _, err := m.ForgetSession(ctx, a, "s"); return err },
		"erase s 3 events: done": func(m *Manager, a Actor) error {
			_, err := m.EraseEvents(ctx, a, "s", []int64{1, 2}, []int64{9})
			return err
		},
		"delete s : done": func(m *Manager, a Actor) error { _, err := m.DeleteSession(ctx, a, "s"); return err },
		"import s 12 messages: done": func(m *Manager, a Actor) error {
			return m.ImportSession(ctx, a, "s", 12, func(context.Context) error { return nil })
		},
		"retry s message 4: done":     func(m *Manager, a Actor) error { _, err := m.RetryDeadLetter(ctx, a, "s", 4); return err },
		"resume_calls  2026-11: done": func(m *Manager, a Actor) error { _, err := m.ResumeCalls(ctx, a, "2026-11"); return err },
	}
	for want, change := range changes {
		kept := &audit{}
		s := &storage{fact: memory.Known{Memory: memory.Memory{ID: 3, Scope: memory.ScopeGroup, SourceSession: "s"}}}
		m := newTestManager(s)
		m.cfg.Audit = kept
		by := Actor{Role: Operator, Name: "cli:root"}
		if err := change(m, by); err != nil || strings.Join(kept.rows, "; ") != "cli:root "+want {
			t.Errorf("audit %q and error %v, want %q", kept.rows, err, want)
		}
		kept.down = errors.New("the database is away")
		s.calls = nil
		if err := change(m, by); !errors.Is(err, kept.down) || len(s.calls) > 0 {
			t.Errorf("%s: without its row: %v, %q", want, err, s.calls)
		}
	}
	if _, err := newTestManager(&storage{}).ResumeCalls(ctx, admin, "2026-11"); !errors.Is(err, NotAllowed) {
		t.Errorf("an administrator in a chat resumes calls: %v", err)
	}
	for err, want := range map[error]string{
		nil: "done", sessions.ErrNotFound: "nothing found", memory.ErrTooOften: "too often", sessions.ErrUndoExpired: "too late", OfAPerson: string(OfAPerson), errors.New("words of a chat"): "failed",
	} {
		if got := outcome(err); got != want {
			t.Errorf("the outcome of %v is %q, want %q", err, got, want)
		}
	}
}

func ignore[T any](T) error { return nil }

// The view of a fact with a private value is in the audit of that private chat, and that of group values is not.
func TestViewsOfFactsAreInTheAuditOfThePrivateChat(t *testing.T) {
	t.Parallel()
	of := func(key sessions.Key, group string) memory.Memory {
		return memory.Memory{ID: 3, SourceSession: key, SourceGroup: group}
	}
	for want, values := range map[string][]memory.Memory{
		"": {of("group", "g"), of("group", "g")},
		"cli:root view_private private memory 3: done": {of("private", ""), of("group", "g")},
		"cli:root view_private chat memory 3: done":    {of("group", "g"), of("chat", ""), of("private", "")},
	} {
		kept := &audit{}
		m := newTestManager(&storage{})
		m.cfg.Audit = kept
		err := m.ViewFact(t.Context(), Actor{Role: Operator, Name: "cli:root"}, values[len(values)-1], values, func(context.Context) error { return nil })
		if got := strings.Join(kept.rows, "; "); err != nil || got != want {
			t.Errorf("audit %q and error %v, want %q", got, err, want)
		}
	}
}
