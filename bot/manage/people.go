package manage

import (
	"context"
	"errors"

	"github.com/rs/zerolog"

	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
)

// FindPerson looks among those who spoke to the robot of the actor's conversation, by staff id or nick. A group's administrator finds
// those who spoke in the group. It returns
// [sessions.ErrNotFound] for none and [Ambiguous] for several.
func (m *Manager) FindPerson(ctx context.Context, a Actor, name string) (memory.Person, error) {
	if a.Role < GroupAdmin {
		return memory.Person{}, NotAllowed
	}
	people, err := m.cfg.Rights.People(ctx, a.Reader.Robot, a.group(), name)
	switch {
	case err != nil:
		return memory.Person{}, err
	case len(people) == 0:
		return memory.Person{}, sessions.ErrNotFound
	case len(people) > 1:
		return memory.Person{}, &Ambiguous{People: people}
	}
	return people[0], nil
}

// group is the key of the only group in which the actor has rights over others; empty: in all.
func (a Actor) group() sessions.Key {
	if a.Role == GroupAdmin {
		return a.Reader.Key.Group()
	}
	return ""
}

// IsKept returns [sessions.ErrNotFound] for a person of whom nothing is kept. Only operators may ask.
func (m *Manager) IsKept(ctx context.Context, a Actor, who sessions.UserID) error {
	if a.Role < Operator {
		return NotAllowed
	}
	facts, err := m.cfg.Rights.FactsOf(ctx, "", who, 0, 1)
	if err != nil || len(facts) > 0 {
		return err
	}
	said, err := m.cfg.Rights.MessagesOf(ctx, "", who, 0, 1)
	if err != nil || len(said) > 0 {
		return err
	}
	records, err := m.cfg.Rights.RecordsOf(ctx, "", who)
	if err == nil && len(records) == 0 {
		err = sessions.ErrNotFound
	}
	return err
}

// erasure lets members erase themselves only, and a group's administrator another person in the group. An operator erases the person at
// every robot.
func (m *Manager) erasure(ctx context.Context, a Actor, who sessions.UserID) (memory.Forget, error) {
	f := memory.Forget{Robot: a.Reader.Robot, Person: who, Self: who == a.Person, From: a.Asking}
	switch {
	case who == "":
		return f, sessions.ErrNotFound
	case a.Role == Operator:
		return f, m.IsKept(ctx, a, who)
	case !f.Self && (a.Role < GroupAdmin || a.Role == GroupAdmin && a.Reader.Private):
		return f, NotAllowed
	case !f.Self:
		f.Group = a.group()
	}
	return f, nil
}

// PreviewPerson counts what [Manager.ForgetPerson] would erase.
func (m *Manager) PreviewPerson(ctx context.Context, a Actor, who sessions.UserID) (memory.Preview, error) {
	f, err := m.erasure(ctx, a, who)
	if err != nil {
		return memory.Preview{}, err
	}
	return m.cfg.Erasures.PreviewForget(ctx, f)
}

// ForgetPerson erases a person. An error may come with counts; a repetition does the rest. [memory.ErrTooOften] means
// that nothing was erased.
func (m *Manager) ForgetPerson(ctx context.Context, a Actor, who sessions.UserID) (memory.Forgotten, error) {
	f, err := m.erasure(ctx, a, who)
	if err != nil {
		return memory.Forgotten{}, err
	}
	// The erasure takes the person's id from the row, too: one that failed shows whom it was for.
	what := pages.Action{Action: ForgotPerson, Key: a.Reader.Key, Person: who}
	done, err := recorded(ctx, m, a, f.Self, what, func(ctx context.Context) (memory.Forgotten, error) {
		return m.cfg.Erasures.ForgetPerson(ctx, f)
	})
	switch {
	case errors.Is(err, memory.ErrTooOften):
	case err != nil:
		zerolog.Ctx(ctx).Error().Err(err).Msg("A person was not wholly forgotten")
	default:
		zerolog.Ctx(ctx).Info().Int("sessions", done.Sessions).Int("memories", done.Memories).Int("events", done.Events).
			Int("summaries", done.Summaries).Msg("A person was forgotten")
	}
	return done, err
}

const exportBatch = 200

// Reader gets an export's rows.
type Reader struct {
	Fact    func(memory.Memory) error
	Message func(memory.PersonMessage) error
	Record  func(memory.Record) error
}

// Export reads all that is kept of a person at a robot, or at every one for an operator: memories, messages, then
// other records. It ends with the reader's first error.
func (m *Manager) Export(ctx context.Context, a Actor, who sessions.UserID, to Reader) error {
	if a.Role < Operator && who != a.Person {
		return NotAllowed
	}
	what := pages.Action{Action: Exported, Key: a.Reader.Key, Person: who}
	return m.record(ctx, a, who == a.Person, what, func(ctx context.Context) error { return m.export(ctx, a.Reader.Robot, who, m.viewing(ctx, a, who, to)) })
}

// viewing records each private chat before its first row goes to the reader of another person's data.
func (m *Manager) viewing(ctx context.Context, a Actor, who sessions.UserID, to Reader) Reader {
	fact, message, seen := to.Fact, to.Message, map[sessions.Key]bool{}
	record := func(key sessions.Key, private bool, read func() error) error {
		if !private || seen[key] {
			return read()
		}
		seen[key] = true
		what := pages.Action{Action: ViewedPrivate, Key: key, Detail: "export", Person: who}
		return m.record(ctx, a, who == a.Person, what, func(context.Context) error { return read() })
	}
	to.Fact = func(f memory.Memory) error {
		return record(f.SourceSession, f.Private(), func() error { return fact(f) })
	}
	to.Message = func(s memory.PersonMessage) error {
		return record(s.Event.Key, s.Private, func() error { return message(s) })
	}
	return to
}

func (m *Manager) export(ctx context.Context, robot sessions.RobotCode, who sessions.UserID, to Reader) error {
	err := inBatches(func(after int64) ([]memory.Memory, error) {
		return m.cfg.Rights.FactsOf(ctx, robot, who, after, exportBatch)
	},
		func(f memory.Memory) (int64, error) { return f.ID, to.Fact(f) })
	if err != nil {
		return err
	}
	err = inBatches(func(after int64) ([]memory.PersonMessage, error) {
		return m.cfg.Rights.MessagesOf(ctx, robot, who, after, exportBatch)
	},
		func(s memory.PersonMessage) (int64, error) { return s.Event.ID, to.Message(s) })
	if err != nil {
		return err
	}
	records, err := m.cfg.Rights.RecordsOf(ctx, robot, who)
	for i := 0; err == nil && i < len(records); i++ {
		err = to.Record(records[i])
	}
	return err
}

func inBatches[T any](read func(after int64) ([]T, error), see func(T) (id int64, err error)) error {
	for after := int64(0); ; {
		batch, err := read(after)
		if err != nil {
			return err
		}
		for _, row := range batch {
			if after, err = see(row); err != nil {
				return err
			}
		}
		if len(batch) < exportBatch {
			return nil
		}
	}
}
