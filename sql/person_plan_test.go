package sql_test

import (
	"strings"
	"testing"
	"time"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A person is found by indexes, however much others have said.
func TestPersonPlans(t *testing.T) {
	t.Parallel()
	pool := sqltest.Filled(t, fillLog...)
	q, p := dbsqlc.New(), &storetest.Planner{Pool: pool}
	ctx, key := t.Context(), sessions.Key("robot/s7")
	for name, run := range map[string]func() error{
		"where they are": func() error {
			_, err := q.PersonSessions(ctx, p, &dbsqlc.PersonSessionsParams{People: []string{"p7", "$:p7"}, Spoken: []string{"robot/s7"}, Quoted: []string{}, Robot: "robot"})
			if err == nil && (!strings.Contains(p.Plan, "outbox_open") || !strings.Contains(p.Plan, "outbox_settled_to_person")) {
				t.Errorf("replies to a person are not found by their indexes:\n%s", p.Plan)
			}
			return err
		},
		"their nicks": func() error { _, err := q.PersonNicks(ctx, p, []string{"p7", "$:p7"}); return err },
		"by a name": func() error {
			_, err := q.PeopleNamed(ctx, p, &dbsqlc.PeopleNamedParams{RobotSessions: "robot/", Name: "nick7"})
			return err
		},
		"their memories": func() error {
			_, err := q.MemoriesOfPerson(ctx, p, &dbsqlc.MemoriesOfPersonParams{People: []string{"p7", "$:p7"}, RobotSessions: "robot/"})
			return err
		},
		"what they promoted": func() error {
			return q.MemoriesUnpromote(ctx, p, &dbsqlc.MemoriesUnpromoteParams{People: []string{"p7", "$:p7"}, RobotSessions: "robot/"})
		},
		"their last message": func() error {
			_, err := q.MessagesBefore(ctx, p, &dbsqlc.MessagesBeforeParams{
				SessionKey: "robot/s9", People: []string{"talker", "$:talker"}, BeforeID: 1 << 40, MaxRows: 1,
			})
			if err == nil && !strings.Contains(p.Plan, "Index Scan Backward using dingtalk_session_events_pkey") {
				t.Errorf("all messages of a person in a session are read for the last one:\n%s", p.Plan)
			}
			return err
		},
		"what they said in a session": func() error {
			_, err := q.SaidBy(ctx, p, &dbsqlc.SaidByParams{SessionKey: key, People: []string{"p7", "$:p7"}})
			return err
		},
		"quotes of them": func() error {
			_, err := q.QuotesOf(ctx, p, &dbsqlc.QuotesOfParams{SessionKey: key, People: []string{"p7", "$:p7"}, Seqs: []int64{}, Aside: []int64{}, Nicks: []string{"nick7"}})
			return err
		},
		"replies to them": func() error {
			return q.OutboxUnname(ctx, p, &dbsqlc.OutboxUnnameParams{SessionKey: key, People: []string{"p7", "$:p7"}, Nicks: []string{}})
		},
		"their nicks in a session": func() error {
			_, err := q.NicksSeen(ctx, p, &dbsqlc.NicksSeenParams{SessionKeys: []string{"robot/s7", "robot/s7"}, People: []string{"p7", "p11"}})
			if err == nil && strings.Contains(p.Plan, "dingtalk_session_events") {
				t.Errorf("a nick is looked for in the log:\n%s", p.Plan)
			}
			return err
		},
		"their messages by page": func() error {
			_, err := q.PersonMessages(ctx, p, &dbsqlc.PersonMessagesParams{SessionKey: key, People: []string{"p7", "$:p7"}, AfterID: 50_000, MaxRows: 20})
			if err == nil && !strings.Contains(p.Plan, "dingtalk_session_events_pkey") {
				t.Errorf("a page is not found by its key:\n%s", p.Plan)
			}
			return err
		},
		"readers of a fact": func() error {
			_, err := q.SessionsReading(ctx, p, &dbsqlc.SessionsReadingParams{
				Teams: []string{}, Robots: []string{"robot"}, Conversations: []string{"s7"}, Users: []string{"p7"}, SessionKeys: []string{"robot/s8"},
			})
			return err
		},
		"views that show a fact": func() error {
			return q.PinnedErase(ctx, p, &dbsqlc.PinnedEraseParams{SessionKeys: []string{"robot/s7"}, Facts: []string{"fact 7"}})
		},
		"former views that show a fact": func() error {
			return q.PinnedBeforeErase(ctx, p, &dbsqlc.PinnedBeforeEraseParams{SessionKeys: []string{"robot/s7"}, Facts: []string{"fact 7"}})
		},
		"receipts of a fact": func() error {
			return q.FlushesForget(ctx, p, &dbsqlc.FlushesForgetParams{SessionKeys: []string{"robot/s7"}, Ids: []int64{7, 8}})
		},
		"days of a digest": func() error { return q.DigestsReopen(ctx, p, []int64{7, 8}) },
		"waiting replies": func() error {
			q.OutboxQuoting(ctx, p, []*dbsqlc.OutboxQuotingParams{{SessionKey: "robot/s7", Facts: []string{"fact 7"}}})
			return nil
		},
		"waiting without a session": func() error {
			_, err := q.SessionsMissing(ctx, p)
			return err
		},
	} {
		if err := run(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, table := range []string{
			"dingtalk_session_events", "people", "outbox", "memories", "dingtalk_sessions", "compaction_log", "memory_flushes", "memory_digests",
		} {
			if strings.Contains(p.Plan, "Seq Scan on "+table) {
				t.Errorf("%s: all of %s is read:\n%s", name, table, p.Plan)
			}
		}
	}
}

// A reply that waits names its asker, and so does one that an erasure gave up before it was sent.
func TestSessionsOfRepliesToAPerson(t *testing.T) {
	t.Parallel()
	pool := sqltest.New(t)
	storetest.Execute(t, pool, `INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type)
		SELECT 'robot/' || name, 'robot', name, '2' FROM unnest(ARRAY['waits', 'given up', 'sent', 'of others']) AS name`)
	storetest.Execute(t, pool, `INSERT INTO outbox (session_key, target, body, state, sender, settled_at) VALUES
		('robot/waits', '{"staff_id": "p"}', 'b', 'waiting', 'a', NULL), ('robot/given up', '{"staff_id": "p"}', 'b', 'failed', 'a', now()),
		('robot/sent', '{}', 'b', 'sent', 'a', now()), ('robot/of others', '{"staff_id": "q"}', 'b', 'waiting', 'a', NULL)`)
	rows, err := dbsqlc.New().PersonSessions(t.Context(), pool, &dbsqlc.PersonSessionsParams{
		People: []string{"p"}, Spoken: []string{}, Quoted: []string{}, Robot: "robot",
	})
	if err != nil || len(rows) != 2 || rows[0].SessionKey != "robot/given up" || rows[1].SessionKey != "robot/waits" {
		t.Errorf("replies name the person in %+v (%v), want the one given up and the one that waits", rows, err)
	}
}

// Records that name a person are found by indexes.
func TestRecordPlans(t *testing.T) {
	t.Parallel()
	pool := sqltest.Filled(t, fillLog...)
	q, p, ctx := dbsqlc.New(), &storetest.Planner{Pool: pool}, t.Context()
	for name, run := range map[string]func() error{
		"other records of them": func() error {
			_, err := q.PersonRecords(ctx, p, &dbsqlc.PersonRecordsParams{People: []string{"p7", "$:p7"}})
			return err
		},
		"actions on their sessions": func() error {
			_, err := q.AuditOfMembers(ctx, p, &dbsqlc.AuditOfMembersParams{People: []string{"p7"}})
			return err
		},
		"actions that lose a member": func() error {
			return q.AuditUnname(ctx, p, &dbsqlc.AuditUnnameParams{SessionKeys: []string{"r/c/p7"}})
		},
		"actions that lose their actor": func() error {
			return q.AuditUnact(ctx, p, &dbsqlc.AuditUnactParams{People: []string{"p7"}, StandIn: "erased-1"})
		},
		"the end of an action": func() error {
			_, err := q.AuditEnd(ctx, p, &dbsqlc.AuditEndParams{ID: 7, Outcome: "done"})
			return err
		},
		"actions on sessions of members": func() error {
			_, err := q.AuditMembers(ctx, p, &dbsqlc.AuditMembersParams{AfterKey: "robot/s7", MaxRows: 100})
			return err
		},
		"members who spoke": func() error { _, err := q.SessionsSpoken(ctx, p, []string{"robot/s7", "robot/s8"}); return err },
		"people with usage": func() error {
			_, err := q.UsagePeople(ctx, p, &dbsqlc.UsagePeopleParams{AfterPerson: "p7", MaxRows: 100})
			return err
		},
	} {
		if err := run(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, table := range []string{"dingtalk_session_events", "people", "memories", "model_usage", "audit"} {
			if strings.Contains(p.Plan, "Seq Scan on "+table) {
				t.Errorf("%s: all of %s is read:\n%s", name, table, p.Plan)
			}
		}
	}
}

// The names of people, and the sessions where they spoke, are found by indexes of their table and of open messages.
func TestPeoplePlans(t *testing.T) {
	t.Parallel()
	pool := sqltest.Filled(t, fillLog...)
	q, p := dbsqlc.New(), &storetest.Planner{Pool: pool}
	ctx, key := t.Context(), sessions.Key("robot/s7")
	for name, run := range map[string]func() error{
		"where they spoke": func() error {
			_, err := q.PersonLogs(ctx, p, &dbsqlc.PersonLogsParams{People: []string{"p7", "$:p7"}, RobotSessions: "robot/"})
			if err == nil && !strings.Contains(p.Plan, "people_of_person") {
				t.Errorf("the sessions of a person are not found by their index:\n%s", p.Plan)
			}
			return err
		},
		"their last names": func() error {
			_, err := q.PeopleNames(ctx, p, &dbsqlc.PeopleNamesParams{People: []string{"p7", "p8"}})
			return err
		},
		"whether they spoke":    func() error { _, err := q.PeopleSpoke(ctx, p, []string{"p7", "p8"}); return err },
		"whether they are kept": func() error { _, err := q.PeopleKept(ctx, p, []string{"p7", "p8"}); return err },
		"names that the log no longer has": func() error {
			return q.PeopleTrim(ctx, p, &dbsqlc.PeopleTrimParams{SessionKey: key, SeenBefore: time.Now(), SaidBefore: time.Now()})
		},
		"names that the beginning of the log no longer has": func() error {
			begin := time.Now().Add(-190 * time.Minute) // the log has 200 minutes
			err := q.PeopleTrim(ctx, p, &dbsqlc.PeopleTrimParams{SessionKey: "robot/s9", SeenBefore: begin, SaidBefore: begin})
			if err == nil && !strings.Contains(p.Plan, "events_at_time") {
				t.Errorf("more than the beginning of the log is read:\n%s", p.Plan)
			}
			return err
		},
		"the beginning of a log": func() error {
			_, err := q.LogBegin(ctx, p, "robot/s9")
			if !strings.Contains(p.Plan, "events_at_time") {
				t.Errorf("the whole log is read:\n%s", p.Plan)
			}
			_ = err // the planner has no time
			return nil
		},
	} {
		if err := run(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, table := range []string{"dingtalk_session_events", "people", "memories"} {
			if strings.Contains(p.Plan, "Seq Scan on "+table) {
				t.Errorf("%s: all of %s is read:\n%s", name, table, p.Plan)
			}
		}
	}
}

// A quote of an answer is found among the replies of its time.
func TestPlanOfAQuotedAnswer(t *testing.T) {
	t.Parallel()
	pool := sqltest.Filled(t, fillLog...)
	p, at := &storetest.Planner{Pool: pool}, time.Now().Add(-time.Hour)
	if _, err := dbsqlc.New().QuotedAnswer(t.Context(), p, &dbsqlc.QuotedAnswerParams{
		SessionKey: "robot/s7", Oldest: at.Add(-time.Minute), Earliest: at, Latest: at.Add(time.Minute),
	}); err != nil {
		t.Fatal(err)
	}
	for _, index := range []string{"outbox_settled_by_time", "outbox_open", "events_at_time"} {
		if !strings.Contains(p.Plan, index) {
			t.Errorf("%s is not read:\n%s", index, p.Plan)
		}
	}
}

// A digest reads its day of a group's log alone.
func TestDigestPlan(t *testing.T) {
	t.Parallel()
	pool := sqltest.Filled(t, fillLog...)
	p, from := &storetest.Planner{Pool: pool}, storetest.Yesterday()
	dbsqlc.New().DigestCount(t.Context(), p, []*dbsqlc.DigestCountParams{{SessionKey: "robot/s7", StartsAt: from.From, EndsAt: from.To}})
	if !strings.Contains(p.Plan, "events_at_time") {
		t.Errorf("more than the day is read of a log:\n%s", p.Plan)
	}
}

// fillLog makes a database of many people's logs, replies, facts, usage of 400 days and actions, whose plans tests read.
var fillLog = []string{
	`INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, last_seq)
	 SELECT 'robot/s' || i, 'robot', 's' || i, '2', 200 FROM generate_series(0, 499) i`,
	`INSERT INTO dingtalk_session_events (session_key, seq, role, content, sender_id, sender_nick, msg_id, created_at, message)
	 SELECT 'robot/s' || i % 500, i / 500 + 1, 'user', 'said ' || i, 'p' || i % 997, 'nick' || i % 997, 'm' || i, now() - interval '1 minute' * (i / 500),
	    CASE WHEN i % 10 = 0 THEN jsonb_build_object('text', 'said', 'quote', jsonb_build_object('sender_id', 'p' || i % 991, 'nick', 'q', 'text', 'said'))
	    ELSE jsonb_build_object('text', 'said') END
	 FROM generate_series(0, 99999) i`,
	`INSERT INTO dingtalk_session_events (session_key, seq, role, content, sender_id, sender_nick, msg_id)
	 SELECT 'robot/s9', 1000 + i, 'user', 'said ' || i, 'talker', 'talker', 'talk' || i FROM generate_series(0, 19999) i`,
	`INSERT INTO people (session_key, person, nick, spoke, seen_at)
	 SELECT e.session_key, e.sender_id, e.sender_nick, true, max(e.created_at) FROM dingtalk_session_events e GROUP BY 1, 2, 3
	 UNION ALL
	 SELECT q.session_key, q.message #>> '{quote,sender_id}', 'q', false, max(q.created_at) FROM dingtalk_session_events q
	 WHERE q.message -> 'quote' IS NOT NULL GROUP BY 1, 2`,
	`INSERT INTO outbox (session_key, target, body, state, sender, settled_at)
	 SELECT 'robot/s' || i % 500, jsonb_build_object('staff_id', 'p' || i % 997, 'mentions', '[]'::jsonb), 'b', 'sent', 'a', now() FROM generate_series(0, 49999) i`,
	`INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, subject_id, said_by, promoted_by)
	 SELECT 'group', 'robot/s' || i % 500, 'fact', 'fact ' || i, sha256(convert_to('fact ' || i, 'UTF8')), 'robot/s' || i % 500, 'p' || i % 997, 'p' || i % 991,
	    CASE WHEN i % 50 = 0 THEN 'p' || i % 997 ELSE '' END FROM generate_series(0, 19999) i`,
	`INSERT INTO compaction_log (session_key, outcome, created_at, view_before)
	 SELECT 'robot/s' || i % 500, 'committed', now() - interval '1 hour' * (i % 5000), CASE WHEN i % 40 = 0 THEN jsonb_build_object('pinned', 'fact ' || i) END
	 FROM generate_series(0, 19999) i`,
	`INSERT INTO memory_flushes (session_key, from_seq, through_seq, saved, duplicate, superseded)
	 SELECT 'robot/s' || i % 500, i, i + 1, ARRAY[i], ARRAY[i + 1], ARRAY[i + 2] FROM generate_series(0, 19999) i`,
	`INSERT INTO memory_digests (session_key, day, memory_id, done)
	 SELECT 'robot/s' || i % 500, date '2020-01-01' + i / 500, i, true FROM generate_series(0, 19999) i`,
	`INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, pinned)
	 SELECT 'other/s' || i, 'other', 's' || i, '1', repeat('pinned ', 50) FROM generate_series(0, 9999) i`,
	`INSERT INTO model_usage (session_key, day, kind, model, person, prompt_tokens)
	 SELECT 'robot/s' || i % 500, current_date - 400 + i / 250, 'turn', 'm', 'p' || i % 997, 1 FROM generate_series(0, 99999) i`,
	`INSERT INTO audit (session_key, actor, action) SELECT 'robot/s' || i % 500 || '/p' || i % 997, 'p' || i % 991, 'undo' FROM generate_series(0, 19999) i`,
	`ANALYZE`,
}
