package files

import (
	"context"
	"fmt"
	"strings"

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

// Page returns a page of a file, with its title before its text. It is [sessions.ErrNotFound] for one that is gone.
func (s *Store) Page(ctx context.Context, key sessions.Key, page sessions.PageID) (string, error) {
	rows, err := s.db.Q.DocumentPages(ctx, s.db.Pool, &dbsqlc.DocumentPagesParams{
		SessionKey: key, MediaID: page.Media, FirstPage: pg.Clamp(page.Number), LastPage: pg.Clamp(page.Number),
	})
	if err != nil {
		return "", fmt.Errorf("reading page %d of a kept file: %w", page.Number, err)
	}
	if len(rows) == 0 {
		return "", sessions.ErrNotFound
	}
	return strings.TrimSpace(rows[0].Title + "\n" + rows[0].Body), nil
}

// WithholdPages marks pages that a model refuses. Searches for the model leave them out.
func (s *Store) WithholdPages(ctx context.Context, key sessions.Key, w sessions.Withholding) error {
	mark, err := pg.CleanJSON(sessions.Withheld{w.Model: w.Mark(sessions.WithheldBody)})
	if err != nil {
		return err
	}
	p := &dbsqlc.FilePagesWithholdParams{SessionKey: key, Mark: mark}
	for _, page := range w.Pages {
		p.MediaIds, p.Numbers = append(p.MediaIds, page.Media), append(p.Numbers, page.Number)
	}
	if err := s.db.Q.FilePagesWithhold(ctx, s.db.Pool, p); err != nil {
		return fmt.Errorf("withholding pages from a model: %w", err)
	}
	return nil
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
