package erasure

import (
	"context"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// PreviewForget implements memory.Erasures.
func (s *Store) PreviewForget(ctx context.Context, f memory.Forget) (memory.Preview, error) {
	p, done, err := s.planPerson(ctx, f, s.previewing)
	if err != nil {
		return memory.Preview{}, err
	}
	defer done()
	shown, err := p.show(ctx, s)
	return shown, forgettingError(err)
}

func (p *personPlan) show(ctx context.Context, s *Store) (shown memory.Preview, err error) {
	facts := map[int64]bool{}
	for _, m := range p.facts {
		facts[m.ID] = m.Kind != memory.KindDigest
	}
	for i := range p.sessions {
		r := &p.sessions[i]
		if !r.Spoke {
			continue
		}
		if r.ConversationType == sessions.Private {
			shown.Private++
		} else {
			shown.Groups = append(shown.Groups, r.Title)
		}
		if err = p.showSession(ctx, s, r, &shown, facts); err != nil {
			return shown, err
		}
	}
	var ids []int64
	for id, theirs := range facts {
		if theirs {
			ids = append(ids, id)
		}
	}
	if ids, err = p.withoutShared(ctx, s, s.db.Pool, ids); err != nil {
		return shown, err
	}
	shown.Facts = len(ids)
	if p.forget.Group != "" {
		return shown, nil
	}
	return shown, p.showRecords(ctx, s, &shown)
}

func (p *personPlan) showRecords(ctx context.Context, s *Store, shown *memory.Preview) error {
	rows, err := s.db.Q.PersonRecords(ctx, s.db.Pool, &dbsqlc.PersonRecordsParams{
		People: p.who.ids, Robot: string(p.forget.Robot), RobotSessions: p.robotSessions(),
	})
	for _, r := range rows {
		switch n := int(r.Rows); memory.RecordKind(r.Kind) {
		case memory.RecordUsage:
			shown.Usage += n
		case memory.RecordSchedule:
			shown.Schedules += n
		case memory.RecordFile:
			shown.Files += n
		case memory.RecordPromotion:
			shown.Promotions += n
		case memory.RecordCompaction:
			shown.Compactions += n
		case memory.RecordID:
			shown.IDs += n
		case memory.RecordLogin:
			shown.Logins += n
		case memory.RecordAction:
			shown.Actions += n
		}
	}
	return err
}

func (p *personPlan) showSession(
	ctx context.Context, s *Store, r *dbsqlc.PersonSessionsRow, shown *memory.Preview, facts map[int64]bool,
) error {
	drawn, err := s.db.Q.MemoriesDrawn(ctx, s.db.Pool, &dbsqlc.MemoriesDrawnParams{SessionKey: r.SessionKey, People: p.who.ids})
	if err != nil {
		return err
	}
	if p.isTheirs(r.SessionKey, r.RobotCode, r.ConversationID, r.ConversationType, r.Spoke) {
		for _, m := range drawn {
			facts[m.ID] = m.Kind != memory.KindDigest
		}
		asked := int64(0)
		if r.SessionKey == p.forget.From.Lease.Key {
			asked = p.forget.From.Event
		}
		n, _, err := s.messagesUpTo(ctx, s.db.Pool, r.SessionKey, asked, repeatsNothing)
		shown.Messages += int(n.Messages)
		shown.Answers += int(n.Answers)
		return err
	}
	sv, err := p.survey(ctx, s, r.SessionKey)
	if err != nil {
		return err
	}
	seqs, _, messages := placesOf(sv.erasablePlaces())
	shown.Messages += sv.said + sv.aside
	shown.Answers += messages - sv.said
	taken, digests := p.takenFrom(drawn, sv)
	for _, id := range taken {
		facts[id] = true
	}
	for _, d := range digests {
		shown.DigestLines += linesThat(d.Content, sv.traits.repeats)
	}
	covering, err := s.summariesCovering(ctx, s.db.Pool, r.SessionKey, seqs)
	for _, sum := range covering {
		if sum.Status == sessions.Active {
			shown.Summaries++
		}
	}
	return err
}
