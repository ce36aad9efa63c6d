package erasure_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/dbsqlc"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// cover says how a person's rights treat a column that names the person or holds their words.
type cover struct {
	preview  func(memory.Preview) int // counts its rows
	exported string                   // kind of the row in an export; or the reason why there is none, with a blank
}

var (
	ofMessages = cover{preview: func(p memory.Preview) int { return p.Messages }, exported: "message"}
	ofAnswers  = cover{preview: func(p memory.Preview) int { return p.Answers }, exported: "answers repeat the messages"}
	ofFacts    = cover{preview: func(p memory.Preview) int { return p.Facts }, exported: "fact"}
	ofDigests  = cover{preview: func(p memory.Preview) int { return p.DigestLines }, exported: "digests repeat the messages"}
	ofDerived  = cover{preview: func(p memory.Preview) int { return p.Summaries }, exported: "summaries repeat the messages"}
	ofChats    = cover{preview: func(p memory.Preview) int { return p.Private + len(p.Groups) }, exported: "each message names its conversation"}
	ofLogins   = cover{preview: func(p memory.Preview) int { return p.Logins }, exported: "login"}
	ofRequests = cover{preview: func(p memory.Preview) int { return p.Compactions }, exported: "compaction"}
	ofTimes    = cover{preview: func(p memory.Preview) int { return p.Schedules }, exported: "schedule"}
	ofFiles    = cover{preview: func(p memory.Preview) int { return p.Files }, exported: "file"}
	ofUses     = cover{preview: func(p memory.Preview) int { return p.Usage }, exported: "usage"}
)

// personColumns are all columns that name a person after all that the person can do.
var personColumns = map[string]cover{
	"dingtalk_session_events.content":     ofMessages,
	"dingtalk_session_events.sender_id":   ofMessages,
	"dingtalk_session_events.sender_nick": ofMessages,
	"dingtalk_session_events.message":     ofMessages,
	"people.session_key":                  ofMessages,
	"people.person":                       ofMessages,
	"people.nick":                         ofMessages,
	"dingtalk_session_events.session_key": ofMessages, // a member's session has their id
	"dingtalk_session_events.tool_calls":  ofAnswers,
	"tool_runs.arguments":                 ofAnswers,
	"tool_runs.result":                    ofAnswers,
	"outbox.target":                       ofAnswers,
	"outbox.body":                         ofAnswers,
	"outbox.session_key":                  ofAnswers,
	"memories.content":                    ofFacts,
	"memories.subject_id":                 ofFacts,
	"memories.said_by":                    ofFacts,
	"memories.scope_id":                   ofFacts,
	"memories.source_session":             ofFacts,
	"memories.promoted_by":                {preview: func(p memory.Preview) int { return p.Promotions }, exported: "promotion"},
	"memory_flushes.session_key":          ofFacts,
	"memory_digests.session_key":          ofDigests,
	"embeddings.scope_key":                ofFacts,
	"dingtalk_sessions.session_key":       ofChats,
	"dingtalk_sessions.title":             ofChats,
	"dingtalk_sessions.pinned":            ofFacts,
	"session_summaries.summary":           ofDerived,
	"session_summaries.session_key":       ofDerived,
	"compaction_log.session_key":          ofDerived,
	"compaction_log.audit":                ofDerived,
	"compaction_log.error":                ofDerived,
	"compaction_log.focus":                ofDerived,
	"compaction_log.view_before":          ofDerived,
	"compaction_jobs.staged":              ofDerived,
	"compaction_requests.session_key":     ofDerived,
	"compaction_requests.focus":           ofDerived,
	"compaction_requests.requested_by":    ofRequests,
	"compaction_log.requested_by":         ofRequests,
	"flush_debts.reason":                  ofDerived,
	"flush_debts.session_key":             ofDerived,
	"blobs.body":                          ofDerived,
	"blobs.session_key":                   ofDerived,
	"embedding_cursors.session_key":       ofChats,
	"cards.session_key":                   ofChats,
	"model_usage.session_key":             ofUses,
	"model_usage.person":                  ofUses,
	"schedules.session_key":               ofTimes,
	"schedules.text":                      ofTimes,
	"schedules.created_by":                ofTimes,
	"schedules.creator":                   ofTimes,
	"files.session_key":                   ofFiles,
	"files.name":                          ofFiles,
	"files.sent_by":                       ofFiles,
	"files.kept_by":                       ofFiles,
	"document_pages.session_key":          ofFiles,
	"document_pages.body":                 ofFiles,
	"approvals.session_key":               ofMessages,
	"approvals.asked_by":                  ofMessages,
	"approvals.decided_by":                ofMessages,
	"approvals.arguments":                 ofAnswers,
	"sender_ids.sender_id":                {preview: func(p memory.Preview) int { return p.IDs }, exported: "id"},
	"sender_ids.staff_id":                 {preview: func(p memory.Preview) int { return p.IDs }, exported: "id"},
	"console_logins.actor":                ofLogins,
	"console_logins.nick":                 ofLogins,
	"audit.session_key":                   {preview: func(p memory.Preview) int { return p.Messages }, exported: "the actions of others"},
	"audit.person":                        {preview: func(p memory.Preview) int { return p.Messages }, exported: "the actions of others"},
	"audit.actor":                         {preview: func(p memory.Preview) int { return p.Actions }, exported: "action"},
}

