package facts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ebb/memory"
	"ebb/memory/text"
	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/identity"
	"ebb/sql/pg"
)

// Reader lists the memories that a reader may see.
type Reader struct {
	db         *pg.DB
	identities *identity.Store
	loc        *time.Location // for the days in paths of memories
}

// NewReader returns a Reader that names days in a time zone.
func NewReader(db *pg.DB, identities *identity.Store, loc *time.Location) *Reader {
	return &Reader{db: db, identities: identities, loc: loc}
}

// List lists memories, newest first, each fact once: a private chat and a group may both have it.
func (s *Reader) List(ctx context.Context, r memory.Reader, limit int) ([]memory.Memory, error) {
	rows, err := s.Rows(ctx, r, nil, limit)
	if err != nil {
		return nil, err
	}
	memories := make([]memory.Memory, 0, len(rows))
	for i := range rows {
		memories = append(memories, convert.Memory(&rows[i]))
	}
	return memories, nil
}

// Rows is List with the columns of a search. It reads the found rows and those without terms of this version, or all
// when found is nil.
func (s *Reader) Rows(
	ctx context.Context, r memory.Reader, found []int64, limit int,
) ([]dbsqlc.MemoriesReadableRow, error) {
	users, err := s.identities.IDs(ctx, s.db.Pool, r.Robot, r.Users...)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.Q.MemoriesReadable(ctx, s.db.Replanned(), &dbsqlc.MemoriesReadableParams{
		TeamID: string(r.Robot), GroupID: memory.GroupID(r.Robot, r.Conversation), SessionKey: string(r.Key),
		UserIds: users, Private: r.Private, RobotSessions: pg.SessionPrefix(r.Robot), Search: found != nil,
		Found: append([]int64{}, found...), MaxRows: pg.Clamp(limit), Model: string(r.Reads),
	})
	if err != nil {
		return nil, err
	}
	if found == nil { // rows come by fair shares
		slices.SortFunc(rows, func(x, y dbsqlc.MemoriesReadableRow) int { return cmp.Compare(y.ID, x.ID) })
	}
	kept := rows[:0]
	seen := make(map[string][]sessions.UserID, len(rows)) // by fact, newest first
	for i := range rows {
		fact, who := text.Normalize(rows[i].Content), rows[i].SubjectID
		// Two people may have said the same words of themselves. A fact without a subject may be about any of them.
		known := seen[fact]
		if len(known) > 0 && (who == "" || slices.Contains(known, who) || slices.Contains(known, "")) {
			continue
		}
		seen[fact] = append(known, who)
		kept = append(kept, rows[i])
	}
	return kept, nil
}

// Path is a memory's path for memory_get: memory/<scope>/<day>.md#<id>, with the day in the group's time zone.
func (s *Reader) Path(m memory.Memory) string {
	return fmt.Sprintf("memory/%s/%s.md#%d", m.Scope, m.CreatedAt.In(s.loc).Format(time.DateOnly), m.ID)
}

// EventPath is an event's path for memory_get in the reader's session: session_events/<seq>.
func EventPath(seq int64) string { return fmt.Sprintf("session_events/%d", seq) }
