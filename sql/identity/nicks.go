package identity

import (
	"context"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// NameIn gives memories the nicks of their people as the log of one session had them last. The log of another session
// gives none: its reader may not see it.
func (s *Store) NameIn(ctx context.Context, key sessions.Key, memories []memory.Memory) error {
	return s.Name(ctx, memories, func(memory.Memory) sessions.Key { return key })
}

// Name gives each memory the nicks of its people in one session's log, by one query for all.
func (s *Store) Name(ctx context.Context, memories []memory.Memory, in func(memory.Memory) sessions.Key) error {
	type person struct {
		key sessions.Key
		id  sessions.UserID
	}
	wanted := map[person]string{}
	for _, m := range memories {
		wanted[person{in(m), m.SaidBy}], wanted[person{in(m), m.SubjectID}] = "", ""
	}
	p := &dbsqlc.NicksSeenParams{}
	for who := range wanted {
		if who.id != "" {
			p.SessionKeys, p.People = append(p.SessionKeys, string(who.key)), append(p.People, string(who.id))
		}
	}
	if len(p.People) == 0 {
		return nil
	}
	rows, err := s.Q.NicksSeen(ctx, s.Pool, p)
	if err != nil {
		return err
	}
	for _, row := range rows {
		wanted[person{row.SessionKey, row.SenderID}] = row.SenderNick
	}
	for i := range memories {
		m := &memories[i]
		m.SaidByNick, m.SubjectNick = wanted[person{in(*m), m.SaidBy}], wanted[person{in(*m), m.SubjectID}]
	}
	return nil
}