// fullLife makes a person do everything that leaves rows.
func fullLife(t *testing.T, s *sql.Store, pool *pgxpool.Pool) {
	t.Helper()
	c := storetest.NewChat(t, s, "cid", "u", false)
	c.Introduce(storetest.Robot, storetest.ZhangID, storetest.ZhangOut)
	plantPerson(t, s, pool, c)
	dm := storetest.NewChat(t, s, "dm", storetest.ZhangID, true)
	dm.Exchange(storetest.ZhangID, "悄悄说 "+storetest.Secret, "好")
	dm.Save(storetest.OfPerson(storetest.ZhangID, "工资是 "+storetest.Secret))
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1', title = $1 WHERE conversation_id = 'dm'", storetest.ZhangNick)

	own := storetest.NewChat(t, s, "members", storetest.ZhangID, false)
	own.Reader.Key = sessions.NewKey(storetest.Robot, "members", storetest.ZhangID)
	own.Exchange(storetest.ZhangID, "我的车位是 "+storetest.Secret, "记下了 "+storetest.Secret)
	own.Exchange(storetest.ZhangID, "车位在哪？", "车位是 "+storetest.Secret)
	storetest.Must[memory.Receipt](t)(s.Flushes.Flush(t.Context(), own.Lease, memory.Flush{Through: 2, Last: true, Drafts: []memory.Draft{{
		Scope: memory.ScopeSession, ScopeID: string(own.Reader.Key), Kind: memory.KindTask, Content: "车位 " + storetest.Secret, StartSeq: 1, EndSeq: 2,
	}}}))
	if err := s.Flushes.Owe(t.Context(), own.Lease, memory.Debt{Through: 4, Failures: 1}); err != nil {
		t.Fatal(err)
	}
	storetest.Must[sessions.Compacted](t)(s.Compactions.Compact(t.Context(), own.Lease, storetest.SummaryOf(0, 2, "车位 "+storetest.Secret)))
	key := own.Reader.Key
	storetest.Execute(t, pool, `INSERT INTO embeddings (scope_key, content_hash, model, small, vec, seq) VALUES ($1, '\x01', 'm', 'x', '{1,0}', 1)`, key)
	storetest.Execute(t, pool, `INSERT INTO embedding_cursors (session_key, model, through_seq) VALUES ($1, 'm', 4)`, key)
	storetest.Execute(t, pool, `INSERT INTO blobs (session_key, blob_id, body) VALUES ($1, 'b', $2)`, key, storetest.Secret)
	storetest.Execute(t, pool, `INSERT INTO memory_digests (session_key, day) VALUES ($1, '2026-11-20')`, key)
	storetest.Execute(t, pool, `INSERT INTO cards (session_key, out_track_id, turn_event_id, state, settled_at) VALUES ($1, 'card', 1, 'finished', now())`, key)
	storetest.Execute(t, pool, `INSERT INTO compaction_requests (session_key, focus, requested_by) VALUES ($1, '', ''), ('robot/cid', $2, $3)`, key, "关于 "+storetest.ZhangNick, storetest.ZhangID)
	for _, k := range []string{string(key), "robot/cid"} {
		storetest.Execute(t, pool, `INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
			VALUES ($1, 1, 'remind', now() + interval '1 day', 'x', $2, $3, jsonb_build_object('sender_nick', $4::text), 'm')`, k, "交 "+storetest.Secret, storetest.ZhangID, storetest.ZhangNick)
		storetest.Execute(t, pool, `INSERT INTO approvals (session_key, id, turn_event_id, tool, arguments, asked_by, state, decided_by, decided_at, expires_at)
			VALUES ($1, 1, 0, 'x__y', $2, $3, 'waiting', '', NULL, now()), ($1, 2, 0, 'x__y', '{}', 'u', 'approved', $3, now(), now())`, k, storetest.Secret, storetest.ZhangID)
		storetest.Execute(t, pool, `INSERT INTO files (session_key, name, kind, media_id, bytes, pages, sent_by, kept_by, event_id, kept_event)
			VALUES ($1, $2, 'docx', 'theirs', 1, 1, $3, 'u', 0, 1), ($1, 'ours.docx', 'docx', 'ours', 1, 1, 'u', $3, 0, 1)`, k, storetest.Secret+".docx", storetest.ZhangID)
		storetest.Execute(t, pool, `INSERT INTO document_pages (session_key, media_id, page, body) VALUES ($1, 'theirs', 1, $2), ($1, 'ours', 1, 'x')`, k, storetest.Secret)
		storetest.Execute(t, pool, `INSERT INTO model_usage (session_key, day, kind, model, person, prompt_tokens) VALUES ($1, current_date, 'turn', 'qwen', $2, 70)`, k, storetest.ZhangID)
	}
	storetest.Execute(t, pool, "UPDATE compaction_log SET focus = $1, requested_by = $2 WHERE session_key = 'robot/cid'", storetest.Secret, storetest.ZhangID)
	storetest.Execute(t, pool, `INSERT INTO outbox (session_key, target, body, state, sender) VALUES ('robot/cid', jsonb_build_object('staff_id', $1::text), '好', 'waiting', 'a')`, storetest.ZhangID)
	storetest.Execute(t, pool, `INSERT INTO console_logins (token_hash, role, actor, nick, expires_at) VALUES ('\x01', 'person', $1, $2, now() + interval '1 hour')`, storetest.ZhangID, storetest.ZhangNick)
	storetest.Execute(t, pool, `INSERT INTO audit (session_key, actor, action) VALUES ('', $1, 'undo'), ('robot/cid', $1, 'compact'), ($2, 'cli:root', 'view_private'),
		('robot/dm', 'cli:root', 'view_private')`, storetest.ZhangID, key)
	storetest.Execute(t, pool, `INSERT INTO audit (session_key, actor, action, person) VALUES ('', 'cli:root', 'export_person', $1)`, storetest.ZhangID)
}

