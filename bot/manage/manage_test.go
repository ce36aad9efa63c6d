package manage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ebb/bot/upkeep"
	"ebb/compaction"
	"ebb/memory"
	"ebb/memory/extract"
	"ebb/sessions"
)

// storage records the calls that reach the storage, and holds one memory.
type storage struct {
	memory.Rights
	memory.Erasures
	fact   memory.Known
	people []memory.Person
	calls  []string

	busy     bool // upkeep of the session runs
	flushErr error
}

// operators is the storage for all actions of operators.
func operators(s *storage) Operators {
	return Operators{Facts: s, Sessions: s, Erasure: s, Compactions: s, Requests: s, Flushes: s, Letters: s, Calls: s}
}

func (s *storage) did(call string, args ...any) {
	s.calls = append(s.calls, fmt.Sprintf(call, args...))
}

func (s *storage) KnownByID(_ context.Context, _ memory.Asker, id int64) (memory.Known, error) {
	if id != s.fact.ID {
		return memory.Known{}, sessions.ErrNotFound
	}
	return s.fact, nil
}

func (s *storage) MemoryByID(ctx context.Context, id int64) (memory.Memory, []memory.Memory, error) {
	f, err := s.KnownByID(ctx, memory.Asker{}, id)
	return f.Memory, nil, err
}

func (s *storage) ForgetMemory(_ context.Context, id int64, from memory.Asking) (memory.Forgotten, error) {
	within := ""
	if from.GroupOnly {
		within = " in the group"
	}
	s.did("forget %d only %q%s", id, from.Only, within)
	return memory.Forgotten{Memories: 1}, nil
}

func (s *storage) Promote(_ context.Context, id int64, by sessions.UserID) (memory.Memory, error) {
	s.did("promote %d by %s", id, by)
	return memory.Memory{ID: id + 1}, nil
}

func (s *storage) People(_ context.Context, robot sessions.RobotCode, group sessions.Key, name string) ([]memory.Person, error) {
	if group != "" {
		s.did("find %s of %q in %s", name, robot, group)
	}
	return s.people, nil
}

func (s *storage) PreviewForget(_ context.Context, f memory.Forget) (memory.Preview, error) {
	s.did("preview %s of %q self %v%s", f.Person, f.Robot, f.Self, in(f.Group))
	return memory.Preview{Messages: 2}, nil
}

func (s *storage) ForgetPerson(_ context.Context, f memory.Forget) (memory.Forgotten, error) {
	s.did("forget %s of %q self %v%s", f.Person, f.Robot, f.Self, in(f.Group))
	return memory.Forgotten{Messages: 2}, nil
}

func (s *storage) FactsOf(_ context.Context, _ sessions.RobotCode, who sessions.UserID, after int64, _ int) ([]memory.Memory, error) {
	if who != "bob" || after > 0 {
		return nil, nil
	}
	return []memory.Memory{{ID: 7, SourceSession: "r/p1"}}, nil
}

func (s *storage) MessagesOf(_ context.Context, _ sessions.RobotCode, who sessions.UserID, after int64, limit int) ([]memory.PersonMessage, error) {
	var list []memory.PersonMessage
	for id := after + 1; who == "bob" && id <= exportBatch+3 && len(list) < limit; id++ {
		list = append(list, memory.PersonMessage{Event: sessions.Event{ID: id}})
	}
	return list, nil
}

func (s *storage) MessagesBefore(_ context.Context, _ sessions.Key, person sessions.UserID, event int64, _ int) ([]sessions.Event, error) {
	if person != "alice" {
		return nil, nil
	}
	return []sessions.Event{{ID: event - 1, Content: "/help"}, {ID: event - 2, Content: "hello"}}, nil
}

func (s *storage) ForgetMessage(_ context.Context, event int64, _ memory.Asking) (memory.Forgotten, error) {
	s.did("forget message %d", event)
	return memory.Forgotten{}, nil
}

func (s *storage) Undo(_ context.Context, l sessions.Lease, event int64, rest int) (sessions.LogEntry, error) {
	s.did("undo at term %d for %d", l.Term, event)
	return sessions.LogEntry{}, nil
}

