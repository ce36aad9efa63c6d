package retention_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/dbsqlc"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// agedLog is a session whose events have an age each. The places begin at 1.
type agedLog struct {
	ages     []int // hours, the oldest first
	roles    []sessions.Role
	flushed  int   // events in memory
	cuts     []int // places of the compactions, in order; each wrote a summary of the events since the one before
	owedFrom int   // -1: nothing is owed
	unsent   int   // place of the answer whose reply is not sent; 0: none
	pending  int   // messages that wait, all of them old
	dead     int   // dead letters, all of them old
	upkeep   bool
}

func drawLog(t *rapid.T) agedLog {
	l := agedLog{owedFrom: -1}
	for range rapid.IntRange(0, 12).Draw(t, "turns") {
		for range rapid.IntRange(1, 3).Draw(t, "messages") {
			l.roles = append(l.roles, sessions.RoleUser)
		}
		for range rapid.IntRange(0, 3).Draw(t, "answers") {
			l.roles = append(l.roles, sessions.RoleAssistant)
		}
	}
	n := len(l.roles)
	l.ages = rapid.SliceOfN(rapid.IntRange(1, 100), n, n).Draw(t, "ages")
	slices.SortFunc(l.ages, func(a, b int) int { return b - a })
	l.flushed = rapid.IntRange(0, n).Draw(t, "flushed")
	for i := 1; i <= n && len(l.cuts) < 4; i++ {
		if rapid.IntRange(0, 3).Draw(t, "cut") == 0 {
			l.cuts = append(l.cuts, i)
		}
	}
	if n > 0 && rapid.Bool().Draw(t, "owed") {
		l.owedFrom = rapid.IntRange(0, n-1).Draw(t, "owed from")
	}
	if n > 0 && rapid.Bool().Draw(t, "has an unsent reply") {
		l.unsent = rapid.IntRange(1, n).Draw(t, "unsent")
	}
	l.pending, l.dead = rapid.IntRange(0, 2).Draw(t, "pending"), rapid.IntRange(0, 2).Draw(t, "dead")
	l.upkeep = rapid.IntRange(0, 9).Draw(t, "upkeep") == 0
	return l
}

// due is the number of events that may be deleted when those of 50 hours and more are past their period.
func (l agedLog) due() int {
	n := 0
	for n < len(l.ages) && l.ages[n] >= 50 && n < l.flushed && (l.owedFrom < 0 || n < l.owedFrom) && (l.unsent == 0 || l.ages[n] > l.ages[l.unsent-1]) && !l.upkeep {
		n++
	}
	for ; n > 0 && n < len(l.roles); n-- {
		if l.roles[n] == sessions.RoleUser || l.roles[n-1] != sessions.RoleUser && l.ages[n] != l.ages[n-1] { // answers of other commits
			return n
		}
	}
	return n
}

// compacted is the number of events behind the cut.
func (l agedLog) compacted() int {
	if len(l.cuts) == 0 {
		return 0
	}
	return l.cuts[len(l.cuts)-1]
}

