package erasure

import (
	"context"
	"net/url"

	"github.com/jackc/pgx/v5"

	"ebb/sql/dbsqlc"
)

func (g *forgetting) schedules(ctx context.Context, db dbsqlc.DBTX) error {
	return g.Q.SchedulesForget(ctx, db, &dbsqlc.SchedulesForgetParams{
		People: g.who.ids, RobotSessions: g.robotSessions(), GroupKey: string(g.f.Group),
	})
}

// All rows but schedules and logins stay without the name.
func (g *forgetting) records(ctx context.Context, tx pgx.Tx) error {
	if err := g.schedules(ctx, tx); err != nil {
		return err
	}
	if err := g.Q.UsageUnname(ctx, tx, &dbsqlc.UsageUnnameParams{People: g.who.ids, RobotSessions: g.robotSessions()}); err != nil {
		return err
	}
	if err := g.Q.CompactionsUnname(ctx, tx, &dbsqlc.CompactionsUnnameParams{People: g.who.ids, RobotSessions: g.robotSessions()}); err != nil {
		return err
	}
	members := make([]string, len(g.who.ids))
	for i, id := range g.who.ids {
		members[i] = url.PathEscape(id)
	}
	keys, err := g.Q.AuditOfMembers(ctx, tx, &dbsqlc.AuditOfMembersParams{People: members, RobotSessions: g.robotSessions()})
	if err != nil {
		return err
	}
	if err := g.Q.AuditUnname(ctx, tx, keys); err != nil {
		return err
	}
	if err := g.Q.AuditForget(ctx, tx, &dbsqlc.AuditForgetParams{People: g.who.ids, RobotSessions: g.robotSessions()}); err != nil {
		return err
	}
	return g.Q.LoginsForget(ctx, tx, g.who.ids)
}
