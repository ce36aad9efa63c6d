package identity

import (
	"context"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// NameIn gives memories the nicks of their people as one session's log had them last. Another session's log gives
// none: its reader may not see it.
func (s *Store) NameIn(ctx context.Context, key sessions.Key, memories []memory.Memory) error {
	return s.Name(ctx, memories, func(memory.Memory) sessions.Key { return key })
}

// Name gives each memory the nicks of its people in one session's log, by one query for all.
func (s *Store) Name(ctx context.Context, memories []memory.Memory, in func(memory.Memory) sessions.Key) error {
	wanted := map[Speaker]string{}
	for _, m := range memories {
		wanted[Speaker{in(m), m.SaidBy}], wanted[Speaker{in(m), m.SubjectID}] = "", ""
	}
	if err := s.Nicks(ctx, wanted); err != nil {
		return err
	}
	for i := range memories {
		m := &memories[i]
		m.SaidByNick, m.SubjectNick = wanted[Speaker{in(*m), m.SaidBy}], wanted[Speaker{in(*m), m.SubjectID}]
	}
	return nil
}

func has(wanted map[Speaker]string, who Speaker) bool {
	_, ok := wanted[who]
	return ok
}

// Speaker is a person in the log of a session.
type Speaker struct {
	Key sessions.Key
	ID  sessions.UserID
}

// Nicks sets the values of a map to people's last nicks, by one query for all.
func (s *Store) Nicks(ctx context.Context, wanted map[Speaker]string) error {
	p := &dbsqlc.NicksSeenParams{}
	for who := range wanted {
		if who.ID != "" {
			p.SessionKeys, p.People = append(p.SessionKeys, string(who.Key)), append(p.People, string(who.ID))
		}
	}
	if len(p.People) == 0 {
		return nil
	}
	rows, err := s.db.Q.NicksSeen(ctx, s.db.Pool, p)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if who := (Speaker{row.SessionKey, row.Person}); has(wanted, who) {
			wanted[who] = row.Nick
		}
	}
	return nil
}