// store writes the log as a session.
func (l agedLog) store(t *testing.T, pool *pgxpool.Pool, key sessions.Key) {
	t.Helper()
	owner, until := "NULL", "NULL"
	if l.upkeep {
		owner, until = "'gone'", "now() + interval '1 hour'"
	}
	storetest.Execute(t, pool, `INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, last_seq, flushed_seq,
		compacted_seq, total_tokens, lease_owner, upkeep_term, upkeep_until) VALUES ($1, 'robot', 'cid', '2', $2, $3, $4, $5, `+owner+`, 0, `+until+`)`,
		key, len(l.ages), l.flushed, l.compacted(), 10*(len(l.ages)-l.compacted())+7*len(l.cuts))
	for i, age := range l.ages {
		storetest.Execute(t, pool, `INSERT INTO dingtalk_session_events (session_key, seq, role, content, sender_id, msg_id, tokens, created_at)
			VALUES ($1, $2, $3, $4, $5, CASE WHEN $3 = 'user' THEN $4 END, 10, $6)`,
			key, i+1, l.roles[i], fmt.Sprintf("event %d", i+1), "u1", logStart.Add(-time.Duration(age)*time.Hour))
	}
	for i := range l.pending + l.dead {
		state := "pending"
		if i >= l.pending {
			state = "dead"
		}
		storetest.Execute(t, pool, `INSERT INTO dingtalk_session_events (session_key, role, state, content, msg_id, created_at)
			VALUES ($1, 'user', $2, 'open', $3, $4)`, key, state, fmt.Sprintf("open %d", i), logStart.Add(-1000*time.Hour))
	}
	if l.owedFrom >= 0 {
		storetest.Execute(t, pool, "INSERT INTO flush_debts (session_key, from_seq, through_seq) VALUES ($1, $2, $3)", key, l.owedFrom, len(l.ages))
	}
	if l.unsent > 0 {
		storetest.Execute(t, pool, `INSERT INTO outbox (session_key, target, body, state, sender, created_at)
			VALUES ($1, '{}', 'answer', 'waiting', '', $2)`, key, logStart.Add(-time.Duration(l.ages[l.unsent-1])*time.Hour))
	}
	before := 0
	for i, cut := range l.cuts { // each compaction keeps the summaries of the former view for its undo
		storetest.Execute(t, pool, `WITH old AS (
				SELECT coalesce(jsonb_agg(a.id ORDER BY a.start_seq), '[]') AS ids FROM session_summaries a WHERE a.session_key = $1
			), s AS (
				INSERT INTO session_summaries (session_key, gen, start_seq, end_seq, start_msg_id, end_msg_id, msg_count, summary, tokens)
				VALUES ($1, 0, $2::bigint + 1, $3::bigint, 1, 2, $3::bigint - $2::bigint, 'summary ' || $4::int, 7) RETURNING id)
			INSERT INTO compaction_log (session_key, start_seq, end_seq, summary_id, outcome, view_before, created_at)
			SELECT $1, $2::bigint + 1, $3::bigint, s.id, 'committed', jsonb_build_object('cursor', $2::bigint, 'summaries', old.ids), now() FROM s, old`,
			key, before, cut, i+1)
		before = cut
	}
}

// logStart is the time that ages count from.
var logStart = time.Now()

// Retention deletes the events past their period and nothing that waits, is unflushed, owed, unsent or set aside; a second run
// deletes nothing more. The view stays whole, and an undo either works or says that its data is gone.
func TestRetentionKeepsOpenWork(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		l := drawLog(rt)
		runs++
		key := sessions.Key(fmt.Sprintf("robot/cid%d", runs))
		l.store(t, pool, key)
		deleted := 0
		for {
			n, err := s.Retention.ExpireEvents(t.Context(), key, storetest.Period)
			if err != nil {
				rt.Fatal(err)
			}
			if deleted += n; n == 0 {
				break
			}
		}
		want := l.due()
		left := storetest.PlacesOf(t, pool, key)
		if deleted != want || len(left) != len(l.ages)-want || len(left) > 0 && left[0] != int64(want+1) {
			rt.Fatalf("deleted %d events, want %d; left %v\n%+v", deleted, want, left, l)
		}
		if open := storetest.Collect(t, pool, "SELECT count(*) FROM dingtalk_session_events WHERE session_key = $1 AND state <> 'done'", pgx.RowTo[int], key); open[0] != l.pending+l.dead {
			rt.Fatalf("%d messages wait or are set aside, want %d", open[0], l.pending+l.dead)
		}
		checkView(rt, s, pool, key, l, want)
	})
}