// holding lists the columns of text in which one of some words stands, and all of them.
func holding(t *testing.T, pool *pgxpool.Pool, words ...string) (held, all []string) {
	t.Helper()
	type column struct{ Table, Name, Kind string }
	for _, c := range storetest.Collect(t, pool, `SELECT c.table_name::text AS table, c.column_name::text AS name, c.data_type::text AS kind
		FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' AND c.data_type IN ('text', 'jsonb', 'json', 'bytea', 'character varying', 'ARRAY')
			AND c.table_name <> 'goose_db_version' ORDER BY 1, 2`, pgx.RowToStructByPos[column]) {
		name, value := c.Table+"."+c.Name, pgx.Identifier{c.Name}.Sanitize()+"::text"
		if c.Kind == "bytea" {
			value = "encode(" + pgx.Identifier{c.Name}.Sanitize() + ", 'escape')"
		}
		all = append(all, name)
		if n := storetest.Collect(t, pool, "SELECT count(*) FROM "+pgx.Identifier{c.Table}.Sanitize()+
			" x WHERE EXISTS (SELECT FROM unnest($1::text[]) w WHERE strpos("+value+", w) > 0)", pgx.RowTo[int64], words); n[0] > 0 {
			held = append(held, name)
		}
	}
	return held, all
}

// The preview of an erasure counts the rows of each column that names a person or holds their words. The export has them, or
// their source. The erasure removes the person from all of them.
func TestRightsCoverEachColumn(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]memory.Forget{
		"at every robot": {Person: storetest.ZhangID},
		"at one robot":   {Person: storetest.ZhangID, Robot: storetest.Robot},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := storetest.Open(t, sqltest.URL(t))
			fullLife(t, s, pool)
			rightsCoverEachColumn(t, s, pool, forget)
		})
	}
}

