package files

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ebb/memory/rank"
	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/identity"
	"ebb/sql/media"
	"ebb/sql/pg"
)

// Store keeps files.
type Store struct {
	db     *pg.DB
	people *identity.Store
}

// New returns the kept files of a database.
func New(db *pg.DB, people *identity.Store) *Store { return &Store{db, people} }

// Scope is the hash scope of the terms of a session's kept pages.
func Scope(key sessions.Key) rank.Scope { return rank.ScopeOf("file", string(key)) }

// Files lists the kept files of a session, the newest first.
func (s *Store) Files(ctx context.Context, key sessions.Key) ([]sessions.KeptFile, error) {
	rows, err := s.db.Q.Files(ctx, s.db.Pool, key)
	if err != nil {
		return nil, fmt.Errorf("listing kept files: %w", err)
	}
	list := make([]sessions.KeptFile, len(rows))
	nicks := map[identity.Speaker]string{}
	for i := range rows {
		list[i] = convert.KeptFile(&rows[i])
		if by := list[i].KeptBy; by != "" {
			nicks[identity.Speaker{Key: key, ID: by}] = ""
		}
	}
	if len(nicks) == 0 {
		return list, nil
	}
	if err := s.people.Nicks(ctx, nicks); err != nil {
		return nil, fmt.Errorf("naming the keepers of files: %w", err)
	}
	for i := range list {
		list[i].Keeper = nicks[identity.Speaker{Key: key, ID: list[i].KeptBy}]
	}
	return list, nil
}

// ForgetFile deletes a kept file with its pages, and takes them from the messages that brought it.
func (s *Store) ForgetFile(ctx context.Context, key sessions.Key, id int64) error {
	err := s.db.WithSession(ctx, key, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		if err := s.db.Q.FileMessagesForget(ctx, tx, &dbsqlc.FileMessagesForgetParams{SessionKey: key, ID: id}); err != nil {
			return err
		}
		n, err := s.db.Q.FileDelete(ctx, tx, &dbsqlc.FileDeleteParams{SessionKey: key, ID: id})
		if err := pg.Require(n, err, sessions.ErrNotFound); err != nil {
			return err
		}
		return media.Sweep(ctx, tx, s.db.Q, key)
	})
	if err != nil {
		return fmt.Errorf("forgetting kept file %d: %w", id, err)
	}
	return nil
}