func (s *storage) UndoCompaction(_ context.Context, key sessions.Key, _ int64, by string, rest int) (sessions.LogEntry, error) {
	s.did("undo %s by %s", key, by)
	return sessions.LogEntry{}, nil
}

func (s *storage) Configure(_ context.Context, l sessions.Lease, settings string) error {
	s.did("configure at term %d %s", l.Term, settings)
	return nil
}

func (s *storage) Renew(_ context.Context, l sessions.Lease) error {
	s.did("renew at term %d", l.Term)
	return nil
}

func (s *storage) ChooseScope(_ context.Context, l sessions.Lease, scope sessions.Scope) error {
	s.did("scope %s at term %d", scope, l.Term)
	return nil
}

func (s *storage) Lock(context.Context, sessions.Key) (func(), error) {
	s.did("lock")
	return func() { s.did("unlock") }, nil
}

func (s *storage) Busy(sessions.Key) bool { return s.busy }

func (s *storage) Compact(
	_ context.Context, l sessions.Lease, asked *upkeep.Request, _ int, needed func(sessions.View) sessions.Trigger,
) (upkeep.Compacted, error) {
	s.did("compact at term %d for %q by %s: %s", l.Term, asked.Focus, asked.By, needed(sessions.View{}))
	return upkeep.Compacted{}, nil
}

func (s *storage) FlushAll(_ context.Context, l sessions.Lease, trigger memory.FlushTrigger) (extract.Outcome, error) {
	s.did("flush at term %d: %s", l.Term, trigger)
	return extract.Outcome{}, s.flushErr
}

func (s *storage) Session(_ context.Context, key sessions.Key) (sessions.Session, error) {
	if key != "s" {
		return sessions.Session{}, sessions.ErrNotFound
	}
	return sessions.Session{Key: key}, nil
}

func (s *storage) ForgetSession(_ context.Context, key sessions.Key) (memory.Forgotten, error) {
	s.did("forget session %s", key)
	return memory.Forgotten{}, nil
}

func (s *storage) EraseEvents(_ context.Context, key sessions.Key, _, _ []int64) (sessions.Erased, error) {
	s.did("erase in %s", key)
	return sessions.Erased{}, nil
}

func (s *storage) Delete(_ context.Context, key sessions.Key) (sessions.Deleted, error) {
	s.did("delete %s", key)
	return sessions.Deleted{}, nil
}

func (s *storage) ResumeCalls(_ context.Context, month string) (sessions.ResumedCalls, error) {
	s.did("resume %s", month)
	return sessions.ResumedCalls{Month: month}, nil
}

func (s *storage) RetryDeadLetter(_ context.Context, id int64) (sessions.Key, error) {
	s.did("retry %d", id)
	return "s", nil
}

func in(group sessions.Key) string {
	if group == "" {
		return ""
	}
	return " in " + string(group)
}

func newTestManager(s *storage) *Manager {
	return New(Config{
		Rights: s, Erasures: s, Audit: Unrecorded{}, Sessions: s, Compactions: s, Scopes: s, Upkeep: s, Operators: operators(s), FlushDeadline: time.Minute,
		Settings: func(sessions.Session) compaction.Settings { return compaction.Settings{} },
		Resolve: func(_ sessions.ConversationID, settings string) (compaction.Settings, error) {
			if settings == `{"policy":"none"}` {
				return compaction.Settings{}, errors.New("no such policy")
			}
			if strings.Contains(settings, `"policy":"turns"`) {
				return compaction.Settings{Policy: compaction.Policies["turns"]}, nil
			}
			return compaction.Settings{Policy: compaction.Policies["token_budget"]}, nil
		},
	})
}

// The actors of the tests. All ask in session s.
var (
	lease    = sessions.Lease{Key: "s", Term: 5}
	member   = Actor{Person: "alice", Reader: memory.Reader{Key: "s", Robot: "r"}, Asking: memory.Asking{Lease: lease, Event: 9}}
	chatting = Actor{Person: "alice", Reader: memory.Reader{Key: "s", Robot: "r", Private: true}, Asking: member.Asking}
	admin    = Actor{Role: Admin, Person: "root", Reader: member.Reader, Asking: member.Asking}
	operator = Actor{Role: Operator, Name: "cli:root"}
)

