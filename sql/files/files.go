package files

import (
	"context"
	"fmt"
	"slices"
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

// KeepFile stores a file whose pages the session has, under the lease. A content that the session keeps is kept once. One of the same name
// and another content replaces the older one. [sessions.ErrManyFiles] and [sessions.ErrManyPages] refuse a further one.
func (s *Store) KeepFile(ctx context.Context, l sessions.Lease, f sessions.KeptFile) (kept sessions.Keeping, err error) {
	f.Name = pg.Clean(f.Name)
	err = s.db.WithLease(ctx, l, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		rows, err := s.db.Q.Files(ctx, tx, l.Key)
		if err != nil {
			return err
		}
		if at := slices.IndexFunc(rows, func(r dbsqlc.File) bool { return r.MediaID == f.Media }); at >= 0 {
			kept = sessions.Keeping{KeptFile: convert.KeptFile(&rows[at]), Known: true}
			return nil
		}
		old := slices.IndexFunc(rows, func(r dbsqlc.File) bool { return strings.EqualFold(r.Name, f.Name) })
		if err := refuse(rows, old, f); err != nil {
			return err
		}
		row, err := s.store(ctx, tx, l.Key, f, rows, old)
		if err != nil {
			return err
		}
		kept = sessions.Keeping{KeptFile: convert.KeptFile(&row), Replaced: old >= 0}
		if err := s.db.Q.FilesCount(ctx, tx, l.Key); err != nil {
			return err
		}
		return s.indexPages(ctx, tx, kept.KeptFile)
	})
	if err != nil {
		return kept, fmt.Errorf("keeping a file: %w", pg.AsRefused(err))
	}
	return kept, nil
}

// refuse counts without the older version.
func refuse(rows []dbsqlc.File, old int, f sessions.KeptFile) error {
	pages := f.Pages
	for i := range rows {
		if i != old {
			pages += rows[i].Pages
		}
	}
	switch {
	case old < 0 && len(rows) >= sessions.MaxFiles:
		return sessions.ErrManyFiles
	case pages > sessions.MaxFilePages:
		return sessions.ErrManyPages
	}
	return nil
}

func (s *Store) store(ctx context.Context, tx pgx.Tx, key sessions.Key, f sessions.KeptFile, rows []dbsqlc.File, old int) (dbsqlc.File, error) {
	sentBy, keptBy := pg.Clean(string(f.SentBy)), pg.Clean(string(f.KeptBy))
	if old < 0 {
		return s.db.Q.FileAdd(ctx, tx, &dbsqlc.FileAddParams{
			SessionKey: key, Name: f.Name, Kind: string(f.Kind), MediaID: f.Media, Bytes: f.Bytes, Pages: f.Pages,
			SentBy: sentBy, KeptBy: keptBy, EventID: f.Event, KeptEvent: f.KeptFrom,
		})
	}
	row, err := s.db.Q.FileReplace(ctx, tx, &dbsqlc.FileReplaceParams{
		SessionKey: key, ID: rows[old].ID, Name: f.Name, Kind: string(f.Kind), MediaID: f.Media, Bytes: f.Bytes, Pages: f.Pages,
		SentBy: sentBy, KeptBy: keptBy, EventID: f.Event, KeptEvent: f.KeptFrom,
	})
	if err == nil {
		err = media.Sweep(ctx, tx, s.db.Q, key)
	}
	return row, err
}

// pagesAtOnce bounds the pages of one batch.
const pagesAtOnce = 100

func (s *Store) indexPages(ctx context.Context, tx pgx.Tx, f sessions.KeptFile) error {
	for from := 1; from <= f.Pages; from += pagesAtOnce {
		rows, err := s.db.Q.DocumentPages(ctx, tx, &dbsqlc.DocumentPagesParams{
			SessionKey: f.Key, MediaID: f.Media, FirstPage: from, LastPage: from + pagesAtOnce - 1,
		})
		if err != nil {
			return err
		}
		set := make([]*dbsqlc.FileTermsSetParams, len(rows))
		for i, r := range rows {
			set[i] = &dbsqlc.FileTermsSetParams{SessionKey: f.Key, MediaID: f.Media, Page: r.Page, Terms: Terms(f.Key, f.Name, r.Title, r.Body)}
		}
		if len(set) > 0 {
			if err := pg.Done(s.db.Q.FileTermsSet(ctx, tx, set).Exec); err != nil {
				return err
			}
		}
	}
	return nil
}

// partChars is the size of a part of a page: a longer text would not be indexed whole.
const partChars = 250

// Terms are the search terms of a page: of the name of its file, its title, and all of its text.
func Terms(key sessions.Key, name, title, body string) []int64 {
	scope := Scope(key)
	terms := rank.Keys(scope, name+"\n"+title)
	for rs := []rune(body); len(rs) > 0; {
		n := min(partChars, len(rs))
		terms = append(terms, rank.Keys(scope, string(rs[:n]))...)
		if n < len(rs) {
			n-- // the pair at the border
		}
		rs = rs[n:]
	}
	return terms
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