// checkView checks the session of a log whose first events are deleted.
func checkView(rt *rapid.T, s *sql.Store, pool *pgxpool.Pool, key sessions.Key, l agedLog, deleted int) {
	session, err := s.Sessions.Session(rt.Context(), key)
	if err != nil {
		rt.Fatal(err)
	}
	cut := max(l.compacted(), deleted)
	left := slices.DeleteFunc(slices.Clone(l.cuts), func(end int) bool { return end <= deleted })
	summaries := len(left)
	if session.CompactedSeq != int64(cut) || session.TotalTokens != 10*(len(l.ages)-cut)+7*summaries {
		rt.Fatalf("the view begins after %d with %d tokens, want %d with %d\n%+v", session.CompactedSeq, session.TotalTokens, cut, 10*(len(l.ages)-cut)+7*summaries, l)
	}
	if stored := count(rt, pool, "SELECT count(*) FROM session_summaries WHERE session_key = $1", key); stored != summaries {
		rt.Fatalf("%d summaries are stored, want %d\n%+v", stored, summaries, l)
	}
	first := 0 // the last place whose deletion leaves the events of the view before the newest compaction
	if len(l.cuts) > 1 {
		first = l.cuts[len(l.cuts)-2]
	}
	_, err = s.Compactions.UndoCompaction(rt.Context(), key, 0, "cli:root", 0)
	switch {
	case len(l.cuts) == 0 && !errors.Is(err, sessions.ErrNotFound),
		len(l.cuts) > 0 && deleted > first && !errors.Is(err, sessions.ErrUndoExpired),
		len(l.cuts) > 0 && deleted <= first && err != nil:
		rt.Fatalf("an undo after %d deleted events gave %v\n%+v", deleted, err, l)
	}
	owed := l.owedFrom >= 0
	for i := l.flushed; i < len(l.ages); i++ {
		owed = owed || l.ages[i] >= 50
	}
	if debts := count(rt, pool, "SELECT count(*) FROM flush_debts WHERE session_key = $1", key); (debts == 1) != owed {
		rt.Fatalf("%d flushes are owed, want one: %t\n%+v", debts, owed, l)
	}
}

func count(rt *rapid.T, pool *pgxpool.Pool, query string, args ...any) (n int) {
	if err := pool.QueryRow(rt.Context(), query, args...).Scan(&n); err != nil {
		rt.Fatal(err)
	}
	return n
}

// A process that dies between two batches leaves a log that begins with a turn, and another process deletes the rest.
func TestRetentionGoesOnAfterADeath(t *testing.T) {
	t.Parallel()
	address := sqltest.URL(t)
	first, pool := storetest.Open(t, address)
	l := agedLog{owedFrom: -1, cuts: []int{900}}
	for i := range 1400 {
		l.ages = append(l.ages, 100)
		l.roles = append(l.roles, []sessions.Role{sessions.RoleUser, sessions.RoleAssistant}[i%2])
	}
	l.ages[1399], l.ages[1398], l.flushed = 1, 1, 1400
	l.store(t, pool, "robot/cid")
	n, err := first.Retention.ExpireEvents(t.Context(), "robot/cid", storetest.Period)
	if err != nil || n == 0 || n >= 900 {
		t.Fatalf("the first batch has %d events (%v)", n, err)
	}
	first.Close()
	if left := storetest.PlacesOf(t, pool, "robot/cid"); len(left) != 1400-n || left[0] != int64(n+1) || n%2 != 0 {
		t.Fatalf("%d events are left after the first batch of %d, from %d on", len(left), n, left[0])
	}
	second, _ := storetest.Open(t, address)
	for n > 0 {
		if n, err = second.Retention.ExpireEvents(t.Context(), "robot/cid", storetest.Period); err != nil {
			t.Fatal(err)
		}
	}
	if left := storetest.PlacesOf(t, pool, "robot/cid"); !slices.Equal(left, []int64{1399, 1400}) {
		t.Errorf("left are %v, want the young turn", left)
	}
	session, err := second.Sessions.Session(t.Context(), "robot/cid")
	if err != nil || session.BaseSeq != 1398 || session.CompactedSeq != 1398 || session.TotalTokens != 20 {
		t.Errorf("the session is %+v (%v), want a view of the young turn alone", session, err)
	}
}

