package facts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/identity"
	"ebb/sql/pg"
)

// Store keeps facts.
type Store struct {
	db         *pg.DB
	identities *identity.Store
	reader     *Reader
}

// New returns the facts of a database.
func New(db *pg.DB, identities *identity.Store, reader *Reader) *Store {
	return &Store{db: db, identities: identities, reader: reader}
}

// Save implements memory.Facts.
func (s *Store) Save(ctx context.Context, l sessions.Lease, drafts []memory.Draft) (memory.Receipt, error) {
	var receipt memory.Receipt
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, row *dbsqlc.Session) (err error) {
		k := keeper{db: s.db, tx: tx, source: l.Key, robot: row.RobotCode, strict: true, turn: row.LastTurn + 1}
		receipt, err = k.keep(ctx, drafts)
		return err
	})
	if err != nil {
		return memory.Receipt{}, fmt.Errorf("saving %d facts: %w", len(drafts), pg.AsRefused(err))
	}
	return receipt, nil
}

// Pass implements memory.Facts. The stops of a turn have a turn of their own behind it.
func (s *Store) Pass(ctx context.Context, l sessions.Lease, people []sessions.UserID) error {
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, row *dbsqlc.Session) error {
		from, to := row.LastTurn+1, row.LastTurn+3
		return s.db.Q.MemoriesPass(ctx, tx, &dbsqlc.MemoriesPassParams{SourceSession: l.Key, People: pg.Texts(people), FromTurn: &from, ToTurn: &to})
	})
	if err != nil {
		return fmt.Errorf("passing facts of %d people on: %w", len(people), err)
	}
	return nil
}
