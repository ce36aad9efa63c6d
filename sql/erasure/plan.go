package erasure

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"ebb/memory"
	"ebb/memory/similarity"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// personPlan is the plan of an erasure of one person, from all sessions of a robot or from one group. A preview shows it. An erasure
// executes it session by session: what goes from one session is a [sessionSurvey].
type personPlan struct {
	forget   memory.Forget
	who      person
	sessions []dbsqlc.PersonSessionsRow   // those with content of the person
	facts    []dbsqlc.MemoriesOfPersonRow // about them, or said by them
	compared []dbsqlc.MemoriesOfPersonRow // compared approximately
	keyed    dayKey                       // zero unless they erase themself
}

const maxCompared = 200

// planPerson reads the plan while it holds one of the places. The caller calls done at the end, which frees the place.
func (s *Store) planPerson(ctx context.Context, f memory.Forget, places chan struct{}) (p *personPlan, done func(), err error) {
	if f.Person == "" {
		return nil, nil, fmt.Errorf("forgetting a person without an id: %w", sessions.ErrRefused)
	}
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, forgettingError(context.Cause(ctx))
	}
	p = &personPlan{forget: f}
	if err := p.read(ctx, s); err != nil {
		<-places
		return nil, nil, forgettingError(err)
	}
	return p, func() { <-places }, nil
}

func (p *personPlan) read(ctx context.Context, s *Store) error {
	f := p.forget
	ids, err := s.identities.IDs(ctx, s.db.Pool, f.Robot, f.Person)
	if err != nil {
		return err
	}
	p.who.ids = ids
	if f.Self {
		if p.keyed, err = s.keyOfDay(ctx); err != nil {
			return err
		}
		times, err := s.db.Q.PersonErasures(ctx, s.db.Pool, &dbsqlc.PersonErasuresParams{People: p.keyed.hashes(f.Robot, ids), Day: p.keyed.date()})
		if err != nil {
			return err
		}
		if times >= memory.MaxErasures {
			return memory.ErrTooOften
		}
	}
	spoken, quoted, err := s.identities.Logs(ctx, f.Robot, ids)
	if err != nil {
		return err
	}
	outside := func(key string) bool { return !p.covers(sessions.Key(key)) }
	spoken, quoted = slices.DeleteFunc(spoken, outside), slices.DeleteFunc(quoted, outside)
	var logs []sessions.Key
	for _, key := range slices.Concat(spoken, quoted) {
		logs = append(logs, sessions.Key(key))
	}
	if err := s.db.Revive(ctx, s.db.Pool.Pipeline(), logs...); err != nil {
		return err
	}
	if p.who.nicks, err = s.db.Q.PersonNicks(ctx, s.db.Pool, ids); err != nil {
		return err
	}
	p.sessions, err = s.db.Q.PersonSessions(ctx, s.db.Pool, &dbsqlc.PersonSessionsParams{
		People: ids, Spoken: spoken, Quoted: quoted, Robot: string(f.Robot),
	})
	if err != nil {
		return err
	}
	p.sessions = slices.DeleteFunc(p.sessions, func(r dbsqlc.PersonSessionsRow) bool { return !p.covers(r.SessionKey) })
	p.facts, err = p.readFacts(ctx, s, s.db.Pool)
	for _, m := range p.facts {
		if m.Kind != memory.KindDigest && len(p.compared) < maxCompared && utf8.RuneCountInString(m.Content) >= similarity.MinPhrase {
			p.compared = append(p.compared, m)
		}
	}
	return err
}

func (p *personPlan) readFacts(ctx context.Context, s *Store, db dbsqlc.DBTX) ([]dbsqlc.MemoriesOfPersonRow, error) {
	facts, err := s.db.Q.MemoriesOfPerson(ctx, db, &dbsqlc.MemoriesOfPersonParams{People: p.who.ids, RobotSessions: p.robotSessions()})
	return slices.DeleteFunc(facts, func(m dbsqlc.MemoriesOfPersonRow) bool {
		return !p.covers(m.SourceSession) || p.forget.Group != "" && m.Scope == memory.ScopeTeam
	}), err
}

