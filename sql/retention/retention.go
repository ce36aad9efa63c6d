package retention

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/identity"
	"ebb/sql/index"
	"ebb/sql/media"
	"ebb/sql/pg"
)

const (
	// batch is the number of rows of one transaction.
	batch = 500
	// Each memory is searched in views, so its batch is smaller.
	memoryBatch = 100
	// The writer of a turn counts on rows of people for an hour: a row may be as much older than the newest message of its person.
	// Retention does not end its lease.
	peopleRest = 2 * time.Hour
	// Longer turns than maxTurn events are deleted before their end.
	maxTurn = 16 * batch
)

// Store implements the deletions of [sessions.Expiry].
type Store struct {
	db         *pg.DB
	identities *identity.Store
	logs       *index.Logs
}

// New returns the retention of a database.
func New(db *pg.DB, identities *identity.Store, logs *index.Logs) *Store {
	return &Store{db, identities, logs}
}

// ExpiredSessions implements sessions.Expiry. The first page also has logs without a session, before all others.
func (s *Store) ExpiredSessions(ctx context.Context, period time.Duration, after sessions.Key, limit int) ([]sessions.Key, error) {
	keys, err := s.db.Q.ExpiredSessions(ctx, s.db.Pool, &dbsqlc.ExpiredSessionsParams{
		AfterKey: string(after), PeriodSeconds: period.Seconds(), MaxRows: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing sessions with expired events: %w", err)
	}
	if after != "" {
		return keys, nil
	}
	logs, err := s.db.Q.ExpiredLogs(ctx, s.db.Pool, pg.Clamp(limit))
	if err != nil {
		return nil, fmt.Errorf("listing logs without a session: %w", err)
	}
	return append(logs, keys...), nil
}

// ExpireEvents implements sessions.Expiry.
func (s *Store) ExpireEvents(ctx context.Context, key sessions.Key, period time.Duration) (int, error) {
	var n int
	err := s.db.WithSession(ctx, key, func(tx pgx.Tx, row *dbsqlc.Session) error {
		n = 0
		if err := s.db.Q.ExpiryDebt(ctx, tx, &dbsqlc.ExpiryDebtParams{SessionKey: key, PeriodSeconds: period.Seconds(), Reason: sessions.ExpiryReason}); err != nil {
			return err
		}
		last, err := s.lastExpired(ctx, tx, key, period)
		if err != nil || last.seq == 0 {
			return err
		}
		n, err = s.expire(ctx, tx, row, last)
		return err
	})
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		return 0, fmt.Errorf("deleting expired events: %w", err)
	}
	return n, nil
}

// place is the last event of a batch. The id covers rows without a place that arrived before it.
type place struct{ seq, id int64 }

// A view may begin after the place. Answers of a turn that exceed a batch go in parts.
func (s *Store) lastExpired(ctx context.Context, tx pgx.Tx, key sessions.Key, period time.Duration) (place, error) {
	for limit := batch; limit <= maxTurn; limit *= 4 {
		rows, err := s.db.Q.EventsOldest(ctx, tx, &dbsqlc.EventsOldestParams{
			SessionKey: key, PeriodSeconds: period.Seconds(), MaxRows: pg.Clamp(limit),
		})
		if err != nil {
			return place{}, err
		}
		n := wholeTurns(rows, len(rows) < limit)
		if n == 0 && limit == maxTurn && len(rows) == limit && rows[limit-1].Expired {
			n = limit
		}
		if n > batch {
			n = partOfTurn(rows[:n])
		}
		if n > 0 {
			last := place{seq: rows[n-1].Seq}
			for _, r := range rows[:n] {
				last.id = max(last.id, r.ID)
			}
			if n == len(rows) && len(rows) < limit {
				last.id = math.MaxInt64
			}
			return last, nil
		}
		if len(rows) < limit || !rows[len(rows)-1].Expired {
			break
		}
	}
	return place{}, nil
}

// wholeTurns counts expired events up to where a view may begin. ends reports that the log ends with the rows.
func wholeTurns(rows []dbsqlc.EventsOldestRow, ends bool) int {
	n := 0
	for n < len(rows) && rows[n].Expired {
		n++
	}
	if n == len(rows) {
		if ends {
			return n
		}
		n--
	}
	for ; n > 0; n-- {
		if parts(&rows[n-1], &rows[n]) {
			return n
		}
	}
	return 0
}

