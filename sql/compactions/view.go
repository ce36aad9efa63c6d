package compactions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// replaceBodies keeps moved bodies, and returns the former texts.
func (s *Store) replaceBodies(
	ctx context.Context, tx pgx.Tx, key sessions.Key, c sessions.Compaction,
) ([]ShownBefore, error) {
	if len(c.Shown) == 0 {
		return nil, nil
	}
	wanted := make(map[int64]sessions.Shown, len(c.Shown))
	moved := []int64{}
	for _, sh := range c.Shown {
		if wanted[sh.Seq] = sh; sh.Blob != "" {
			moved = append(moved, sh.Seq)
		}
	}
	rows, err := s.db.Q.EventsShown(ctx, tx, &dbsqlc.EventsShownParams{
		SessionKey: key, AfterSeq: c.Through, Seqs: slices.Sorted(maps.Keys(wanted)), Moved: moved,
	})
	if err != nil {
		return nil, err
	}
	before := make([]ShownBefore, 0, len(rows))
	after := make([]ShownBefore, 0, len(rows))
	for _, r := range rows {
		seq := pg.OrZero(r.Seq)
		sh := wanted[seq]
		if sh.Blob != "" && sessions.BlobOf(r.Content) != sh.Blob {
			return nil, fmt.Errorf("event %d is not what was moved out: %w", seq, sessions.ErrConflict)
		}
		text := pg.Clean(sh.Text)
		before = append(before, ShownBefore{Seq: seq, Text: r.Shown, Tokens: pg.OrZero(r.ShownTokens), Blob: pg.OrZero(r.BlobID)})
		after = append(after, ShownBefore{Seq: seq, Text: &text, Tokens: pg.Clamp(sh.Tokens), Blob: sh.Blob})
	}
	return before, s.showAs(ctx, tx, key, after, c.Through)
}

// showAs keeps the bodies that events after a place refer to.
func (s *Store) showAs(ctx context.Context, tx pgx.Tx, key sessions.Key, list []ShownBefore, after int64) error {
	if len(list) > 0 {
		p := &dbsqlc.EventsShowParams{SessionKey: key}
		for _, sh := range list {
			p.Seqs, p.Texts, p.Tokens = append(p.Seqs, sh.Seq), append(p.Texts, pg.OrZero(sh.Text)), append(p.Tokens, sh.Tokens)
			p.BlobIds, p.Whole = append(p.BlobIds, sh.Blob), append(p.Whole, sh.Text == nil)
		}
		if err := s.db.Q.EventsShow(ctx, tx, p); err != nil {
			return err
		}
	}
	return s.db.Q.BlobsKeep(ctx, tx, &dbsqlc.BlobsKeepParams{SessionKey: key, AfterSeq: after})
}

// Blob implements sessions.Compactor.
func (s *Store) Blob(ctx context.Context, key sessions.Key, blob string) (string, error) {
	body, err := s.db.Q.BlobFind(ctx, s.db.Pool, &dbsqlc.BlobFindParams{SessionKey: key, BlobID: pg.Clean(blob)})
	if errors.Is(err, pgx.ErrNoRows) || err == nil && sessions.BlobOf(body) != blob {
		body, err = s.loggedBody(ctx, key, blob)
	}
	if err != nil {
		return "", fmt.Errorf("reading a result that was moved out of a view: %w", pg.AsNotFound(err))
	}
	return body, nil
}

// A body with another hash is not the one that was moved out.
func (s *Store) loggedBody(ctx context.Context, key sessions.Key, blob string) (string, error) {
	address := pg.Clean(blob)
	bodies, err := s.db.Q.BlobsLogged(ctx, s.db.Pool, &dbsqlc.BlobsLoggedParams{SessionKey: key, BlobID: &address})
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(bodies, func(body string) bool { return sessions.BlobOf(body) == blob })
	if i < 0 {
		return "", pgx.ErrNoRows
	}
	return bodies[i], nil
}
