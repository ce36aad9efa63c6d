package sql

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// Pinned implements memory.Store.
func (s *factStore) Pinned(ctx context.Context, r memory.Reader, limit int) ([]memory.Memory, error) {
	memories, err := s.readable(ctx, r, 0, limit)
	if err == nil {
		err = s.identities.nameIn(ctx, r.Key, memories)
	}
	if err != nil {
		return nil, fmt.Errorf("listing memories for session %s: %w", r.Key, err)
	}
	return memories, nil
}

// Memory returns one memory in force that the reader may see, or sessions.ErrNotFound.
func (s *factStore) Memory(ctx context.Context, r memory.Reader, id int64) (memory.Memory, error) {
	memories, err := s.readable(ctx, r, id, 1)
	if err == nil && len(memories) == 0 {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return memory.Memory{}, fmt.Errorf("reading memory %d for session %s: %w", id, r.Key, err)
	}
	return memories[0], nil
}

// readable lists what a reader may see, newest first, each fact once: the same fact may have been learnt in a private
// chat and in a group.
func (s *factStore) readable(ctx context.Context, r memory.Reader, id int64, limit int) ([]memory.Memory, error) {
	rows, err := s.readableRows(ctx, r, nil, id, limit)
	if err != nil {
		return nil, err
	}
	memories := make([]memory.Memory, 0, len(rows))
	for i := range rows {
		memories = append(memories, readMemory(&rows[i]))
	}
	return memories, nil
}

// readableRows is the same with all that a search asks. It reads what was found, and what has no terms yet; nil: all.
func (s *factStore) readableRows(
	ctx context.Context, r memory.Reader, found []int64, id int64, limit int,
) ([]dbsqlc.MemoriesReadableRow, error) {
	users, err := s.identities.idsOf(ctx, s.pool, r.Robot, r.Users...)
	if err != nil {
		return nil, err
	}
	rows, err := s.q.MemoriesReadable(ctx, planned{s.pool}, &dbsqlc.MemoriesReadableParams{
		TeamID: string(r.Robot), GroupID: memory.GroupID(r.Robot, r.Conversation), SessionKey: string(r.Key),
		UserIds: users, Private: r.Private, RobotSessions: robotSessions(r.Robot), Search: found != nil,
		Found: append([]int64{}, found...), ID: id, MaxRows: count(limit),
	})
	if err != nil {
		return nil, err
	}
	if found == nil { // they come by fair shares
		slices.SortFunc(rows, func(x, y dbsqlc.MemoriesReadableRow) int { return cmp.Compare(y.ID, x.ID) })
	}
	kept := rows[:0]
	seen := make(map[string][]sessions.UserID, len(rows)) // whom a fact is told of, newest first
	for i := range rows {
		fact, who := normal(rows[i].Content), rows[i].SubjectID
		// Two people may have said the same words of themselves; of whom nobody knows it may be anybody.
		known := seen[fact]
		if len(known) > 0 && (who == "" || slices.Contains(known, who) || slices.Contains(known, "")) {
			continue
		}
		seen[fact] = append(known, who)
		kept = append(kept, rows[i])
	}
	return kept, nil
}

func readMemory(r *dbsqlc.MemoriesReadableRow) memory.Memory {
	return memory.Memory{
		ID: r.ID, Scope: r.Scope, ScopeID: r.ScopeID, Kind: r.Kind, Content: r.Content, Key: r.FactKey,
		SubjectID: r.SubjectID, SaidBy: r.SaidBy, SaidAt: orZero(r.SaidAt), SourceGroup: r.SourceGroup,
		SourceSession: r.SourceSession, StartSeq: r.StartSeq, EndSeq: r.EndSeq,
		SupersededBy: orZero(r.SupersededBy), SupersededAt: orZero(r.SupersededAt), ExpiresAt: orZero(r.ExpiresAt),
		LastSeenAt: r.LastSeenAt, Seen: r.Seen, PromotedBy: r.PromotedBy, CreatedAt: r.CreatedAt,
	}
}

// memoryPath is where memory_get finds a memory: memory/<scope>/<day>.md#<id>, the day as it was where the group is.
func (s *factStore) memoryPath(m memory.Memory) string {
	return fmt.Sprintf("memory/%s/%s.md#%d", m.Scope, m.CreatedAt.In(s.loc).Format(time.DateOnly), m.ID)
}

// eventPath is where memory_get finds an event of the reader's session: session_events/<seq>.
func eventPath(seq int64) string { return fmt.Sprintf("session_events/%d", seq) }
