package manage

import (
	"testing"

	"ebb/memory"
	"ebb/sessions"
)

// An administrator of a group acts on that group alone, and in a private chat as its person.
func TestGroupAdministratorsActInTheirGroup(t *testing.T) {
	t.Parallel()
	key := sessions.Key("r/g/u2")
	lead := Actor{Role: GroupAdmin, Person: "lead", Reader: memory.Reader{Key: key, Robot: "r"}, Asking: memory.Asking{Lease: sessions.Lease{Key: key, Term: 5}, Event: 9}}
	private := lead
	private.Reader.Private = true
	fact := func(scope memory.Scope, from sessions.Key) memory.Known {
		return memory.Known{Memory: memory.Memory{ID: 3, Scope: scope, SourceSession: from}}
	}
	ctx := t.Context()
	forget := func(m *Manager, a Actor) error { _, _, err := m.ForgetFact(ctx, a, 3); return err }
	promote := func(m *Manager, a Actor) error { _, err := m.Promote(ctx, a, 3); return err }
	find := func(m *Manager, a Actor) error { _, err := m.FindPerson(ctx, a, "bob"); return err }
	preview := func(m *Manager, a Actor) error { _, err := m.PreviewPerson(ctx, a, "bob"); return err }
	person := func(who sessions.UserID) func(*Manager, Actor) error {
		return func(m *Manager, a Actor) error { _, err := m.ForgetPerson(ctx, a, who); return err }
	}
	export := func(m *Manager, a Actor) error { return m.Export(ctx, a, "bob", nothing) }
	undo := func(key sessions.Key) func(*Manager, Actor) error {
		return func(m *Manager, a Actor) error { _, err := m.Undo(ctx, a, sessions.Session{Key: key}); return err }
	}
	scope := func(key sessions.Key) func(*Manager, Actor) error {
		return func(m *Manager, a Actor) error {
			return m.ChooseScope(ctx, a, sessions.Session{Key: key}, sessions.ScopeMember)
		}
	}
	configure := func(m *Manager, a Actor) error {
		_, err := m.ChooseModel(ctx, a, sessions.Session{Key: "r/other"}, "main")
		return err
	}
	group := fact(memory.ScopeGroup, "r/g")
	checkRights(t, []rightsCase{
		{"forgets the group's", group, lead, forget, nil, `forget 3 only "" in the group`},
		{"forgets another group's", fact(memory.ScopeGroup, "r/gg"), lead, forget, NotTheirs, ""},
		{"forgets the team's", fact(memory.ScopeTeam, "r/g"), lead, forget, NotTheirs, ""},
		{"promotes", group, lead, promote, NotAllowed, ""},
		{"finds a person", group, lead, find, sessions.ErrNotFound, `find bob of "r" in r/g`},
		{"previews another", group, lead, preview, nil, `preview bob of "r" self false in r/g`},
		{"forgets another", group, lead, person("bob"), nil, `forget bob of "r" self false in r/g`},
		{"forgets themself", group, lead, person("lead"), nil, `forget lead of "r" self true`},
		{"forgets another in private", group, private, person("bob"), NotAllowed, ""},
		{"exports another", group, lead, export, NotAllowed, ""},
		{"undoes in the group", group, lead, undo("r/g"), nil, "lock undo at term 5 for 9 unlock"},
		{"undoes elsewhere", group, lead, undo("r/gg"), NotAllowed, ""},
		{"chooses the scope", group, lead, scope("r/g"), nil, "scope member at term 5"},
		{"chooses another group's scope", group, lead, scope("r/gg"), NotAllowed, ""},
		{"chooses another group's model", group, lead, configure, NotAllowed, ""},
	})
}