// Each action reaches the storage for an actor who has its right, and for no other one.
func TestRightsOfActors(t *testing.T) {
	t.Parallel()
	group := memory.Known{Memory: memory.Memory{ID: 3, Scope: memory.ScopeGroup, Kind: memory.KindFact}}
	own := memory.Known{Memory: memory.Memory{ID: 3, Scope: memory.ScopeGroup}, Own: true}
	here := memory.Known{Memory: memory.Memory{ID: 3, Scope: memory.ScopeSession}}
	team := memory.Known{Memory: memory.Memory{ID: 3, Scope: memory.ScopeTeam}}
	ctx, other := t.Context(), sessions.Session{Key: "other"}
	session := sessions.Session{Key: "s"}
	forget := func(m *Manager, a Actor) error { _, _, err := m.ForgetFact(ctx, a, 3); return err }
	promote := func(m *Manager, a Actor) error { _, err := m.Promote(ctx, a, 3); return err }
	find := func(m *Manager, a Actor) error { _, err := m.FindPerson(ctx, a, "bob"); return err }
	preview := func(who sessions.UserID) func(*Manager, Actor) error {
		return func(m *Manager, a Actor) error { _, err := m.PreviewPerson(ctx, a, who); return err }
	}
	person := func(who sessions.UserID) func(*Manager, Actor) error {
		return func(m *Manager, a Actor) error { _, err := m.ForgetPerson(ctx, a, who); return err }
	}
	undo := func(s sessions.Session) func(*Manager, Actor) error {
		return func(m *Manager, a Actor) error { _, err := m.Undo(ctx, a, s); return err }
	}
	configure := func(m *Manager, a Actor) error { _, err := m.Configure(ctx, a, session, "tail_turns", "3"); return err }
	scope := func(s sessions.Session) func(*Manager, Actor) error {
		return func(m *Manager, a Actor) error { return m.ChooseScope(ctx, a, s, sessions.ScopeMember) }
	}
	private := sessions.Session{Key: "s", ConversationType: sessions.Private}
	last := func(m *Manager, a Actor) error {
		_, _, err := m.ForgetLast(ctx, a, func(e sessions.Event) bool { return e.Content == "/help" })
		return err
	}
	export := func(m *Manager, a Actor) error {
		return m.Export(ctx, a, "bob", nothing)
	}
	erase := func(m *Manager, a Actor) error { _, err := m.EraseEvents(ctx, a, "s", nil, nil); return err }
	drop := func(m *Manager, a Actor) error { _, err := m.DeleteSession(ctx, a, "s"); return err }
	retry := func(m *Manager, a Actor) error { _, err := m.RetryDeadLetter(ctx, a, "", 4); return err }
	forgetSession := func(key sessions.Key) func(*Manager, Actor) error {
		return func(m *Manager, a Actor) error { _, err := m.ForgetSession(ctx, a, key); return err }
	}
	kept := func(who sessions.UserID) func(*Manager, Actor) error {
		return func(m *Manager, a Actor) error { return m.IsKept(ctx, a, who) }
	}
	checkRights(t, []rightsCase{
		{"a member forgets their own", own, member, forget, nil, `forget 3 only "alice"`},
		{"a member forgets the group's", group, member, forget, NotTheirs, ""},
		{"a person forgets what belongs to their chat", here, chatting, forget, nil, `forget 3 only "alice"`},
		{"a person forgets the team's in their chat", team, chatting, forget, NotTheirs, ""},
		{"an admin forgets the group's", group, admin, forget, nil, `forget 3 only ""`},
		{"an operator forgets", group, operator, forget, nil, `forget 3 only ""`},
		{"a member promotes", group, member, promote, NotAllowed, ""},
		{"an admin promotes", group, admin, promote, nil, "promote 3 by root"},
		{"an operator promotes", group, operator, promote, nil, "promote 3 by cli:root"},
		{"a member finds a person", group, member, find, NotAllowed, ""},
		{"an admin finds no member", group, admin, find, sessions.ErrNotFound, ""},
		{"a member previews themself", group, member, preview("alice"), nil, `preview alice of "r" self true`},
		{"a member previews another", group, member, preview("bob"), NotAllowed, ""},
		{"a sender without an id previews", group, Actor{}, preview(""), sessions.ErrNotFound, ""},
		{"a member forgets themself", group, member, person("alice"), nil, `forget alice of "r" self true`},
		{"a member forgets another", group, member, person("bob"), NotAllowed, ""},
		{"an admin forgets another", group, admin, person("bob"), nil, `forget bob of "r" self false`},
		{"an operator forgets a person", group, operator, person("bob"), nil, `forget bob of "" self false`},
		{"an operator forgets a person with usage alone", group, operator, person("used"), nil, `forget used of "" self false`},
		{"an operator forgets an unknown person", group, operator, person("carol"), sessions.ErrNotFound, ""},
		{"a member undoes", group, member, undo(session), NotAllowed, ""},
		{"a person undoes in their chat", group, chatting, undo(session), nil, "lock undo at term 5 for 9 unlock"},
		{"a person undoes elsewhere", group, chatting, undo(other), NotAllowed, ""},
		{"an admin undoes", group, admin, undo(session), nil, "lock undo at term 5 for 9 unlock"},
		{"an operator undoes", group, operator, undo(session), nil, "undo s by cli:root"},
		{"a member configures", group, member, configure, NotAllowed, ""},
		{"an admin configures", group, admin, configure, nil, `configure at term 5 {"tail_turns":3}`},
		{"a member chooses a scope", group, member, scope(session), NotAllowed, ""},
		{"an admin chooses a scope", group, admin, scope(session), nil, "scope member at term 5"},
		{"an admin chooses a scope in private", group, admin, scope(private), GroupsOnly, ""},
		{"an operator chooses a scope", group, operator, scope(session), NoTurn, ""},
		{"a member forgets their last message", group, member, last, nil, "forget message 7"},
		{"an admin without a message forgets the last", group, admin, last, sessions.ErrNotFound, ""},
		{"a member exports another", group, member, export, NotAllowed, ""},
		{"an admin exports another", group, admin, export, NotAllowed, ""},
		{"an operator exports", group, operator, export, nil, ""},
		{"an admin asks for a person", group, admin, kept("bob"), NotAllowed, ""},
		{"an operator asks for a person", group, operator, kept("bob"), nil, ""},
		{"an operator asks for an unknown person", group, operator, kept("carol"), sessions.ErrNotFound, ""},
		{"an admin erases events", group, admin, erase, NotAllowed, ""},
		{"an operator erases events", group, operator, erase, nil, "erase in s"},
		{"an admin deletes a session", group, admin, drop, NotAllowed, ""},
		{"an operator deletes a session", group, operator, drop, nil, "delete s"},
		{"an admin retries", group, admin, retry, NotAllowed, ""},
		{"an operator retries", group, operator, retry, nil, "retry 4"},
		{"an admin forgets a session", group, admin, forgetSession("s"), NotAllowed, ""},
		{"an operator forgets a session", group, operator, forgetSession("s"), nil, "forget session s"},
		{"an operator forgets an unknown session", group, operator, forgetSession("t"), sessions.ErrNotFound, ""},
	})
}

