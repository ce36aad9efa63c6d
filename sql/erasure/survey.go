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

// No lock is held: [forgetting.surveyOn] reads later messages under it.
func (g *personErasure) surveySession(ctx context.Context, key sessions.Key) (*sessionSurvey, error) {
	sv := &sessionSurvey{key: key, traits: newTraits(labelsOf(g.who), g.who.nicks), turns: answerTracker{}}
	asked := int64(0)
	if key == g.f.From.Lease.Key && g.f.Self {
		asked = g.f.From.Event
	}
	said, err := g.db.Q.SaidBy(ctx, g.db.Pool, &dbsqlc.SaidByParams{SessionKey: key, People: g.who.ids, Asked: asked, Erased: sessions.ErasedText})
	if err != nil {
		return nil, err
	}
	for _, m := range said {
		sv.traits.learnMarks(m.Content, m.CreatedAt, false)
		if m.Aside {
			sv.aside++
		}
	}
	for _, m := range g.facts {
		if m.Kind != memory.KindDigest {
			sv.traits.learnMarks(m.Content, m.Since, true)
		}
	}
	for _, m := range g.compared {
		sv.traits.learnSaying(m.Content, m.Since)
	}
	return sv, g.surveyOn(ctx, g.db.Pool, sv)
}

func (g *personErasure) surveyOn(ctx context.Context, db dbsqlc.DBTX, sv *sessionSurvey) error {
	return g.walkLog(ctx, db, sv.key, sv.through, func(e *dbsqlc.LogWalkRow) {
		sv.through = e.Seq
		theirs := e.Role == sessions.RoleUser && g.who.is(e.SenderID)
		wipe := sv.turns.isErased(e, theirs)
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

// PreviewForget implements memory.Erasures.
func (s *Store) PreviewForget(ctx context.Context, f memory.Forget) (memory.Preview, error) {
	g, done, err := s.beginPersonErasure(ctx, f, s.previewing)
	if err != nil {
		return memory.Preview{}, err
	}
	defer done()
	p, err := g.previewAll(ctx)
	return p, forgettingError(err)
}

func (g *personErasure) previewAll(ctx context.Context) (p memory.Preview, err error) {
	facts := map[int64]bool{}
	for _, m := range g.facts {
		facts[m.ID] = m.Kind != memory.KindDigest
	}
	for i := range g.rows {
		r := &g.rows[i]
		if !r.Spoke {
			continue
		}
		if r.ConversationType == sessions.Private {
			p.Private++
		} else {
			p.Groups = append(p.Groups, r.Title)
		}
		if err = g.previewOf(ctx, r, &p, facts); err != nil {
			return p, err
		}
	}
	for _, theirs := range facts {
		if theirs {
			p.Facts++
		}
	}
	if g.f.Group != "" {
		return p, nil
	}
	return p, g.previewRecords(ctx, &p)
}

func (g *personErasure) previewRecords(ctx context.Context, p *memory.Preview) error {
	rows, err := g.db.Q.PersonRecords(ctx, g.db.Pool, &dbsqlc.PersonRecordsParams{
		People: g.who.ids, Robot: string(g.f.Robot), RobotSessions: g.robotSessions(),
	})
	for _, r := range rows {
		switch n := int(r.Rows); memory.RecordKind(r.Kind) {
		case memory.RecordUsage:
			p.Usage += n
		case memory.RecordSchedule:
			p.Schedules += n
		case memory.RecordPromotion:
			p.Promotions += n
		case memory.RecordCompaction:
			p.Compactions += n
		case memory.RecordID:
			p.IDs += n
		case memory.RecordLogin:
			p.Logins += n
		case memory.RecordAction:
			p.Actions += n
		}
	}
	return err
}

func (g *personErasure) previewOf(ctx context.Context, r *dbsqlc.PersonSessionsRow, p *memory.Preview, facts map[int64]bool) error {
	drawn, err := g.db.Q.MemoriesDrawn(ctx, g.db.Pool, &dbsqlc.MemoriesDrawnParams{SessionKey: r.SessionKey, People: g.who.ids})
	if err != nil {
		return err
	}
	if g.isTheirs(r.SessionKey, r.RobotCode, r.ConversationID, r.ConversationType, r.Spoke) {
		for _, m := range drawn {
			facts[m.ID] = m.Kind != memory.KindDigest
		}
		asked := int64(0)
		if r.SessionKey == g.f.From.Lease.Key {
			asked = g.f.From.Event
		}
		answers, err := g.answersAfter(ctx, g.db.Pool, r.SessionKey, asked, repeatsNothing)
		if err != nil {
			return err
		}
		n, err := g.messagesUpTo(ctx, g.db.Pool, r.SessionKey, asked, answers)
		p.Messages += int(n.Messages)
		p.Answers += int(n.Answers)
		return err
	}
	sv, err := g.surveySession(ctx, r.SessionKey)
	if err != nil {
		return err
	}
	seqs, _, messages := placesOf(sv.erasablePlaces())
	p.Messages += sv.said + sv.aside
	p.Answers += messages - sv.said
	for i := range drawn {
		switch m := &drawn[i]; {
		case m.Kind == memory.KindDigest:
			p.DigestLines += linesThat(m.Content, sv.traits.repeats)
		case g.ofThem(m, sv):
			facts[m.ID] = true
		}
	}
	covering, err := g.summariesCovering(ctx, g.db.Pool, r.SessionKey, seqs)
	for _, s := range covering {
		if s.Status == sessions.Active {
			p.Summaries++
		}
	}
	return err
}