// Rows without a place in a log go after their own periods. Open replies stay, and a deleted memory is in no head of a view.
func TestRetentionOfRows(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	storetest.Execute(t, pool, `INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, pinned)
		VALUES ('robot/a', 'robot', 'a', '2', 'facts: an old fact'), ('robot/b', 'robot', 'b', '2', 'facts: a new fact')`)
	storetest.Execute(t, pool, `INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, last_seen_at)
		VALUES ('group', 'robot/a', 'fact', 'an old fact', '\x01', 'robot/a', now() - interval '90 hours'),
			('group', 'robot/b', 'fact', 'a new fact', '\x02', 'robot/b', now())`)
	storetest.Execute(t, pool, `INSERT INTO outbox (session_key, target, body, state, sender, created_at, settled_at)
		VALUES ('robot/a', '{}', 'sent long ago', 'sent', '', now() - interval '90 hours', now() - interval '90 hours'),
			('robot/a', '{}', 'open', 'waiting', '', now() - interval '90 hours', NULL), ('robot/a', '{}', 'sent now', 'sent', '', now(), now())`)
	storetest.Execute(t, pool, `INSERT INTO compaction_log (session_key, outcome, created_at) VALUES ('robot/a', 'nothing', now() - interval '90 hours'), ('robot/a', 'failed', now())`)
	storetest.Execute(t, pool, `INSERT INTO audit (actor, action, at) VALUES ('admin', 'old', now() - interval '90 hours'), ('admin', 'new', now())`)
	storetest.Execute(t, pool, `INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin, state, settled_at)
		VALUES ('robot/a', 1, 'remind', now(), '', 'ended long ago', 'u', '{}', 'a', 'done', now() - interval '90 hours'),
			('robot/a', 2, 'remind', now() - interval '90 hours', '', 'active reminder', 'u', '{}', 'b', 'active', NULL),
			('robot/a', 3, 'ask', now(), '', 'ended now', 'u', '{}', 'c', 'cancelled', now())`)
	storetest.Execute(t, pool, `INSERT INTO approvals (session_key, id, turn_event_id, tool, arguments, asked_by, state, decided_by, decided_at, expires_at)
		VALUES ('robot/a', 1, 1, 'x__y', 'decided long ago', 'u', 'approved', 'u', now() - interval '90 hours', now()),
			('robot/a', 2, 1, 'x__y', 'the last number', 'u', 'rejected', 'u', now() - interval '90 hours', now()),
			('robot/b', 1, 1, 'x__y', 'decided now', 'u', 'approved', 'u', now(), now()), ('robot/b', 2, 1, 'x__y', 'waiting', 'u', 'waiting', '', NULL, now() - interval '90 hours')`)
	for name, expire := range map[string]func() (int, error){
		"approvals":   func() (int, error) { return s.Retention.ExpireApprovals(t.Context(), storetest.Period) },
		"schedules":   func() (int, error) { return s.Retention.ExpireSchedules(t.Context(), storetest.Period) },
		"memories":    func() (int, error) { return s.Retention.ExpireMemories(t.Context(), storetest.Period) },
		"compactions": func() (int, error) { return s.Retention.ExpireCompactions(t.Context(), storetest.Period) },
		"replies":     func() (int, error) { return s.Retention.ExpireReplies(t.Context(), storetest.Period) },
		"actions":     func() (int, error) { return s.Retention.ExpireActions(t.Context(), storetest.Period) },
	} {
		for _, want := range []int{1, 0} {
			if n, err := expire(); err != nil || n != want {
				t.Errorf("%s: %d rows are deleted (%v), want %d", name, n, err, want)
			}
		}
	}
	left := storetest.Collect(t, pool, `SELECT body FROM outbox UNION ALL SELECT action FROM audit UNION ALL SELECT content FROM memories
		UNION ALL SELECT text FROM schedules UNION ALL SELECT arguments || asked_by || decided_by FROM approvals UNION ALL SELECT outcome FROM compaction_log UNION ALL SELECT pinned FROM dingtalk_sessions ORDER BY 1`, pgx.RowTo[string])
	if want := []string{"", "", "a new fact", "active reminder", "decided nowuu", "ended now", "facts: a new fact", "failed", "new", "open", "sent now", "waitingu"}; !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}