// The actions on a conversation's context need a turn there, and the right of its owner.
func TestRightsToCompact(t *testing.T) {
	t.Parallel()
	ctx, session, other, none := t.Context(), sessions.Session{Key: "s"}, sessions.Session{Key: "other"}, memory.Known{}
	compact := func(s sessions.Session) func(*Manager, Actor) error {
		return func(m *Manager, a Actor) error { _, err := m.Compact(ctx, a, s, "dates", ""); return err }
	}
	renew := func(s sessions.Session) func(*Manager, Actor) error {
		return func(m *Manager, a Actor) error { _, err := m.NewContext(ctx, a, s); return err }
	}
	checkRights(t, []rightsCase{
		{"a member compacts", none, member, compact(session), NotAllowed, ""},
		{"a person compacts their chat", none, chatting, compact(session), nil, `compact at term 5 for "dates" by alice: manual`},
		{"a person compacts elsewhere", none, chatting, compact(other), NoTurn, ""},
		{"an admin compacts", none, admin, compact(session), nil, `compact at term 5 for "dates" by root: manual`},
		{"an admin compacts elsewhere", none, admin, compact(other), NoTurn, ""},
		{"an operator compacts", none, operator, compact(session), NoTurn, ""},
		{"a member begins a context", none, member, renew(session), NotAllowed, ""},
		{"a person begins a context in their chat", none, chatting, renew(session), nil, "flush at term 5: new renew at term 5"},
		{"a person begins a context elsewhere", none, chatting, renew(other), NoTurn, ""},
		{"an admin begins a context", none, admin, renew(session), nil, "flush at term 5: new renew at term 5"},
		{"an operator begins a context", none, operator, renew(session), NoTurn, ""},
	})
}

