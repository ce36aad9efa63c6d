package media

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Store keeps attachments.
type Store struct{ db *pg.DB }

// New returns the attachments of a database.
func New(db *pg.DB) *Store { return &Store{db} }

// Attachments lists the known attachments of messages, by event and place, without contents.
func (s *Store) Attachments(ctx context.Context, key sessions.Key, events []int64) ([]sessions.Media, error) {
	rows, err := s.db.Q.Attachments(ctx, s.db.Pool, &dbsqlc.AttachmentsParams{SessionKey: key, Events: events})
	if err != nil {
		return nil, fmt.Errorf("listing attachments: %w", err)
	}
	list := make([]sessions.Media, len(rows))
	for i, r := range rows {
		list[i] = sessions.Media{
			Event: r.EventID, Place: r.Place, Kind: sessions.MediaKind(r.Kind), Name: r.Name, Fault: sessions.MediaFault(r.Fault), ID: r.MediaID,
			Bytes: r.Bytes, Pages: r.Pages, Tokens: r.Tokens,
		}
	}
	return list, nil
}

// Pictures returns those of some pictures that are still kept, by their ids.
func (s *Store) Pictures(ctx context.Context, key sessions.Key, ids []string) (map[string]sessions.Picture, error) {
	rows, err := s.db.Q.Pictures(ctx, s.db.Pool, &dbsqlc.PicturesParams{SessionKey: key, Ids: ids})
	if err != nil {
		return nil, fmt.Errorf("reading pictures: %w", err)
	}
	found := make(map[string]sessions.Picture, len(rows))
	for _, r := range rows {
		found[r.MediaID] = sessions.Picture{Type: r.Type, Body: r.Body}
	}
	return found, nil
}

// Pages returns pages of a document in order, from a number through another one.
func (s *Store) Pages(ctx context.Context, key sessions.Key, id string, from, through int) ([]sessions.MediaPage, error) {
	rows, err := s.db.Q.DocumentPages(ctx, s.db.Pool, &dbsqlc.DocumentPagesParams{
		SessionKey: key, MediaID: id, FirstPage: pg.Clamp(from), LastPage: pg.Clamp(through),
	})
	if err != nil {
		return nil, fmt.Errorf("reading pages of a document: %w", err)
	}
	pages := make([]sessions.MediaPage, len(rows))
	for i, r := range rows {
		pages[i] = sessions.MediaPage{Number: r.Page, Title: r.Title, Text: r.Body}
		if pages[i].Withheld, err = convert.Withheld(r.Withheld); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// pagesAtOnce bounds the pages of one statement.
const pagesAtOnce = 200

// Keep stores an attachment with its picture or its pages, under the lease of the session.
func (s *Store) Keep(ctx context.Context, l sessions.Lease, m sessions.Media, pages []sessions.MediaPage) error {
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		if m.Picture != nil {
			if err := s.db.Q.PictureSet(ctx, tx, &dbsqlc.PictureSetParams{SessionKey: l.Key, MediaID: m.ID, Type: m.Picture.Type, Body: m.Picture.Body}); err != nil {
				return err
			}
		}
		for from := 0; from < len(pages); from += pagesAtOnce {
			set := dbsqlc.DocumentPagesSetParams{SessionKey: l.Key, MediaID: m.ID}
			for _, p := range pages[from:min(len(pages), from+pagesAtOnce)] {
				set.Pages = append(set.Pages, pg.Clamp(p.Number))
				set.Titles, set.Bodies = append(set.Titles, pg.Clean(p.Title)), append(set.Bodies, pg.Clean(p.Text))
			}
			if err := s.db.Q.DocumentPagesSet(ctx, tx, &set); err != nil {
				return err
			}
		}
		return s.db.Q.AttachmentSet(ctx, tx, &dbsqlc.AttachmentSetParams{
			SessionKey: l.Key, EventID: m.Event, Place: m.Place, Kind: string(m.Kind), Name: pg.Clean(m.Name), Fault: string(m.Fault), MediaID: m.ID,
			Bytes: m.Bytes, Pages: m.Pages, Tokens: m.Tokens,
		})
	})
	if err != nil {
		return fmt.Errorf("storing an attachment of message %d: %w", m.Event, pg.AsRefused(err))
	}
	return nil
}

// Sweep deletes what no message and no reply of a locked session has any more, and counts its kept files again.
func Sweep(ctx context.Context, tx pgx.Tx, q *dbsqlc.Queries, key sessions.Key) error {
	for _, sweep := range []func(context.Context, dbsqlc.DBTX, sessions.Key) error{q.AttachmentsSweep, q.PicturesSweep, q.DocumentPagesSweep, q.FileTermsSweep, q.FilesCount} {
		if err := sweep(ctx, tx, key); err != nil {
			return fmt.Errorf("deleting attachments without a message: %w", err)
		}
	}
	if err := q.SentFilesSweep(ctx, tx, &dbsqlc.SentFilesSweepParams{SessionKey: key, Erased: sessions.ErasedText}); err != nil {
		return fmt.Errorf("deleting files without a reply: %w", err)
	}
	return nil
}
