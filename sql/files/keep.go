package files

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ebb/memory/rank"
	"ebb/memory/text"
	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/media"
	"ebb/sql/pg"
)

// maxRounds bounds the indexing of a file whose terms a sweep of its session deletes meanwhile.
const maxRounds = 3

var errSwept = errors.New("the terms of its pages are deleted again and again")

// KeepFile stores a file whose pages the session has, under the lease. A content that the session keeps is kept once. One of the same name
// and another content replaces the older one. [sessions.ErrManyFiles] and [sessions.ErrManyPages] refuse a further one,
// [sessions.ErrOthersFile] the replacement of a file that may does not allow: that one is returned.
//
// The pages are indexed in short transactions before the one that makes the file visible. A process that dies between them leaves terms of
// pages of no file, which no search finds. The next sweep of the session deletes them.
func (s *Store) KeepFile(ctx context.Context, l sessions.Lease, f sessions.KeptFile, may sessions.FileRights) (kept sessions.Keeping, err error) {
	f.Name = pg.Clean(f.Name)
	if kept, err = s.keep(ctx, l, f, may); err != nil {
		return kept, fmt.Errorf("keeping a file: %w", pg.AsRefused(err))
	}
	return kept, nil
}

func (s *Store) keep(ctx context.Context, l sessions.Lease, f sessions.KeptFile, may sessions.FileRights) (kept sessions.Keeping, err error) {
	rows, err := s.db.Q.Files(ctx, s.db.Pool, l.Key)
	if err != nil {
		return kept, err
	}
	if kept, _, err = place(rows, f, may); kept.Known || err != nil {
		return kept, err
	}
	for range maxRounds {
		if err := s.indexPages(ctx, l, f); err != nil {
			return sessions.Keeping{}, err
		}
		if kept, err = s.commit(ctx, l, f, may); !errors.Is(err, errSwept) {
			return kept, err
		}
	}
	return sessions.Keeping{}, errSwept
}

// place finds a file's place among the kept ones: the row that it replaces, or -1. A content that is kept has none.
func place(rows []dbsqlc.File, f sessions.KeptFile, may sessions.FileRights) (kept sessions.Keeping, old int, err error) {
	if at := slices.IndexFunc(rows, func(r dbsqlc.File) bool { return r.MediaID == f.Media }); at >= 0 {
		return sessions.Keeping{KeptFile: convert.KeptFile(&rows[at]), Known: true}, -1, nil
	}
	name := text.Fold(f.Name)
	old = slices.IndexFunc(rows, func(r dbsqlc.File) bool { return text.Fold(r.Name) == name })
	if old >= 0 {
		if older := convert.KeptFile(&rows[old]); !may.Allow(older) {
			return sessions.Keeping{KeptFile: older}, old, sessions.ErrOthersFile
		}
	}
	return kept, old, refuse(rows, old, f)
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

// commit makes a file with indexed pages visible. It returns [sessions.ErrNotFound] after an erasure of the message that brought it.
func (s *Store) commit(ctx context.Context, l sessions.Lease, f sessions.KeptFile, may sessions.FileRights) (kept sessions.Keeping, err error) {
	err = s.db.WithLease(ctx, l, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		rows, err := s.db.Q.Files(ctx, tx, l.Key)
		if err != nil {
			return err
		}
		var old int
		if kept, old, err = place(rows, f, may); kept.Known || err != nil {
			return err
		}
		state, err := s.db.Q.FileReady(ctx, tx, &dbsqlc.FileReadyParams{SessionKey: l.Key, MediaID: f.Media})
		switch {
		case err != nil:
			return err
		case !state.Attached:
			return sessions.ErrNotFound
		case state.Unindexed:
			return errSwept
		}
		row, err := s.store(ctx, tx, l.Key, f, rows, old)
		if err != nil {
			return err
		}
		kept = sessions.Keeping{KeptFile: convert.KeptFile(&row), Replaced: old >= 0}
		return s.db.Q.FilesCount(ctx, tx, l.Key)
	})
	return kept, err
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

// pagesAtOnce bounds the pages of one transaction. Messages of the session wait for its lock.
const pagesAtOnce = 100

func (s *Store) indexPages(ctx context.Context, l sessions.Lease, f sessions.KeptFile) error {
	for from := 1; from <= f.Pages; from += pagesAtOnce {
		rows, err := s.db.Q.DocumentPages(ctx, s.db.Pool, &dbsqlc.DocumentPagesParams{
			SessionKey: l.Key, MediaID: f.Media, FirstPage: from, LastPage: from + pagesAtOnce - 1,
		})
		if err != nil {
			return err
		}
		set := make([]*dbsqlc.FileTermsSetParams, len(rows))
		for i, r := range rows {
			set[i] = &dbsqlc.FileTermsSetParams{SessionKey: l.Key, MediaID: f.Media, Page: r.Page, Terms: Terms(l.Key, f.Name, r.Title, r.Body)}
		}
		if len(set) == 0 {
			continue
		}
		if err := s.db.WithLease(ctx, l, func(tx pgx.Tx, _ *dbsqlc.Session) error {
			return pg.Done(s.db.Q.FileTermsSet(ctx, tx, set).Exec)
		}); err != nil {
			return err
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