// rightsCase is an actor's action in a storage of one memory.
type rightsCase struct {
	name  string
	fact  memory.Known
	actor Actor
	act   func(*Manager, Actor) error
	err   error
	call  string // the calls of the storage and of the upkeep; empty: none
}

func checkRights(t *testing.T, cases []rightsCase) {
	t.Helper()
	for _, c := range cases {
		s := &storage{fact: c.fact}
		err := c.act(newTestManager(s), c.actor)
		if got := strings.Join(s.calls, " "); !errors.Is(err, c.err) || got != c.call {
			t.Errorf("%s: error %v and calls %q, want %v and %q", c.name, err, got, c.err, c.call)
		}
	}
}

// A new context begins although its flush fails or has to be left to upkeep that runs, and the events are owed then.
func TestNewContextOwesAFlush(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		busy  bool
		flush error
		owed  bool
		calls string
	}{
		{false, nil, false, "flush at term 5: new renew at term 5"},
		{false, errors.New("the model is away"), true, "flush at term 5: new renew at term 5"},
		{true, nil, true, "renew at term 5"},
	} {
		s := &storage{busy: c.busy, flushErr: c.flush}
		owed, err := newTestManager(s).NewContext(t.Context(), admin, sessions.Session{Key: "s"})
		if got := strings.Join(s.calls, " "); err != nil || owed != c.owed || got != c.calls {
			t.Errorf("busy %v, flush %v: owed %v, error %v and calls %q, want %v and %q", c.busy, c.flush, owed, err, got, c.owed, c.calls)
		}
	}
}

// A memory that can't be shared is refused with the reason, for an admin and an operator alike.
func TestPromoteRefusesWithTheReason(t *testing.T) {
	t.Parallel()
	for m, why := range map[*memory.Memory]Refusal{
		{Scope: memory.ScopeTeam, Kind: memory.KindTask}:                                        TeamAlready,
		{Scope: memory.ScopeTeam, SupersededBy: 4}:                                              Superseded,
		{Scope: memory.ScopeGroup, ExpiresAt: time.Now().Add(-time.Hour)}:                       Expired,
		{Scope: memory.ScopeGroup, Kind: memory.KindTask}:                                       OfATask,
		{Scope: memory.ScopeGroup, Kind: memory.KindDigest}:                                     OfADay,
		{Scope: memory.ScopeUser, Kind: memory.KindProfile}:                                     OfAPerson,
		{Scope: memory.ScopeSession, Kind: memory.KindFact}:                                     OfASession,
		{Scope: memory.ScopeGroup, Kind: memory.KindFact, ExpiresAt: time.Now().Add(time.Hour)}: "",
	} {
		for _, a := range []Actor{admin, operator} {
			m.ID = 3
			s := &storage{fact: memory.Known{Memory: *m}}
			_, err := newTestManager(s).Promote(t.Context(), a, 3)
			if why == "" && err == nil && len(s.calls) == 1 {
				continue
			}
			if !errors.Is(err, why) || len(s.calls) > 0 {
				t.Errorf("%s %s: error %v and calls %q, want %v", m.Scope, m.Kind, err, s.calls, why)
			}
		}
	}
}

