package erasure

import (
	"context"
	"slices"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// sessionSurvey is what a session has of a person, read in order of the log.
type sessionSurvey struct {
	key     sessions.Key
	traits  *personTraits
	turns   answerTracker
	decided map[int64]bool // see [decidedFor]
	through int64
	found   []erasedEvent // their messages, the answers to these, and texts that name their id
	perhaps []possibleRepeat
	said    int // their own messages
	aside   int // those without a place
	draft   *summaryDraft
}

// possibleRepeat is an answer with words of the person. It goes unless a later event shows that others said them too.
type possibleRepeat struct {
	event erasedEvent
	what  []*trait
}

// No lock is held: [personPlan.surveyOn] reads later messages under it.
func (p *personPlan) survey(ctx context.Context, s *Store, key sessions.Key) (*sessionSurvey, error) {
	sv := &sessionSurvey{key: key, traits: newTraits(labelsOf(p.who), p.who.nicks), turns: answerTracker{}}
	said, err := s.db.Q.SaidBy(ctx, s.db.Pool, &dbsqlc.SaidByParams{SessionKey: key, People: p.who.ids, Asked: p.asked(key), Erased: sessions.ErasedText})
	if err != nil {
		return nil, err
	}
	for _, m := range said {
		sv.traits.learnMarks(m.Content, m.CreatedAt, false)
		if m.Aside {
			sv.aside++
		}
	}
	for _, m := range p.facts {
		if m.Kind != memory.KindDigest {
			sv.traits.learnMarks(m.Content, m.Since, true)
		}
	}
	for _, m := range p.compared {
		sv.traits.learnSaying(m.Content, m.Since)
	}
	return sv, p.surveyOn(ctx, s, s.db.Pool, sv)
}

func (p *personPlan) surveyOn(ctx context.Context, s *Store, db dbsqlc.DBTX, sv *sessionSurvey) error {
	var err error
	if sv.decided, err = decidedFor(ctx, s, db, sv.key, p.who.ids, 0); err != nil {
		return err
	}
	return s.walkLog(ctx, db, sv.key, sv.through, func(e *dbsqlc.LogWalkRow) {
		sv.through = e.Seq
		theirs := e.Role == sessions.RoleUser && p.who.is(e.SenderID)
		wipe := sv.turns.isErased(e, theirs || sv.decided[e.ID])
		if e.Content == sessions.ErasedText && e.Calls == "" {
			return
		}
		event := erasedEvent{seq: e.Seq, message: e.Role != sessions.RoleTool && e.Content != ""}
		if e.Role == sessions.RoleUser && !theirs {
			sv.traits.matchOther(e.SenderNick, e.Content)
			return
		}
		if theirs {
			sv.traits.learnMarks(e.Content, e.CreatedAt, false)
			sv.said++
		}
		if wipe || sv.traits.hasLabel(e.Content) || sv.traits.hasLabel(e.Calls) {
			sv.found = append(sv.found, event)
		} else if what := append(sv.traits.matchAnswer(e.Content, e.CreatedAt), sv.traits.matchAnswer(e.Calls, e.CreatedAt)...); len(what) > 0 {
			sv.perhaps = append(sv.perhaps, possibleRepeat{event, what})
		}
	})
}

func (sv *sessionSurvey) erasablePlaces() []erasedEvent {
	all := slices.Clone(sv.found)
	for _, r := range sv.perhaps {
		if hasUnshared(r.what) {
			all = append(all, r.event)
		}
	}
	slices.SortFunc(all, func(a, b erasedEvent) int { return int(a.seq - b.seq) })
	return all
}
