package console

import (
	"context"
	"fmt"
	"time"

	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Login implements pages.Logins.
func (s *Store) Login(ctx context.Context, hash []byte, l pages.Login, ttl time.Duration) error {
	err := s.db.Q.LoginInsert(ctx, s.db.Pool, &dbsqlc.LoginInsertParams{TokenHash: hash, Role: l.Role, Actor: pg.Clean(l.Actor), Nick: pg.Clean(l.Nick), TtlSeconds: ttl.Seconds()})
	if err != nil {
		return fmt.Errorf("keeping a login: %w", err)
	}
	return nil
}

// Authenticate implements pages.Logins.
func (s *Store) Authenticate(ctx context.Context, hash []byte) (pages.Login, error) {
	r, err := s.db.Q.LoginFind(ctx, s.db.Pool, hash)
	if err != nil {
		return pages.Login{}, fmt.Errorf("reading a login: %w", pg.AsNotFound(err))
	}
	return pages.Login{Role: r.Role, Actor: r.Actor, Nick: r.Nick}, nil
}

// Logout implements pages.Logins.
func (s *Store) Logout(ctx context.Context, hash []byte) error {
	if err := s.db.Q.LoginDelete(ctx, s.db.Pool, hash); err != nil {
		return fmt.Errorf("ending a login: %w", err)
	}
	return nil
}

// UseState implements pages.Logins.
func (s *Store) UseState(ctx context.Context, hash []byte, next string, ttl time.Duration) error {
	n, err := s.db.Q.LoginStateUse(ctx, s.db.Pool, &dbsqlc.LoginStateUseParams{StateHash: hash, Next: pg.Clean(next), TtlSeconds: ttl.Seconds()})
	if err == nil && n == 0 {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("using the state of a login: %w", err)
	}
	return nil
}

// Begin implements pages.Audit.
func (s *Store) Begin(ctx context.Context, a pages.Action) (int64, error) {
	id, err := s.db.Q.AuditInsert(ctx, s.db.Pool, &dbsqlc.AuditInsertParams{SessionKey: a.Key, Actor: pg.Clean(a.Actor), Action: pg.Clean(a.Action), Detail: pg.Clean(a.Detail), Person: pg.Clean(string(a.Person))})
	if err != nil {
		return 0, fmt.Errorf("recording the action %s: %w", a.Action, err)
	}
	return id, nil
}

// End implements pages.Audit. An erasure replaces the row under the same id, so an update that waited for it finds no
// row. Its repetition finds the new one.
func (s *Store) End(ctx context.Context, a pages.Action, outcome string) error {
	for range 2 {
		n, err := s.db.Q.AuditEnd(ctx, s.db.Pool, &dbsqlc.AuditEndParams{ID: a.ID, Outcome: pg.Clean(outcome)})
		if err != nil {
			return fmt.Errorf("recording the end of the action %s: %w", a.Action, err)
		}
		if n > 0 {
			break
		}
	}
	return nil
}

// Actions implements pages.Lists.
func (s *Store) Actions(ctx context.Context, only []sessions.Key, p pages.Page) ([]pages.Action, string, error) {
	place, err := pages.ParseCursor(pages.ListActions, p.Cursor, newest)
	if err != nil {
		return nil, "", err
	}
	rows, err := s.db.Q.PageAudit(ctx, s.db.Pool, &dbsqlc.PageAuditParams{BeforeID: place.ID, OnlyKeys: pg.Texts(only), MaxRows: pg.Clamp(p.Limit) + 1})
	if err != nil {
		return nil, "", fmt.Errorf("listing actions: %w", err)
	}
	rows, next := cut(pages.ListActions, rows, p.Limit, func(r dbsqlc.Audit) pages.Place { return pages.Place{ID: r.ID} })
	list := make([]pages.Action, len(rows))
	for i, r := range rows {
		list[i] = pages.Action{ID: r.ID, At: r.At, Actor: r.Actor, Action: r.Action, Key: r.SessionKey, Detail: r.Detail, Person: sessions.UserID(r.Person), Outcome: r.Outcome}
	}
	return list, next, nil
}