// The mark of an expired summary is looked for in the log next to it, not in the events of the later months.
func TestRetentionReadsTheLogBesideASummary(t *testing.T) {
	t.Parallel()
	pool := sqltest.New(t)
	storetest.Execute(t, pool, `INSERT INTO dingtalk_session_events (session_key, seq, role, content, msg_id, created_at)
		SELECT 'k', i, 'user', 'said ' || i, 'm' || i, now() - interval '1 hour' * (30000 - i) FROM generate_series(1, 10) i`)
	storetest.Execute(t, pool, `INSERT INTO dingtalk_session_events (session_key, role, content, created_at)
		VALUES ('k', 'summary', 'first', now() - interval '1 hour' * 29990)`)
	storetest.Execute(t, pool, `INSERT INTO dingtalk_session_events (session_key, seq, role, content, msg_id, created_at)
		SELECT 'k', i, 'user', 'said ' || i, 'm' || i, now() - interval '1 hour' * (30000 - i) FROM generate_series(11, 29999) i`)
	storetest.Execute(t, pool, `INSERT INTO dingtalk_session_events (session_key, role, content) VALUES ('k', 'summary', 'first')`)
	storetest.Execute(t, pool, `INSERT INTO session_summaries (session_key, gen, start_seq, end_seq, start_msg_id, end_msg_id, msg_count, summary, tokens, created_at)
		SELECT 'k', 0, 1, 10, min(id), max(id), 10, 'first', 7, now() - interval '1 hour' * 29990 FROM dingtalk_session_events WHERE seq <= 10`)
	storetest.Execute(t, pool, "ANALYZE")
	p := &storetest.Planner{Pool: pool}
	_, _ = dbsqlc.New().SummariesExpire(t.Context(), p, &dbsqlc.SummariesExpireParams{SessionKey: "k", ThroughSeq: 10, Erased: sessions.ErasedText})
	if !strings.Contains(p.Plan, "(id > g.end_msg_id) AND (id < ") || strings.Contains(p.Plan, "Seq Scan on dingtalk_session_events") {
		t.Errorf("the marks are found by\n%s", p.Plan)
	}
	storetest.Must[int64](t)(dbsqlc.New().SummariesExpire(t.Context(), pool, &dbsqlc.SummariesExpireParams{SessionKey: "k", ThroughSeq: 10, Erased: sessions.ErasedText}))
	if n := storetest.Number(t, pool, "SELECT count(*) FROM dingtalk_session_events WHERE role = 'summary'"); n != 1 {
		t.Errorf("%d marks are left, want that of a later summary with the same text", n)
	}
}

// The undo of a compaction that replaced summaries is gone with one of these: its events are in no other part of the former view.
func TestRetentionOfReplacedSummaries(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	chat := storetest.NewChat(t, s, "cid", "u", false) // 1 and 2
	key := chat.Reader.Key
	for len(storetest.PlacesOf(t, pool, key)) < 14 {
		chat.Say("u", "hello")
	}
	for i, start := range []int64{1, 5, 1} { // the third replaces both
		c := storetest.SummaryOf(int64(4*i), int64(4*i)+4, fmt.Sprint("summary ", i))
		c.Summaries[0].StartSeq = start
		storetest.Must[sessions.Compacted](t)(s.Compactions.Compact(t.Context(), chat.Lease, c))
	}
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET flushed_seq = 14 WHERE session_key = $1", key)
	storetest.Execute(t, pool, "UPDATE dingtalk_session_events SET created_at = now() - interval '100 hours' WHERE session_key = $1 AND seq <= 4", key)
	if n, err := s.Retention.ExpireEvents(t.Context(), key, storetest.Period); err != nil || n != 4 {
		t.Fatalf("deleted %d events (%v), want 4", n, err)
	}
	if _, err := s.Compactions.UndoCompaction(t.Context(), key, 0, "cli:root", 0); !errors.Is(err, sessions.ErrUndoExpired) {
		t.Errorf("the undo gave %v, want that its data is gone", err)
	}
}

