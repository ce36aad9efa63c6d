package facts

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// An expired fact is kept unread, since it returns when it is said again.
const expiredRest = 30 * 24 * time.Hour

// maxSenderIDs bounds encrypted ids by person and robot, besides those under which rows are stored.
const maxSenderIDs = 10

// The buttons of a settled card work for this time.
const cardsKept = 30 * 24 * time.Hour

// Upkeep consolidates facts, and deletes those that expired.
type Upkeep struct{ db *pg.DB }

// NewUpkeep returns the upkeep of a database's facts.
func NewUpkeep(db *pg.DB) *Upkeep { return &Upkeep{db} }

// DeleteExpired deletes and counts long expired memories. It also deletes old cards, day-old marks of deleted messages, the
// heartbeats of replicas that are dead for a day, surplus encrypted ids without rows, and ended windows of limits. Usage of people
// without messages loses their names.
func (s *Upkeep) DeleteExpired(ctx context.Context) (int, error) {
	n := 0
	if err := s.db.InTx(ctx, func(tx pgx.Tx) error {
		rows, err := s.db.Q.MemoriesExpire(ctx, tx, expiredRest.Seconds())
		if err != nil {
			return err
		}
		gone := make([]pg.Gone, len(rows))
		for i, r := range rows {
			gone[i] = pg.Gone(r)
		}
		n = len(gone)
		return s.db.ExpireVectors(ctx, tx, gone)
	}); err != nil {
		return 0, fmt.Errorf("deleting expired memories: %w", err)
	}
	if err := s.db.Q.CardsExpire(ctx, s.db.Pool, cardsKept.Seconds()); err != nil {
		return 0, fmt.Errorf("deleting settled cards: %w", err)
	}
	if err := s.db.Q.DeletedMessagesExpire(ctx, s.db.Pool); err != nil {
		return 0, fmt.Errorf("deleting the marks of deleted messages: %w", err)
	}
	if err := s.db.Q.ReplicasExpire(ctx, s.db.Pool); err != nil {
		return 0, fmt.Errorf("deleting heartbeats of dead replicas: %w", err)
	}
	if err := s.tidySenderIDs(ctx); err != nil {
		return 0, fmt.Errorf("deleting old sender ids: %w", err)
	}
	if err := s.db.Q.LimitsTrim(ctx, s.db.Pool); err != nil {
		return 0, fmt.Errorf("deleting ended windows of limits: %w", err)
	}
	now := s.db.Clock.Now().UTC()
	today := pgtype.Date{Time: now, Valid: true}
	// The last windows of a day end within an hour after it.
	if err := s.db.Q.LimitsKeysTrim(ctx, s.db.Pool, pgtype.Date{Time: now.Add(-time.Hour), Valid: true}); err != nil {
		return 0, fmt.Errorf("deleting the keys of past days: %w", err)
	}
	if err := s.db.Q.PersonErasuresTrim(ctx, s.db.Pool, today); err != nil {
		return 0, fmt.Errorf("deleting the counts of past erasures: %w", err)
	}
	if err := s.tidyUsage(ctx); err != nil {
		return 0, fmt.Errorf("removing people from usage: %w", err)
	}
	if err := s.tidyConsole(ctx); err != nil {
		return 0, fmt.Errorf("removing people from the records of the console: %w", err)
	}
	return n, nil
}

// Each list of overfull scopes reads the whole table.
const maxOverfull = 200

// OverfullScopes implements memory.Upkeep.
func (s *Upkeep) OverfullScopes(ctx context.Context, limit int, after memory.OverfullScope) ([]memory.OverfullScope, error) {
	if after == (memory.OverfullScope{}) {
		after.Held = math.MaxInt
	}
	rows, err := s.db.Q.MemoriesOverfull(ctx, s.db.Pool, &dbsqlc.MemoriesOverfullParams{
		MaxHeld: pg.Clamp(limit), AfterHeld: int64(after.Held), AfterScope: string(after.Scope), AfterID: after.ScopeID, MaxRows: maxOverfull,
	})
	if err != nil {
		return nil, fmt.Errorf("listing scopes with more than %d memories: %w", limit, err)
	}
	scopes := make([]memory.OverfullScope, 0, len(rows))
	for _, r := range rows {
		scopes = append(scopes, memory.OverfullScope{Scope: r.Scope, ScopeID: r.ScopeID, Held: r.Held})
	}
	return scopes, nil
}

// FactGroups implements memory.Upkeep.
func (s *Upkeep) FactGroups(ctx context.Context, c memory.OverfullScope) ([]memory.FactGroup, error) {
	rows, err := s.db.Q.MemoriesPiles(ctx, s.db.Pool, &dbsqlc.MemoriesPilesParams{Scope: c.Scope, ScopeID: c.ScopeID})
	if err != nil {
		return nil, fmt.Errorf("listing what the memories of %s %s come from: %w", c.Scope, c.ScopeID, err)
	}
	piles := make([]memory.FactGroup, 0, len(rows))
	for _, r := range rows {
		piles = append(piles, memory.FactGroup{
			Scope: c.Scope, ScopeID: c.ScopeID, Session: r.SourceSession, Group: r.SourceGroup, Subject: r.SubjectID, Speaker: r.SaidBy,
			Held: r.Held,
		})
	}
	return piles, nil
}

