package facts

import (
	"context"
	"fmt"

	"ebb/memory"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Pinned implements memory.Facts.
func (s *Store) Pinned(ctx context.Context, r memory.Reader, limit int) ([]memory.Memory, error) {
	memories, err := s.reader.List(ctx, r, limit)
	if err == nil {
		err = s.identities.NameIn(ctx, r.Key, memories)
	}
	if err != nil {
		return nil, fmt.Errorf("listing memories: %w", err)
	}
	return memories, nil
}

// Values implements memory.Facts.
func (s *Store) Values(ctx context.Context, r memory.Reader, id int64) ([]memory.Memory, error) {
	users, err := s.identities.IDs(ctx, s.db.Pool, r.Robot, r.Users...)
	if err != nil {
		return nil, fmt.Errorf("reading the values of memory %d: %w", id, err)
	}
	rows, err := s.db.Q.MemoryValues(ctx, s.db.Pool, &dbsqlc.MemoryValuesParams{
		TeamID: string(r.Robot), GroupID: memory.GroupID(r.Robot, r.Conversation), SessionKey: string(r.Key), UserIds: users,
		Private: r.Private, RobotSessions: pg.SessionPrefix(r.Robot), ID: id, Model: string(r.Reads),
	})
	if err != nil {
		return nil, fmt.Errorf("reading the values of memory %d: %w", id, err)
	}
	values := make([]memory.Memory, 0, len(rows))
	for _, row := range rows {
		if row.CorrectedElsewhere {
			row.SupersededBy, row.SupersededAt = nil, nil
		}
		values = append(values, convert.Memory(&dbsqlc.MemoriesReadableRow{
			ID: row.ID, Scope: row.Scope, ScopeID: row.ScopeID, Kind: row.Kind, Content: row.Content, FactKey: row.FactKey,
			SubjectID: row.SubjectID, SaidBy: row.SaidBy, SaidAt: row.SaidAt, SourceGroup: row.SourceGroup,
			SourceSession: row.SourceSession, StartSeq: row.StartSeq, EndSeq: row.EndSeq, SupersededBy: row.SupersededBy,
			SupersededAt: row.SupersededAt, ExpiresAt: row.ExpiresAt, LastSeenAt: row.LastSeenAt, Seen: row.Seen,
			PromotedBy: row.PromotedBy, CreatedAt: row.CreatedAt,
		}))
	}
	if err := s.identities.NameIn(ctx, r.Key, values); err != nil {
		return nil, fmt.Errorf("reading the nicks of memory %d: %w", id, err)
	}
	return values, nil
}
