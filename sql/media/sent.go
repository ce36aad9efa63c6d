package media

import (
	"context"
	"fmt"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Sent keeps the files that replies send.
type Sent struct{ db *pg.DB }

// NewSent returns the sent files of a database.
func NewSent(db *pg.DB) *Sent { return &Sent{db} }

// Keep stores a file of a turn under its lease, and returns its id. A repeated attempt at the turn replaces the file of the same source. The
// error is sessions.ErrLeaseLost where the lease is not the current one.
func (s *Sent) Keep(ctx context.Context, l sessions.Lease, event int64, f sessions.File) (int64, error) {
	id, err := s.db.Q.SentFileKeep(ctx, s.db.Pool, &dbsqlc.SentFileKeepParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, EventID: event, Source: pg.Clean(f.Source), Name: pg.Clean(f.Name), Kind: string(f.Kind), Body: f.Body,
	})
	if err != nil {
		return 0, fmt.Errorf("storing a file: %w", pg.AsRefused(pg.AsLost(err)))
	}
	return id, nil
}

// Kept lists the files of turns that have not committed, by the first messages of these, in the order of their making, without their bytes.
func (s *Sent) Kept(ctx context.Context, key sessions.Key, events []int64) ([]sessions.File, error) {
	rows, err := s.db.Q.SentFiles(ctx, s.db.Pool, &dbsqlc.SentFilesParams{SessionKey: key, Events: events})
	if err != nil {
		return nil, fmt.Errorf("listing files: %w", err)
	}
	files := make([]sessions.File, len(rows))
	for i, r := range rows {
		files[i] = sessions.File{ID: r.ID, Source: r.Source, Name: r.Name, Kind: sessions.FileKind(r.Kind)}
	}
	return files, nil
}

// Body returns the bytes of a file; sessions.ErrNotFound where they are deleted.
func (s *Sent) Body(ctx context.Context, key sessions.Key, id int64) ([]byte, error) {
	body, err := s.db.Q.SentFileBody(ctx, s.db.Pool, &dbsqlc.SentFileBodyParams{SessionKey: key, ID: id})
	if err != nil {
		return nil, fmt.Errorf("reading a file: %w", pg.AsNotFound(err))
	}
	return body, nil
}

// Delete deletes a file whose reply is settled.
func (s *Sent) Delete(ctx context.Context, key sessions.Key, id int64) error {
	if err := s.db.Q.SentFileDelete(ctx, s.db.Pool, &dbsqlc.SentFileDeleteParams{SessionKey: key, ID: id}); err != nil {
		return fmt.Errorf("deleting a file: %w", err)
	}
	return nil
}