// Oldest implements memory.Upkeep.
func (s *Upkeep) Oldest(ctx context.Context, p memory.FactGroup, limit int) ([]memory.Memory, error) {
	rows, err := s.db.Q.MemoriesOldest(ctx, s.db.Pool, &dbsqlc.MemoriesOldestParams{
		Scope: p.Scope, ScopeID: p.ScopeID, SourceSession: p.Session, SourceGroup: p.Group, SubjectID: p.Subject,
		SaidBy: p.Speaker, MaxRows: pg.Clamp(limit), Model: string(p.Reads),
	})
	if err != nil {
		return nil, fmt.Errorf("listing the oldest memories of %s %s: %w", p.Scope, p.ScopeID, err)
	}
	memories := make([]memory.Memory, 0, len(rows))
	for _, r := range rows {
		memories = append(memories, memory.Memory{
			ID: r.ID, Scope: r.Scope, ScopeID: r.ScopeID, Kind: r.Kind, Content: r.Content, Key: r.FactKey, SubjectID: r.SubjectID,
			SaidBy: r.SaidBy, SaidAt: pg.OrZero(r.SaidAt), SourceGroup: r.SourceGroup, SourceSession: r.SourceSession,
			StartSeq: r.StartSeq, EndSeq: r.EndSeq, CreatedAt: r.CreatedAt,
		})
	}
	return memories, nil
}

// WithholdFacts implements memory.Upkeep.
func (s *Upkeep) WithholdFacts(ctx context.Context, w sessions.Withholding) error {
	mark, err := pg.CleanJSON(sessions.Withheld{w.Model: w.Mark(sessions.WithheldBody)})
	if err != nil {
		return err
	}
	if err := s.db.Q.MemoriesWithhold(ctx, s.db.Pool, &dbsqlc.MemoriesWithholdParams{Mark: mark, Ids: append([]int64{}, w.Facts...)}); err != nil {
		return fmt.Errorf("withholding facts from a model: %w", err)
	}
	return nil
}

// Consolidate implements memory.Upkeep. The old memories name the first new row as their successor, since
// the model did not map old facts to new ones.
func (s *Upkeep) Consolidate(ctx context.Context, old []memory.Memory, drafts []memory.Draft) (memory.Receipt, error) {
	if len(old) == 0 || len(drafts) == 0 {
		return memory.Receipt{}, nil
	}
	at, ids := old[0], make([]int64, 0, len(old))
	for _, m := range old {
		ids = append(ids, m.ID)
	}
	var receipt memory.Receipt
	err := s.db.InTx(ctx, func(tx pgx.Tx) error {
		// A new memory may have the text of an old one, so the old ones leave force first. Concurrent writers wait
		// for each other.
		none := int64(0)
		supersede := func(by *int64) ([]int64, error) {
			return s.db.Q.MemoriesSupersede(ctx, tx, &dbsqlc.MemoriesSupersedeParams{By: by, Scope: at.Scope, ScopeID: at.ScopeID, Ids: ids})
		}
		gone, err := supersede(&none)
		if err != nil {
			return err
		}
		if len(gone) < len(ids) {
			return fmt.Errorf("a memory is no longer in force: %w", sessions.ErrConflict)
		}
		// The old facts had the same content, so only words are compared.
		k := keeper{db: s.db, tx: tx, source: at.SourceSession, robot: pg.RobotOf(at.SourceSession)}
		for _, d := range drafts {
			d.Content = pg.Clean(d.Content)
			if _, _, err := k.insert(ctx, d, 0); err != nil {
				return err
			}
		}
		receipt = k.receipt
		if err := s.db.Q.MemoriesConsolidated(ctx, tx, &dbsqlc.MemoriesConsolidatedParams{
			Scope: at.Scope, ScopeID: at.ScopeID, Ids: append([]int64{}, receipt.Saved...),
		}); err != nil {
			return err
		}
		receipt.Superseded = ids
		by := slices.Concat(receipt.Saved, receipt.Duplicate)[0]
		return s.db.Q.MemoriesSucceed(ctx, tx, &dbsqlc.MemoriesSucceedParams{
			By: &by, Scope: at.Scope, ScopeID: at.ScopeID, Ids: ids, SourceGroup: at.SourceGroup,
		})
	})
	if err != nil {
		return memory.Receipt{}, fmt.Errorf("consolidating %d memories of %s %s: %w", len(old), at.Scope, at.ScopeID, pg.AsRefused(err))
	}
	return receipt, nil
}