func rightsCoverEachColumn(t *testing.T, s *sql.Store, pool *pgxpool.Pool, forget memory.Forget) {
	words := []string{string(storetest.ZhangID), string(storetest.ZhangOut), storetest.ZhangNick, storetest.Secret}
	held, _ := holding(t, pool, words...)
	preview := storetest.Must[memory.Preview](t)(s.Erasure.PreviewForget(t.Context(), forget))
	exported := exportOf(t, s, forget.Robot)
	for _, column := range held {
		c, known := personColumns[column]
		switch {
		case !known:
			t.Errorf("%s names a person: the erasure, its preview and the export have to cover it", column)
			continue
		case c.preview(preview) == 0:
			t.Errorf("%s: the preview counts none of its rows: %+v", column, preview)
		}
		if !strings.Contains(c.exported, " ") && !slices.Contains(exported, c.exported) {
			t.Errorf("%s: the export has no %s, only %v", column, c.exported, exported)
		}
	}
	for column := range personColumns {
		if !slices.Contains(held, column) {
			t.Errorf("%s does not name the person who did everything", column)
		}
	}
	storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), forget))
	left, all := holding(t, pool, words...)
	for _, column := range left {
		t.Errorf("%s still names the person", column)
	}
	if len(all) < 100 {
		t.Errorf("only %d columns were looked at", len(all))
	}
	if p := storetest.Must[memory.Preview](t)(s.Erasure.PreviewForget(t.Context(), forget)); p.Usage+p.IDs+p.Logins+p.Promotions+p.Compactions+p.Schedules+p.Files+p.Facts+p.Messages+p.Private+p.Actions != 0 {
		t.Errorf("after the erasure the preview is %+v", p)
	}
	if kinds := exportOf(t, s, forget.Robot); len(kinds) > 0 {
		t.Errorf("after the erasure the export has %v", kinds)
	}
	auditWithoutThem(t, pool)
	if n := storetest.Collect(t, pool, "SELECT sum(prompt_tokens)::bigint FROM model_usage WHERE session_key = 'robot/cid'", pgx.RowTo[int64]); n[0] < 70 {
		t.Errorf("%d tokens are left of the group's usage, which the sums of the installation need", n[0])
	}
}

// auditWithoutThem checks that all actions are still there, under one stand-in for the person. The key of their private chat, by which
// their next message would name them, is gone too.
func auditWithoutThem(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	actions := storetest.Collect(t, pool, "SELECT regexp_replace(actor, '^erased-[0-9a-f]{12}$', 'erased') || ' ' || action || ' ' || session_key FROM audit ORDER BY id", pgx.RowTo[string])
	if want := []string{"erased undo ", "erased compact robot/cid", "cli:root view_private robot/members", "cli:root view_private robot/", "cli:root export_person "}; !slices.Equal(actions, want) {
		t.Errorf("the audit has %q, want %q", actions, want)
	}
	if actors := storetest.Collect(t, pool, "SELECT DISTINCT actor FROM audit WHERE actor LIKE 'erased-%'", pgx.RowTo[string]); len(actors) != 1 {
		t.Errorf("the actions of the person are those of %q", actors)
	}
}

