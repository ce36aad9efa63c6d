package erasure

import (
	"context"
	"encoding/hex"
	"net/url"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/limits"
)

// deleteSchedules also wipes the person's calls that wait for approval, and deletes the files that the person brought.
func (g *personErasure) deleteSchedules(ctx context.Context, db dbsqlc.DBTX) error {
	if err := g.store.db.Q.ApprovalsForget(ctx, db, &dbsqlc.ApprovalsForgetParams{
		People: g.plan.who.ids, RobotSessions: g.plan.robotSessions(), GroupKey: string(g.plan.forget.Group), At: time.Now(),
	}); err != nil {
		return err
	}
	if err := g.deleteFiles(ctx, db); err != nil {
		return err
	}
	return g.store.db.Q.SchedulesForget(ctx, db, &dbsqlc.SchedulesForgetParams{
		People: g.plan.who.ids, RobotSessions: g.plan.robotSessions(), GroupKey: string(g.plan.forget.Group),
	})
}

// deleteFiles leaves the files that another person sent and this one kept.
func (g *personErasure) deleteFiles(ctx context.Context, db dbsqlc.DBTX) error {
	keys, err := g.store.db.Q.FilesForget(ctx, db, &dbsqlc.FilesForgetParams{
		People: g.plan.who.ids, RobotSessions: g.plan.robotSessions(), GroupKey: string(g.plan.forget.Group),
	})
	if err != nil {
		return err
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if err := g.store.db.Q.DocumentPagesSweep(ctx, db, key); err != nil {
			return err
		}
		if err := g.store.db.Q.FileTermsSweep(ctx, db, key); err != nil {
			return err
		}
		if err := g.store.db.Q.FilesCount(ctx, db, key); err != nil {
			return err
		}
	}
	return g.store.db.Q.FilesUnname(ctx, db, &dbsqlc.FilesUnnameParams{
		People: g.plan.who.ids, RobotSessions: g.plan.robotSessions(), GroupKey: string(g.plan.forget.Group),
	})
}

// All rows but schedules and logins stay without the name. The actions of the person get another one, see [dayKey.standIn].
func (g *personErasure) eraseRecords(ctx context.Context, tx pgx.Tx) error {
	if err := g.deleteSchedules(ctx, tx); err != nil {
		return err
	}
	if err := g.store.db.Q.UsageUnname(ctx, tx, &dbsqlc.UsageUnnameParams{People: g.plan.who.ids, RobotSessions: g.plan.robotSessions()}); err != nil {
		return err
	}
	if err := g.store.db.Q.CompactionsUnname(ctx, tx, &dbsqlc.CompactionsUnnameParams{People: g.plan.who.ids, RobotSessions: g.plan.robotSessions()}); err != nil {
		return err
	}
	members := make([]string, len(g.plan.who.ids))
	for i, id := range g.plan.who.ids {
		members[i] = url.PathEscape(id)
	}
	keys, err := g.store.db.Q.AuditOfMembers(ctx, tx, &dbsqlc.AuditOfMembersParams{People: members, RobotSessions: g.plan.robotSessions()})
	if err != nil {
		return err
	}
	if err := g.store.db.Q.AuditUnname(ctx, tx, &dbsqlc.AuditUnnameParams{SessionKeys: append([]string{}, keys...)}); err != nil {
		return err
	}
	if err := g.store.db.Q.AuditUnname(ctx, tx, &dbsqlc.AuditUnnameParams{SessionKeys: g.plan.chats(), Chats: true}); err != nil {
		return err
	}
	if err := g.store.db.Q.AuditUnact(ctx, tx, &dbsqlc.AuditUnactParams{People: g.plan.who.ids, RobotSessions: g.plan.robotSessions(), StandIn: g.keyed.standIn(g.plan.forget.Robot, g.plan.forget.Person)}); err != nil {
		return err
	}
	if err := g.store.db.Q.AuditForget(ctx, tx, &dbsqlc.AuditForgetParams{People: g.plan.who.ids, RobotSessions: g.plan.robotSessions()}); err != nil {
		return err
	}
	return g.store.db.Q.LoginsForget(ctx, tx, g.plan.who.ids)
}

// dayKey is the key of the hashes that an erasure leaves of its person. It is deleted after the day: from then on they name the person
// to no reader of the database. A hash without a key names the person to all who know the id.
type dayKey struct {
	day time.Time // in UTC
	key []byte
}

// keyOfDay reads today's.
func (s *Store) keyOfDay(ctx context.Context) (k dayKey, err error) {
	k.day = s.db.Clock.Now().UTC().Truncate(24 * time.Hour)
	k.key, err = limits.KeyOf(ctx, s.db, k.day)
	return k, err
}

func (k dayKey) date() pgtype.Date { return pgtype.Date{Time: k.day, Valid: true} }

func (k dayKey) hash(kind string, robot sessions.RobotCode, id string) []byte {
	return limits.Hash(k.key, kind, string(robot), id)
}

// hashes are separate by id, since the erasure forgets which ids are one person's.
func (k dayKey) hashes(robot sessions.RobotCode, ids []string) [][]byte {
	keys := make([][]byte, len(ids))
	for i, id := range ids {
		keys[i] = k.hash("erasures", robot, id)
	}
	return keys
}

// standIn is the actor of a person's actions from now on, so that the audit still shows those of one administrator together.
func (k dayKey) standIn(robot sessions.RobotCode, id sessions.UserID) string {
	const size = 6 // bytes: a day has few erasures
	return memory.ErasedActor + hex.EncodeToString(k.hash("actor", robot, string(id))[:size])
}
