package erasure

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// covers reports whether a session is in the group of a restricted erasure.
func (g *personErasure) covers(key sessions.Key) bool {
	return g.f.Group == "" || key.Group() == g.f.Group
}

func (g *personErasure) factsThere(ctx context.Context, db dbsqlc.DBTX) ([]dbsqlc.MemoriesOfPersonRow, error) {
	facts, err := g.db.Q.MemoriesOfPerson(ctx, db, g.factsParams())
	return slices.DeleteFunc(facts, func(m dbsqlc.MemoriesOfPersonRow) bool {
		return !g.covers(m.SourceSession) || g.f.Group != "" && m.Scope == memory.ScopeTeam
	}), err
}

// forgetThere is forgetFacts. A restricted erasure leaves out facts with a copy that others read.
func (g *personErasure) forgetThere(ctx context.Context, tx pgx.Tx, ids []int64, asking sessions.Key) error {
	if g.f.Group != "" {
		var err error
		if ids, err = g.withoutShared(ctx, tx, ids); err != nil {
			return err
		}
	}
	return g.forgetFacts(ctx, tx, ids, asking, g.done)
}

func (g *personErasure) withoutShared(ctx context.Context, tx pgx.Tx, ids []int64) (unshared []int64, err error) {
	for _, id := range ids {
		rows, err := g.withDerived(ctx, tx, []int64{id})
		if err != nil {
			return nil, err
		}
		scopes, err := g.db.Q.MemoryScopes(ctx, tx, rows)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(scopes, func(sc dbsqlc.MemoryScopesRow) bool {
			return sc.Scope == memory.ScopeTeam || !g.covers(sc.SourceSession)
		}) {
			unshared = append(unshared, id)
		}
	}
	return unshared, nil
}