// exportOf lists the kinds of rows in the export of the person.
func exportOf(t *testing.T, s *sql.Store, robot sessions.RobotCode) (kinds []string) {
	t.Helper()
	if len(storetest.Must[[]memory.Memory](t)(s.Rights.FactsOf(t.Context(), robot, storetest.ZhangID, 0, 10))) > 0 {
		kinds = append(kinds, "fact")
	}
	if len(storetest.Must[[]memory.PersonMessage](t)(s.Rights.MessagesOf(t.Context(), robot, storetest.ZhangID, 0, 10))) > 0 {
		kinds = append(kinds, "message")
	}
	for _, r := range storetest.Must[[]memory.Record](t)(s.Rights.RecordsOf(t.Context(), robot, storetest.ZhangID)) {
		if isSchedule := r.Kind == memory.RecordSchedule; isSchedule != (r.Spec == "x" && r.Way == sessions.Remind && r.DueAt.After(r.At)) {
			t.Errorf("the record %+v has no times, or those of a reminder", r)
		}
		if r.Rows == 0 || r.At.IsZero() {
			t.Errorf("record %+v has no rows or no time", r)
		}
		kinds = append(kinds, string(r.Kind))
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// Usage loses the names of people without a message, as retention leaves it.
func TestUsageOfForgottenPeople(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.LiID, false)
	c.Exchange(storetest.ZhangID, "我的手机号是 "+storetest.Secret, "好")
	for _, who := range []sessions.UserID{storetest.ZhangID, storetest.LiID, ""} {
		storetest.Execute(t, pool, `INSERT INTO model_usage (session_key, day, kind, model, person, prompt_tokens, cost) VALUES ($1, current_date, 'turn', 'qwen', $2, 70, 0.5)`, c.Reader.Key, who)
	}
	usage := func() []string {
		return storetest.Collect(t, pool, `SELECT person || ' ' || sum(prompt_tokens) || ' ' || sum(cost) FROM model_usage GROUP BY person ORDER BY person`, pgx.RowTo[string])
	}
	tidy := func() {
		t.Helper()
		if _, err := s.FactUpkeep.DeleteExpired(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	tidy()
	if got := usage(); len(got) != 3 {
		t.Errorf("usage of people with messages is %q", got)
	}
	storetest.Execute(t, pool, "UPDATE dingtalk_session_events SET sender_id = '', sender_nick = '', content = 'x' WHERE sender_id = $1", storetest.ZhangID)
	storetest.Execute(t, pool, "DELETE FROM people WHERE person = $1", storetest.ZhangID)
	tidy()
	if got, want := usage(), []string{" 140 1", string(storetest.LiID) + " 70 0.5"}; !slices.Equal(got, want) {
		t.Errorf("usage is %q, want %q", got, want)
	}
}

// The hourly run takes people without a message from the sessions that the audit names, and deletes logins that are over. An older
// release, which does not know these rows, may have erased the people.
func TestConsoleRecordsOfForgottenPeople(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	member := storetest.NewChat(t, s, "members", storetest.LiID, false)
	member.Reader.Key = sessions.NewKey(storetest.Robot, "members", storetest.LiID)
	member.Exchange(storetest.LiID, "早上好", "早")
	storetest.Execute(t, pool, `INSERT INTO audit (session_key, actor, action, outcome) VALUES ('robot/members/staff4711', 'admin', 'compact', 'done'),
		($1, 'admin', 'undo', 'done'), ('robot/members', 'admin', 'debts', ''), ('', 'admin', 'export', '')`, member.Reader.Key)
	storetest.Execute(t, pool, `INSERT INTO console_logins (token_hash, role, actor, nick, expires_at)
		VALUES ('\x01', 'person', 'staff4711', '王五', now() - interval '1 second'), ('\x02', 'person', $1, '李娜', now() + interval '1 hour')`, storetest.LiID)
	for range 2 {
		if _, err := s.FactUpkeep.DeleteExpired(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	actions := storetest.Collect(t, pool, "SELECT session_key || ' ' || action || ' ' || outcome FROM audit ORDER BY id", pgx.RowTo[string])
	if want := []string{"robot/members compact done", string(member.Reader.Key) + " undo done", "robot/members debts ", " export "}; !slices.Equal(actions, want) {
		t.Errorf("the audit has %q, want %q", actions, want)
	}
	if logins := storetest.Collect(t, pool, "SELECT nick FROM console_logins", pgx.RowTo[string]); !slices.Equal(logins, []string{"李娜"}) {
		t.Errorf("logins are %q, want the one in force", logins)
	}
}

// An action on a member's session that runs during the erasure of the member gets its outcome, also when its end waits for the
// erasure.
func TestActionDuringAnErasure(t *testing.T) {
	t.Parallel()
	for _, waits := range []bool{false, true} {
		t.Run(fmt.Sprintf("waits %v", waits), func(t *testing.T) {
			t.Parallel()
			s, pool := storetest.Open(t, sqltest.URL(t))
			c := storetest.NewChat(t, s, "members", storetest.LiID, false)
			c.Reader.Key = sessions.NewKey(storetest.Robot, "members", storetest.ZhangID)
			c.Exchange(storetest.ZhangID, "我的车位是 "+storetest.Secret, "记下了")
			a := pages.Action{Key: c.Reader.Key, Actor: "admin", Action: "compact"}
			a.ID = storetest.Must[int64](t)(s.Pages().Begin(t.Context(), a))
			end := func() error { return s.Pages().End(t.Context(), a, "done") }
			if waits {
				tx := storetest.Must[pgx.Tx](t)(pool.Begin(t.Context()))
				if err := dbsqlc.New().AuditUnname(t.Context(), tx, &dbsqlc.AuditUnnameParams{SessionKeys: []string{string(c.Reader.Key)}}); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error)
				go func() { ended <- end() }()
				storetest.AwaitBlocked(t, pool)
				if err := tx.Commit(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
			} else {
				storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), memory.Forget{Person: storetest.ZhangID}))
				if err := end(); err != nil {
					t.Fatal(err)
				}
			}
			if got := storetest.Collect(t, pool, "SELECT session_key || ' ' || outcome FROM audit", pgx.RowTo[string]); !slices.Equal(got, []string{"robot/members done"}) {
				t.Errorf("the audit has %q", got)
			}
		})
	}
}
