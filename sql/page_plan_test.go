package sql_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A page of the console reads a part of a log by an index, however large the log is.
func TestPagePlans(t *testing.T) {
	t.Parallel()
	pool := sqltest.Filled(t, fillLog...)
	q, p := dbsqlc.New(), storetest.RowPlanner{Planner: &storetest.Planner{Pool: pool}}
	ctx, key, far := t.Context(), sessions.Key("robot/s9"), time.Now().AddDate(1, 0, 0)
	for name, run := range map[string]func() error{
		"sessions": func() error {
			_, err := q.PageSessions(ctx, p, &dbsqlc.PageSessionsParams{BeforeAt: far, BeforeKey: "z", Words: []string{"s"}, Groups: []string{}, State: "busy", MaxRows: 51})
			return err
		},
		"a conversation": func() error {
			_, err := q.PageTalk(ctx, p, &dbsqlc.PageTalkParams{SessionKey: key, BeforeSeq: 1 << 40, MaxRows: 61})
			return err
		},
		"open messages": func() error {
			_, err := q.PageOpen(ctx, p, &dbsqlc.PageOpenParams{SessionKey: key, MaxRows: 20})
			return err
		},
		"cuts": func() error {
			_, err := q.PageCuts(ctx, p, &dbsqlc.PageCutsParams{SessionKey: key, FromSeq: 1, ThroughSeq: 1 << 40, MaxRows: 200})
			return err
		},
		"compactions": func() error {
			_, err := q.PageCompactions(ctx, p, &dbsqlc.PageCompactionsParams{BeforeAt: far, BeforeID: 1 << 40, Words: []string{}, MaxRows: 51})
			return err
		},
		"memories": func() error {
			_, err := q.PageMemories(ctx, p, &dbsqlc.PageMemoriesParams{BeforeID: 1 << 40, Words: []string{}, MaxRows: 51})
			return err
		},
		"conversations of a person": func() error {
			if _, err := q.PageSpoke(ctx, p, "u1"); !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			return nil
		},
		"memories of a receipt": func() error { _, err := q.PageSaved(ctx, p, []int64{3, 4}); return err },
		"expiring events": func() error {
			_, err := q.PageExpiring(ctx, p, &dbsqlc.PageExpiringParams{PeriodSeconds: 1e6, NearSeconds: 5e5, MaxRows: 51})
			return err
		},
		"expiring rows": func() error {
			_, err := q.PageExpiringRows(ctx, p, &dbsqlc.PageExpiringRowsParams{MemoriesSeconds: 1e9, CompactionsSeconds: 1e9, RepliesSeconds: 1e9, ActionsSeconds: 1e9})
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			return err
		},
		"sessions with expired events": func() error {
			_, err := q.ExpiredSessions(ctx, p, &dbsqlc.ExpiredSessionsParams{PeriodSeconds: 1e6, MaxRows: 100})
			return err
		},
		"the oldest events": func() error {
			_, err := q.EventsOldest(ctx, p, &dbsqlc.EventsOldestParams{SessionKey: key, PeriodSeconds: 1e6, MaxRows: 500})
			return err
		},
		"deleting events": func() error {
			_, err := q.EventsExpire(ctx, p, &dbsqlc.EventsExpireParams{SessionKey: key, ThroughSeq: 10, ThroughID: 10})
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			return err
		},
		"actions": func() error {
			_, err := q.PageAudit(ctx, p, &dbsqlc.PageAuditParams{BeforeID: 1 << 40, MaxRows: 51})
			return err
		},
		"work": func() error {
			if _, err := q.PageWork(ctx, p, key); !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			return nil
		},
		"counts": func() error {
			if _, err := q.PageCounts(ctx, p, &dbsqlc.PageCountsParams{Erased: "erased"}); !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			return nil
		},
	} {
		if err := run(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, log := range []string{"dingtalk_session_events", "compaction_log", "memories"} {
			if strings.Contains(p.Plan, "Seq Scan on "+log) {
				t.Errorf("%s reads all of %s:\n%s", name, log, p.Plan)
			}
		}
	}
}

// Lists of people, usage and replicas, and all lists of a group's administrator, read a part of each log too.
func TestPagePlansOfPeopleAndGroups(t *testing.T) {
	t.Parallel()
	pool := sqltest.Filled(t, fillLog...)
	q, p := dbsqlc.New(), storetest.RowPlanner{Planner: &storetest.Planner{Pool: pool}}
	ctx, only, far := t.Context(), []string{"robot/s9", "robot/s11"}, time.Now().AddDate(1, 0, 0)
	month := pgtype.Date{Time: time.Now().AddDate(0, 0, -29), Valid: true}
	for name, run := range map[string]func() error{
		"people": func() error {
			_, err := q.PagePeople(ctx, p, &dbsqlc.PagePeopleParams{AfterID: "p3", MostRows: 50000, Part: "99", MaxRows: 51})
			if err == nil && !strings.Contains(p.Plan, "people_of_person") {
				t.Errorf("people are not read from their index:\n%s", p.Plan)
			}
			return err
		},
		"people by a part of a name": func() error {
			_, err := q.PagePeopleLike(ctx, p, &dbsqlc.PagePeopleLikeParams{MostRows: 50000, Part: "ick99", MaxRows: 51})
			if err == nil && !strings.Contains(p.Plan, "people_by_nick") {
				t.Errorf("names are not read from their index:\n%s", p.Plan)
			}
			return err
		},
		"usage": func() error {
			_, err := q.UsageGroups(ctx, p, &dbsqlc.UsageGroupsParams{ByCost: true, ByPerson: true, Since: month, MaxRows: 51})
			return err
		},
		"a file of usage": func() error {
			_, err := q.UsageRows(ctx, p, &dbsqlc.UsageRowsParams{AfterSession: "robot/s9", AfterDay: month, Since: month, MaxRows: 100})
			return err
		},
		"a file of groups": func() error {
			_, err := q.UsageGroups(ctx, p, &dbsqlc.UsageGroupsParams{ByPerson: true, BySession: true, AfterSession: "robot/s9", AfterAny: 1, Since: month, MaxRows: 100})
			return err
		},
		"costs": func() error {
			_, err := q.SpendSums(ctx, p, &dbsqlc.SpendSumsParams{BySession: true, Since: month})
			return err
		},
		"costs of groups": func() error {
			_, err := q.SpendSums(ctx, p, &dbsqlc.SpendSumsParams{BySession: true, Since: month, OnlyKeys: only})
			return err
		},
		"replicas": func() error { _, err := q.PageReplicas(ctx, p); return err },
		"sessions of a group": func() error {
			_, err := q.PageGroupSessions(ctx, p, []string{"s9", "s11"})
			return err
		},
		"sessions of groups": func() error {
			_, err := q.PageSessions(ctx, p, &dbsqlc.PageSessionsParams{BeforeAt: far, BeforeKey: "z", OnlyKeys: only, Words: []string{}, Groups: []string{}, MaxRows: 51})
			return err
		},
		"compactions of groups": func() error {
			_, err := q.PageCompactions(ctx, p, &dbsqlc.PageCompactionsParams{BeforeAt: far, BeforeID: 1 << 40, OnlyKeys: only, Words: []string{}, MaxRows: 51})
			if err == nil && !strings.Contains(p.Plan, "hashed SubPlan") {
				t.Errorf("each row is compared with each group:\n%s", p.Plan) // 0.3 s for 1,000 groups and 40,000 rows
			}
			return err
		},
		"memories of groups": func() error {
			_, err := q.PageMemories(ctx, p, &dbsqlc.PageMemoriesParams{BeforeID: 1 << 40, OnlyKeys: only, Words: []string{}, MaxRows: 51})
			return err
		},
		"actions of groups": func() error {
			_, err := q.PageAudit(ctx, p, &dbsqlc.PageAuditParams{BeforeID: 1 << 40, OnlyKeys: only, MaxRows: 51})
			return err
		},
		"counts of groups": func() error {
			if _, err := q.PageCounts(ctx, p, &dbsqlc.PageCountsParams{OnlyKeys: only, Erased: "erased"}); !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			return nil
		},
		"dead letters of groups": func() error {
			_, err := q.DeadLettersList(ctx, p, &dbsqlc.DeadLettersListParams{OnlyKeys: only, Erased: "erased", MaxRows: 51})
			return err
		},
	} {
		if err := run(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, log := range []string{"dingtalk_session_events", "dingtalk_sessions", "compaction_log", "memories", "model_usage", "people"} {
			if name == "replicas" && log == "dingtalk_sessions" {
				continue // no index has the owner, as it would make each lease dearer
			}
			if strings.Contains(p.Plan, "Seq Scan on "+log) {
				t.Errorf("%s reads all of %s:\n%s", name, log, p.Plan)
			}
		}
		if name == "replicas" && strings.Contains(p.Plan, "SubPlan") {
			t.Errorf("the sessions are read for each replica:\n%s", p.Plan)
		}
	}
}

// The chart of a conversation finds the events at its times by an index.
func TestPagePlanOfAChart(t *testing.T) {
	t.Parallel()
	pool := sqltest.Filled(t, fillLog...)
	q, p := dbsqlc.New(), storetest.RowPlanner{Planner: &storetest.Planner{Pool: pool}}
	times := []time.Time{time.Now(), time.Now().AddDate(1, 0, 0)}
	if _, err := q.PageReached(t.Context(), p, &dbsqlc.PageReachedParams{SessionKey: "robot/s9", Times: times}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(p.Plan, "events_at_time") {
		t.Errorf("the events at a time are not found by the index of times:\n%s", p.Plan)
	}
}

// The list of schedules reads a part of them.
func TestPagePlanOfSchedules(t *testing.T) {
	t.Parallel()
	pool := sqltest.New(t)
	storetest.Execute(t, pool, `INSERT INTO schedules (session_key, id, kind, state, due_at, settled_at, spec, text, created_by, creator, origin)
		SELECT 'robot/s' || i % 2000, i, 'remind', CASE WHEN i % 2 = 0 THEN 'active' ELSE 'done' END, now() + interval '1 minute' * i,
			CASE WHEN i % 2 = 1 THEN now() - interval '1 minute' * i END, 'x', 'x', 'u1', '{}', 'o' || i FROM generate_series(1, 20000) i`)
	storetest.Execute(t, pool, "ANALYZE schedules")
	q, p := dbsqlc.New(), storetest.RowPlanner{Planner: &storetest.Planner{Pool: pool}}
	far, groups := time.Now().AddDate(1, 0, 0), []string{"robot/s9", "robot/s11"}
	active := func(f dbsqlc.PageSchedulesParams) func() error {
		return func() error {
			f.Words, f.MaxRows = []string{}, 51
			_, err := q.PageSchedules(t.Context(), p, &f)
			return err
		}
	}
	ended := func(f dbsqlc.PageSchedulesEndedParams) func() error {
		return func() error {
			f.BeforeAt, f.BeforeKey, f.Words, f.MaxRows = far, "z", []string{}, 51
			_, err := q.PageSchedulesEnded(t.Context(), p, &f)
			return err
		}
	}
	for name, run := range map[string]func() error{
		"active": active(dbsqlc.PageSchedulesParams{}), "active of groups": active(dbsqlc.PageSchedulesParams{OnlyKeys: groups}),
		"active of a session": active(dbsqlc.PageSchedulesParams{SessionKey: "robot/s9"}), "active after a row": active(dbsqlc.PageSchedulesParams{AfterAt: far, AfterKey: "z"}),
		"ended": ended(dbsqlc.PageSchedulesEndedParams{}), "ended of groups": ended(dbsqlc.PageSchedulesEndedParams{OnlyKeys: groups}),
		"ended of a state": ended(dbsqlc.PageSchedulesEndedParams{State: "done"}),
	} {
		if err := run(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if strings.Contains(p.Plan, "Seq Scan on schedules") {
			t.Errorf("the list of %s reads all schedules:\n%s", name, p.Plan)
		}
	}
}