// A view may begin before each member's message, and between the answers of two turns. Messages that one turn answers
// expire at different times. All its answers have the time of its commit.
func parts(before, after *dbsqlc.EventsOldestRow) bool {
	return after.Role == sessions.RoleUser || before.Role != sessions.RoleUser && after.Role != sessions.RoleTool && !after.CreatedAt.Equal(before.CreatedAt)
}

// partOfTurn keeps results with their call, unless the results of one call exceed a batch.
func partOfTurn(rows []dbsqlc.EventsOldestRow) int {
	for n := batch; n > 0; n-- {
		if rows[n].Role != sessions.RoleTool {
			return n
		}
	}
	return batch
}

// expire also deletes the rows that refer to the events alone.
func (s *Store) expire(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, last place) (int, error) {
	key := row.SessionKey
	before, err := s.db.Q.ViewTokens(ctx, tx, &dbsqlc.ViewTokensParams{SessionKey: key, AfterSeq: row.CompactedSeq})
	if err != nil {
		return 0, err
	}
	n, err := s.db.Q.EventsExpire(ctx, tx, &dbsqlc.EventsExpireParams{SessionKey: key, ThroughSeq: last.seq, ThroughID: last.id, Erased: sessions.ErasedText})
	if err != nil {
		return 0, err
	}
	if err := s.logs.Expire(ctx, tx, key, last.seq); err != nil {
		return 0, err
	}
	if err := s.trimPeople(ctx, tx, key); err != nil {
		return 0, err
	}
	if err := s.db.Q.CompactionsDropUndo(ctx, tx, &dbsqlc.CompactionsDropUndoParams{SessionKey: key, ThroughSeq: last.seq}); err != nil {
		return 0, err
	}
	base, err := s.db.Q.SummariesExpire(ctx, tx, &dbsqlc.SummariesExpireParams{SessionKey: key, ThroughSeq: last.seq, Erased: sessions.ErasedText})
	if err != nil {
		return 0, err
	}
	start := max(row.CompactedSeq, last.seq)
	if last.seq > row.CompactedSeq {
		base = last.seq
	}
	if _, err := s.db.Q.BlobsSweep(ctx, tx, &dbsqlc.BlobsSweepParams{SessionKey: key, AfterSeq: start}); err != nil {
		return 0, err
	}
	if err := media.Sweep(ctx, tx, s.db.Q, key); err != nil {
		return 0, err
	}
	if base == 0 {
		return int(n), nil // a summary in the view covers the deleted events and later ones
	}
	after, err := s.db.Q.ViewTokens(ctx, tx, &dbsqlc.ViewTokensParams{SessionKey: key, AfterSeq: start})
	if err != nil {
		return 0, err
	}
	if err := s.db.Q.JobDelete(ctx, tx, key); err != nil {
		return 0, err
	}
	return int(n), s.db.Q.SessionExpired(ctx, tx, &dbsqlc.SessionExpiredParams{SessionKey: key, ThroughSeq: base, Freed: before - after})
}

// trimPeople removes the names that the log no longer has. It reads only the first hours of the rest of the log. A person who was seen
// later may have spoken later, and goes with a later batch.
func (s *Store) trimPeople(ctx context.Context, tx pgx.Tx, key sessions.Key) error {
	begin, err := s.db.Q.LogBegin(ctx, tx, key)
	if err != nil {
		return err
	}
	seen := begin.Add(peopleRest)
	if rested := s.db.Clock.Now().Add(-peopleRest); rested.Before(seen) {
		seen = rested
	}
	return s.db.Q.PeopleTrim(ctx, tx, &dbsqlc.PeopleTrimParams{SessionKey: key, SeenBefore: seen, SaidBefore: seen.Add(peopleRest)})
}