// Each stretch of one role goes, in batches that never part a call from its results.
func TestRetentionOfLongTurns(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	const calls = "CASE WHEN i = 1 THEN 'user' WHEN i % 7 = 2 THEN 'assistant' ELSE 'tool' END"
	for i, c := range []struct {
		role string
		old  int // events past the period
	}{
		{"'assistant'", 1200},
		{"'assistant'", 9000},
		{calls, 1200},
		{calls, 9000},
		{"'user'", 1200},
		{"'user'", 9000},
	} {
		key := sessions.Key(fmt.Sprintf("robot/cid%d", i))
		storetest.Execute(t, pool, `INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, last_seq, flushed_seq)
			VALUES ($1, 'robot', $1, '2', $2::bigint + 2, $2::bigint + 2)`, key, c.old)
		storetest.Execute(t, pool, `INSERT INTO dingtalk_session_events (session_key, seq, role, content, msg_id, tokens, created_at)
			SELECT $1, i, role, 'x', CASE WHEN role = 'user' THEN 'm' || i END, 1, CASE WHEN i > $2::bigint THEN now() ELSE now() - interval '90 hours' END
			FROM (SELECT i, CASE i - $2::bigint WHEN 1 THEN 'user' WHEN 2 THEN 'assistant' ELSE `+c.role+` END AS role FROM generate_series(1, $2::bigint + 2) AS i) e`, key, c.old)
		for deleted := 1; deleted > 0; {
			var err error
			if deleted, err = s.Retention.ExpireEvents(t.Context(), key, storetest.Period); err != nil || deleted > 500 {
				t.Fatalf("%d events of %s: a batch has %d events (%v), want 500 at most", c.old, c.role, deleted, err)
			}
			if first := storetest.Collect(t, pool, "SELECT role FROM dingtalk_session_events WHERE session_key = $1 ORDER BY seq LIMIT 1", pgx.RowTo[string], key); first[0] == "tool" {
				t.Fatalf("%d events of %s: the log begins with the result of a deleted call", c.old, c.role)
			}
		}
		if left := len(storetest.PlacesOf(t, pool, key)); left != 2 {
			t.Errorf("%d events of %s: %d are left, want the young ones", c.old, c.role, left)
		}
	}
}

// A summary of deleted events alone goes with the last of them, whatever compactions came later, and the view begins behind it. One
// that covers a later event stays.
func TestRetentionOfSummaries(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	for i, c := range []struct {
		old  int      // events past the period, of 14
		left []string // summaries in the view
		base int64
		undo error
	}{
		{2, []string{"first", "second", "third"}, 0, nil},
		{4, []string{"second", "third"}, 4, nil},
		{6, []string{"second", "third"}, 4, nil},
		{8, []string{"third"}, 8, nil},
		{12, []string{}, 12, sessions.ErrUndoExpired},
		{14, []string{}, 14, sessions.ErrUndoExpired},
	} {
		chat := storetest.NewChat(t, s, sessions.ConversationID(fmt.Sprintf("cid%d", i)), "u", false) // 1 and 2
		for len(storetest.PlacesOf(t, pool, chat.Reader.Key)) < 14 {
			chat.Say("u", "hello")
		}
		key := chat.Reader.Key
		for i, text := range []string{"first", "second", "third"} {
			storetest.Must[sessions.Compacted](t)(s.Compactions.Compact(t.Context(), chat.Lease, storetest.SummaryOf(int64(4*i), int64(4*i)+4, text)))
		}
		storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET flushed_seq = 14 WHERE session_key = $1", key)
		storetest.Execute(t, pool, "UPDATE dingtalk_session_events SET created_at = now() - interval '100 hours' WHERE session_key = $1 AND seq <= $2", key, c.old)
		for n := 1; n > 0; {
			var err error
			if n, err = s.Retention.ExpireEvents(t.Context(), key, storetest.Period); err != nil {
				t.Fatal(err)
			}
		}
		session := storetest.Must[sessions.Session](t)(s.Sessions.Session(t.Context(), key))
		left := storetest.Collect(t, pool, "SELECT summary FROM session_summaries WHERE session_key = $1 ORDER BY start_seq", pgx.RowTo[string], key)
		if !slices.Equal(left, c.left) || session.BaseSeq != c.base || session.CompactedSeq != int64(max(12, c.old)) {
			t.Errorf("%d expired events left %q, and a view after %d cut at %d", c.old, left, session.BaseSeq, session.CompactedSeq)
		}
		if marks := storetest.Collect(t, pool, "SELECT content FROM dingtalk_session_events WHERE session_key = $1 AND role = 'summary' ORDER BY id", pgx.RowTo[string], key); !slices.Equal(marks, c.left) {
			t.Errorf("%d expired events left the marks %q in the log", c.old, marks)
		}
		if _, err := s.Compactions.UndoCompaction(t.Context(), key, 0, "cli:root", 0); !errors.Is(err, c.undo) {
			t.Errorf("an undo after %d expired events gave %v, want %v", c.old, err, c.undo)
		}
		if c.undo == nil { // the view is whole: the next compaction covers the events without a gap
			storetest.Must[sessions.Compacted](t)(s.Compactions.Compact(t.Context(), chat.Lease, storetest.SummaryOf(8, 12, "third again")))
		}
	}
}
