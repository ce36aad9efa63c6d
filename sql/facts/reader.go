package facts

import (
	"cmp"
	"context"
	"ebb/memory/text"
	"fmt"
	"slices"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/identity"
	"ebb/sql/pg"
)

// Reader lists the memories that a reader may see.
type Reader struct {
	*pg.DB
	identities *identity.Store
	loc        *time.Location // of the days in the paths of memories
}

// NewReader returns a Reader that names days in a time zone.
func NewReader(db *pg.DB, identities *identity.Store, loc *time.Location) *Reader {
	return &Reader{DB: db, identities: identities, loc: loc}
}

// List lists what a reader may see, newest first, each fact once: the same fact may have been learnt in a private
// chat and in a group.
func (s *Reader) List(ctx context.Context, r memory.Reader, id int64, limit int) ([]memory.Memory, error) {
	rows, err := s.Rows(ctx, r, nil, id, limit)
	if err != nil {
		return nil, err
	}
	memories := make([]memory.Memory, 0, len(rows))
	for i := range rows {
		memories = append(memories, FromRow(&rows[i]))
	}
	return memories, nil
}

// Rows is the same with all that a search asks. It reads what was found, and what has no terms yet; nil: all.
func (s *Reader) Rows(
	ctx context.Context, r memory.Reader, found []int64, id int64, limit int,
) ([]dbsqlc.MemoriesReadableRow, error) {
	users, err := s.identities.IDs(ctx, s.Pool, r.Robot, r.Users...)
	if err != nil {
		return nil, err
	}
	rows, err := s.Q.MemoriesReadable(ctx, s.Replanned(), &dbsqlc.MemoriesReadableParams{
		TeamID: string(r.Robot), GroupID: memory.GroupID(r.Robot, r.Conversation), SessionKey: string(r.Key),
		UserIds: users, Private: r.Private, RobotSessions: pg.SessionPrefix(r.Robot), Search: found != nil,
		Found: append([]int64{}, found...), ID: id, MaxRows: pg.Clamp(limit),
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
		fact, who := text.Normalize(rows[i].Content), rows[i].SubjectID
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

// FromRow converts a row of a fact that a reader may see.
func FromRow(r *dbsqlc.MemoriesReadableRow) memory.Memory {
	return memory.Memory{
		ID: r.ID, Scope: r.Scope, ScopeID: r.ScopeID, Kind: r.Kind, Content: r.Content, Key: r.FactKey,
		SubjectID: r.SubjectID, SaidBy: r.SaidBy, SaidAt: pg.OrZero(r.SaidAt), SourceGroup: r.SourceGroup,
		SourceSession: r.SourceSession, StartSeq: r.StartSeq, EndSeq: r.EndSeq,
		SupersededBy: pg.OrZero(r.SupersededBy), SupersededAt: pg.OrZero(r.SupersededAt), ExpiresAt: pg.OrZero(r.ExpiresAt),
		LastSeenAt: r.LastSeenAt, Seen: r.Seen, PromotedBy: r.PromotedBy, CreatedAt: r.CreatedAt,
	}
}

// Path is where memory_get finds a memory: memory/<scope>/<day>.md#<id>, the day as it was where the group is.
func (s *Reader) Path(m memory.Memory) string {
	return fmt.Sprintf("memory/%s/%s.md#%d", m.Scope, m.CreatedAt.In(s.loc).Format(time.DateOnly), m.ID)
}

// EventPath is where memory_get finds an event of the reader's session: session_events/<seq>.
func EventPath(seq int64) string { return fmt.Sprintf("session_events/%d", seq) }