// ExpireMemories implements sessions.Expiry. The texts leave the heads of views, and undo data, with their rows.
func (s *Store) ExpireMemories(ctx context.Context, period time.Duration) (int, error) {
	var gone []string
	err := s.db.InTx(ctx, func(tx pgx.Tx) error {
		gone = nil
		old, err := s.db.Q.MemoriesUnseen(ctx, tx, &dbsqlc.MemoriesUnseenParams{PeriodSeconds: period.Seconds(), MaxRows: memoryBatch})
		if err != nil || len(old) == 0 {
			return err
		}
		readers, err := s.identities.Readers(ctx, tx, old)
		if err != nil {
			return err
		}
		rows, err := s.db.Q.MemoriesExpireUnseen(ctx, tx, &dbsqlc.MemoriesExpireUnseenParams{Ids: old, PeriodSeconds: period.Seconds()})
		if err != nil || len(rows) == 0 {
			return err
		}
		places := make([]pg.Gone, len(rows))
		for i, r := range rows {
			places[i], gone = pg.Gone(r), append(gone, r.Content)
		}
		if err := s.db.ExpireVectors(ctx, tx, places); err != nil {
			return err
		}
		// A view that pinned a deleted fact before is seen, and none can pin one later.
		keys, err := s.db.Q.ReadersToLock(ctx, tx, &dbsqlc.ReadersToLockParams{SessionKeys: readers, Facts: gone})
		if err == nil {
			err = s.db.LockSessions(ctx, tx, keys)
		}
		if err != nil || len(keys) == 0 {
			return err
		}
		locked := make([]string, len(keys))
		for i, key := range keys {
			locked[i] = string(key)
		}
		if err := s.db.Q.PinnedErase(ctx, tx, &dbsqlc.PinnedEraseParams{SessionKeys: locked, Facts: gone}); err != nil {
			return err
		}
		return s.db.Q.PinnedBeforeErase(ctx, tx, &dbsqlc.PinnedBeforeEraseParams{SessionKeys: locked, Facts: gone})
	})
	if err != nil {
		return 0, fmt.Errorf("deleting expired memories: %w", err)
	}
	return len(gone), nil
}

// ExpireCompactions implements sessions.Expiry.
func (s *Store) ExpireCompactions(ctx context.Context, period time.Duration) (int, error) {
	n, err := s.db.Q.CompactionsExpire(ctx, s.db.Pool, &dbsqlc.CompactionsExpireParams{PeriodSeconds: period.Seconds(), MaxRows: batch})
	return deleted("rows of the compaction log", n, err)
}

// ExpireReplies implements sessions.Expiry.
func (s *Store) ExpireReplies(ctx context.Context, period time.Duration) (int, error) {
	n, err := s.db.Q.RepliesExpire(ctx, s.db.Pool, &dbsqlc.RepliesExpireParams{PeriodSeconds: period.Seconds(), MaxRows: batch})
	return deleted("replies", n, err)
}

// ExpireSentFiles implements sessions.Expiry.
func (s *Store) ExpireSentFiles(ctx context.Context, period time.Duration) (int, error) {
	n, err := s.db.Q.SentFilesExpire(ctx, s.db.Pool, &dbsqlc.SentFilesExpireParams{PeriodSeconds: period.Seconds(), MaxRows: batch})
	return deleted("files of replies", n, err)
}

// ExpireSchedules implements sessions.Expiry.
func (s *Store) ExpireSchedules(ctx context.Context, period time.Duration) (int, error) {
	n, err := s.db.Q.SchedulesExpire(ctx, s.db.Pool, &dbsqlc.SchedulesExpireParams{PeriodSeconds: period.Seconds(), MaxRows: batch})
	return deleted("schedules", n, err)
}

// ExpireApprovals implements sessions.Expiry.
func (s *Store) ExpireApprovals(ctx context.Context, period time.Duration) (int, error) {
	n, err := s.db.Q.ApprovalsExpire(ctx, s.db.Pool, &dbsqlc.ApprovalsExpireParams{PeriodSeconds: period.Seconds(), MaxRows: batch})
	if err == nil && n < batch {
		err = s.db.Q.ApprovalsStrip(ctx, s.db.Pool, period.Seconds())
	}
	return deleted("approvals", n, err)
}

// ExpirePictures implements sessions.Expiry.
func (s *Store) ExpirePictures(ctx context.Context, period time.Duration) (int, error) {
	n, err := s.db.Q.PicturesExpire(ctx, s.db.Pool, &dbsqlc.PicturesExpireParams{PeriodSeconds: period.Seconds(), MaxRows: batch})
	return deleted("pictures", n, err)
}

// ExpireActions implements sessions.Expiry.
func (s *Store) ExpireActions(ctx context.Context, period time.Duration) (int, error) {
	n, err := s.db.Q.ActionsExpire(ctx, s.db.Pool, &dbsqlc.ActionsExpireParams{PeriodSeconds: period.Seconds(), MaxRows: batch})
	return deleted("rows of the audit", n, err)
}

func deleted(rows string, n int64, err error) (int, error) {
	if err != nil {
		return 0, fmt.Errorf("deleting expired %s: %w", rows, err)
	}
	return int(n), nil
}