func (p *personPlan) robotSessions() string { return pg.RobotSessions(p.forget.Robot) }

// covers reports whether a session is in the group of a restricted erasure.
func (p *personPlan) covers(key sessions.Key) bool {
	return p.forget.Group == "" || key.Group() == p.forget.Group
}

// asks reports whether the person asks for it in the session.
func (p *personPlan) asks(key sessions.Key) bool {
	return p.forget.Self && key == p.forget.From.Lease.Key
}

// asked is the message that asks for it in a session, which stays; 0: in another one.
func (p *personPlan) asked(key sessions.Key) int64 {
	if p.asks(key) {
		return p.forget.From.Event
	}
	return 0
}

// isTheirs reports a private chat, or the person's session in a group.
func (p *personPlan) isTheirs(
	key sessions.Key, robot sessions.RobotCode, c sessions.ConversationID, kind sessions.ConversationType, spoke bool,
) bool {
	return kind == sessions.Private && spoke || slices.ContainsFunc(p.who.ids, func(id string) bool {
		return key == sessions.NewKey(robot, c, sessions.UserID(id))
	})
}

// chats are the person's private chats, whose keys name the person.
func (p *personPlan) chats() []string {
	keys := []string{}
	for _, r := range p.sessions {
		if r.ConversationType == sessions.Private && (r.Spoke || p.asks(r.SessionKey)) {
			keys = append(keys, string(r.SessionKey))
		}
	}
	return keys
}

func (p *personPlan) goneContentOf(sv *sessionSurvey) goneContent {
	gone := goneContent{repeats: sv.traits.repeats}
	for _, m := range p.facts {
		if m.Kind != memory.KindDigest {
			gone.facts = append(gone.facts, m.Content)
		}
	}
	return gone
}

// A fact is the person's when it is about them, said by them, or a repeat of them without a known author. Others'
// statements stay.
func (p *personPlan) takes(m *dbsqlc.MemoriesDrawnRow, sv *sessionSurvey) bool {
	if p.forget.Group != "" && m.Scope == memory.ScopeTeam {
		return false
	}
	return m.Theirs || p.who.is(m.SubjectID) || p.who.is(m.SaidBy) ||
		sv != nil && (sv.traits.hasLabel(m.Content) || m.SaidBy == "" && hasUnshared(sv.traits.matchText(m.Content)))
}

// takenFrom divides the memories of a session: facts that go, and digests that lose lines.
func (p *personPlan) takenFrom(drawn []dbsqlc.MemoriesDrawnRow, sv *sessionSurvey) (facts []int64, digests []dbsqlc.MemoriesDrawnRow) {
	for i := range drawn {
		switch m := &drawn[i]; {
		case m.Kind == memory.KindDigest:
			if sv != nil && sv.traits.repeats(m.Content) {
				digests = append(digests, *m)
			}
		case p.takes(m, sv):
			facts = append(facts, m.ID)
		}
	}
	return facts, digests
}

// withoutShared leaves out of a restricted erasure the facts with a copy that others read.
func (p *personPlan) withoutShared(ctx context.Context, s *Store, db dbsqlc.DBTX, ids []int64) (unshared []int64, err error) {
	if p.forget.Group == "" {
		return ids, nil
	}
	for _, id := range ids {
		rows, err := s.withDerived(ctx, db, []int64{id})
		if err != nil {
			return nil, err
		}
		scopes, err := s.db.Q.MemoryScopes(ctx, db, rows)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(scopes, func(sc dbsqlc.MemoryScopesRow) bool {
			return sc.Scope == memory.ScopeTeam || !p.covers(sc.SourceSession)
		}) {
			unshared = append(unshared, id)
		}
	}
	return unshared, nil
}
