package erasure

import (
	"context"
	"encoding/hex"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/limits"
)

func (g *personErasure) deleteSchedules(ctx context.Context, db dbsqlc.DBTX) error {
	return g.db.Q.SchedulesForget(ctx, db, &dbsqlc.SchedulesForgetParams{
		People: g.who.ids, RobotSessions: g.robotSessions(), GroupKey: string(g.f.Group),
	})
}

// All rows but schedules and logins stay without the name. The actions of the person get another one, see [forgetting.standIn].
func (g *personErasure) eraseRecords(ctx context.Context, tx pgx.Tx) error {
	if err := g.deleteSchedules(ctx, tx); err != nil {
		return err
	}
	if err := g.db.Q.UsageUnname(ctx, tx, &dbsqlc.UsageUnnameParams{People: g.who.ids, RobotSessions: g.robotSessions()}); err != nil {
		return err
	}
	if err := g.db.Q.CompactionsUnname(ctx, tx, &dbsqlc.CompactionsUnnameParams{People: g.who.ids, RobotSessions: g.robotSessions()}); err != nil {
		return err
	}
	members := make([]string, len(g.who.ids))
	for i, id := range g.who.ids {
		members[i] = url.PathEscape(id)
	}
	keys, err := g.db.Q.AuditOfMembers(ctx, tx, &dbsqlc.AuditOfMembersParams{People: members, RobotSessions: g.robotSessions()})
	if err != nil {
		return err
	}
	if err := g.db.Q.AuditUnname(ctx, tx, &dbsqlc.AuditUnnameParams{SessionKeys: append([]string{}, keys...)}); err != nil {
		return err
	}
	if err := g.db.Q.AuditUnname(ctx, tx, &dbsqlc.AuditUnnameParams{SessionKeys: g.chats(), Chats: true}); err != nil {
		return err
	}
	if err := g.db.Q.AuditUnact(ctx, tx, &dbsqlc.AuditUnactParams{People: g.who.ids, RobotSessions: g.robotSessions(), StandIn: g.standIn()}); err != nil {
		return err
	}
	if err := g.db.Q.AuditForget(ctx, tx, &dbsqlc.AuditForgetParams{People: g.who.ids, RobotSessions: g.robotSessions()}); err != nil {
		return err
	}
	return g.db.Q.LoginsForget(ctx, tx, g.who.ids)
}

// chats are the person's private chats, whose keys name the person.
func (g *personErasure) chats() []string {
	keys := []string{}
	for _, r := range g.rows {
		asks := g.f.Self && r.SessionKey == g.f.From.Lease.Key
		if r.ConversationType == sessions.Private && (r.Spoke || asks) {
			keys = append(keys, string(r.SessionKey))
		}
	}
	return keys
}

// dayKey is the key of the hashes that an erasure leaves of its person. It is deleted after the day: from then on they name the person
// to no reader of the database. A hash without a key names the person to all who know the id.
type dayKey struct {
	day time.Time // in UTC
	key []byte
}

func (g *personErasure) readKey(ctx context.Context) (err error) {
	if g.keyed.key == nil {
		g.keyed.day = g.db.Clock.Now().UTC().Truncate(24 * time.Hour)
		g.keyed.key, err = limits.KeyOf(ctx, g.db, g.keyed.day)
	}
	return err
}

func (g *personErasure) dayOfErasure() pgtype.Date {
	return pgtype.Date{Time: g.keyed.day, Valid: true}
}

func (g *personErasure) hash(kind, id string) []byte {
	return limits.Hash(g.keyed.key, kind, string(g.f.Robot), id)
}

// hashes are separate by id, since the erasure forgets which ids are one person's.
func (g *personErasure) hashes() [][]byte {
	keys := make([][]byte, len(g.who.ids))
	for i, id := range g.who.ids {
		keys[i] = g.hash("erasures", id)
	}
	return keys
}

// standIn is the actor of the person's actions from now on, so that the audit still shows those of one administrator together.
func (g *personErasure) standIn() string {
	const size = 6 // bytes: a day has few erasures
	return memory.ErasedActor + hex.EncodeToString(g.hash("actor", string(g.f.Person))[:size])
}