// A name that several people have is no one's, and the error holds all of them.
func TestFindPersonIsAmbiguous(t *testing.T) {
	t.Parallel()
	s := &storage{people: []memory.Person{{ID: "1"}, {ID: "2"}}}
	_, err := newTestManager(s).FindPerson(t.Context(), admin, "王芳")
	var several *Ambiguous
	if !errors.As(err, &several) || len(several.People) != 2 {
		t.Errorf("error %v, want two people", err)
	}
}

// A setting of the file and an invalid one change nothing, and a default word removes even one that became invalid.
func TestConfigureChecksTheSetting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		own, key, value, want string
		err                   any
	}{
		{"", "策略", "turns", `{"policy":"turns"}`, nil},
		{`{"policy":"turns"}`, "B", "5", `{"cached_context_turns":5,"policy":"turns"}`, nil},
		{`{"mode":"x","policy":"none"}`, "mode", "默认", `{"policy":"none"}`, nil},
		{`{"policy":"turns"}`, "policy", "default", "", nil},
		{"", "policy", "none", "", new(*InvalidSetting)},
		{"", "b", "5", "", new(*IdleSetting)},
		{`{"policy":"turns"}`, "cache_price", "0.5", `{"policy":"turns"}`, new(*IdleSetting)},
		{"", "daily_tokens", "1", "", new(Refusal)},
	} {
		s := &storage{}
		got, err := newTestManager(s).Configure(t.Context(), admin, sessions.Session{Key: "s", Settings: c.own}, c.key, c.value)
		if got != c.want || (c.err == nil) != (err == nil) || err != nil && !errors.As(err, c.err) || len(s.calls) > 0 != (err == nil) {
			t.Errorf("%s=%s over %s: %q, %v and calls %q, want %q", c.key, c.value, c.own, got, err, s.calls, c.want)
		}
	}
}

func (s *storage) RequestCompaction(_ context.Context, r sessions.CompactionRequest) error {
	s.did("request %s %q %q by %s", r.Key, r.Settings, r.Focus, r.RequestedBy)
	return nil
}

func (s *storage) RetryDebt(_ context.Context, key sessions.Key) error {
	s.did("retry debt %s", key)
	return nil
}

// A requested compaction has the session's settings with those of its arguments, and the rest as its focus. Arguments that
// can't work are refused before anything is stored.
func TestRequestCompact(t *testing.T) {
	t.Parallel()
	s := &storage{}
	m := New(Config{Operators: operators(s), Resolve: func(_ sessions.ConversationID, settings string) (compaction.Settings, error) {
		if strings.Contains(settings, "nonsense") {
			return compaction.Settings{}, errors.New("policy: no such policy")
		}
		return compaction.Settings{Policy: compaction.Policies["turns"]}, nil
	}})
	session := sessions.Session{Key: "s", Settings: `{"mode":"summary_only"}`}
	operator := Actor{Role: Operator, Name: "admin.token"}
	if err := m.RequestCompact(t.Context(), operator, session, "policy=turns 重点=端口 和编号"); err != nil {
		t.Fatal(err)
	}
	if want := `request s "{\"mode\":\"summary_only\",\"policy\":\"turns\"}" "重点=端口 和编号" by admin.token`; s.calls[len(s.calls)-1] != want {
		t.Errorf("stored is %s, want %s", s.calls[len(s.calls)-1], want)
	}
	before := len(s.calls)
	for _, text := range []string{"policy=nonsense", "context_window=5", "retries=5", "notify=true"} {
		if err := m.RequestCompact(t.Context(), operator, session, text); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	if err := m.RequestCompact(t.Context(), Actor{Role: Admin}, session, ""); !errors.Is(err, NotAllowed) {
		t.Errorf("an administrator of a group got %v", err)
	}
	for _, call := range s.calls[before:] {
		if strings.HasPrefix(call, "request") {
			t.Errorf("a refused request is stored: %s", call)
		}
	}
}
