package retention_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A value that was changed and changed back has two memories with one text and one vector. The vector goes with the last of
// them, and not with the history alone.
func TestRetentionKeepsVectorsInForce(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	storetest.Execute(t, pool, `INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, superseded_by, last_seen_at)
		VALUES ('group', 'r/a', 'fact', 'port 80', '\x01', 'r/a', 99, now() - interval '90 hours'),
			('group', 'r/a', 'fact', 'port 443', '\x02', 'r/a', 99, now() - interval '80 hours'),
			('group', 'r/a', 'fact', 'port 80', '\x01', 'r/a', NULL, now()),
			('group', 'r/b', 'fact', 'port 80', '\x01', 'r/b', 99, now() - interval '90 hours'),
			('group', 'r/b', 'fact', 'port 80', '\x01', 'r/b', NULL, now() - interval '80 hours')`)
	storetest.Execute(t, pool, `INSERT INTO embeddings (scope_key, content_hash, model, vec, small)
		SELECT DISTINCT scope || '|' || scope_id, sha256(convert_to(content, 'UTF8')), 'm', '{1}'::real[], '\x01'::bytea FROM memories`)
	if n, err := s.Retention.ExpireMemories(t.Context(), storetest.Period); err != nil || n != 4 {
		t.Fatalf("%d memories are deleted (%v), want 4", n, err)
	}
	left := storetest.Collect(t, pool, `SELECT e.scope_key || ' ' || (e.content_hash = sha256(convert_to('port 80', 'UTF8'))) FROM embeddings e`, pgx.RowTo[string])
	if !slices.Equal(left, []string{"group|r/a true"}) {
		t.Errorf("vectors are left of %q, want of the memory in force alone", left)
	}
}

// A memory leaves the heads of views and undo data with its row or not at all. Sessions that can't read it are not touched.
func TestRetentionUnpinsReaders(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	group, dm, other := storetest.NewChat(t, s, "cid", "u1", false), storetest.NewChat(t, s, "dm", "u1", true), storetest.NewChat(t, s, "other", "u2", false)
	group.Save(storetest.SaidBy(group, "保险柜放在三楼档案室里", "u1", 1))
	dm.Save(storetest.FactAbout("u1", "u1 打算下个月换到杭州"))
	storetest.Execute(t, pool, `UPDATE dingtalk_sessions SET pinned = '保险柜放在三楼档案室里 u1 打算下个月换到杭州', pinned_due = false`)
	storetest.Execute(t, pool, `INSERT INTO compaction_log (session_key, outcome, view_before) VALUES ($1, 'committed', '{"pinned": "保险柜放在三楼档案室里"}')`, group.Reader.Key)
	storetest.Execute(t, pool, `UPDATE memories SET last_seen_at = now() - interval '90 hours'`)

	storetest.Execute(t, pool, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$`)
	storetest.Execute(t, pool, `CREATE TRIGGER refuse BEFORE UPDATE ON dingtalk_sessions FOR EACH ROW EXECUTE FUNCTION refuse()`)
	if n, err := s.Retention.ExpireMemories(t.Context(), storetest.Period); err == nil || n != 0 {
		t.Errorf("%d memories are deleted although their texts stay (%v)", n, err)
	}
	storetest.Execute(t, pool, `DROP TRIGGER refuse ON dingtalk_sessions`)
	if n, err := s.Retention.ExpireMemories(t.Context(), storetest.Period); err != nil || n != 2 {
		t.Fatalf("%d memories are deleted (%v), want 2", n, err)
	}
	for _, c := range []*storetest.Chat{group, dm, other} {
		want := c != other
		if got := storetest.Collect(t, pool, "SELECT pinned = '' AND pinned_due FROM dingtalk_sessions WHERE session_key = $1", pgx.RowTo[bool], c.Reader.Key); got[0] != want {
			t.Errorf("session %s is to pin memory again: %t, want %t", c.Reader.Key, got[0], want)
		}
	}
	if left := storetest.Collect(t, pool, "SELECT view_before ->> 'pinned' FROM compaction_log", pgx.RowTo[string]); left[0] != "" {
		t.Errorf("an undo shows %q", left[0])
	}
}

// Two replicas may both delete for a moment. Each row is counted once, and neither fails.
func TestRetentionOfTwoReplicas(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	s, pool := storetest.Open(t, url)
	other, _ := storetest.Open(t, url)
	const rows = 200
	storetest.Execute(t, pool, `INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type) VALUES ('robot/a', 'robot', 'a', '2')`)
	storetest.Execute(t, pool, `INSERT INTO outbox (session_key, target, body, state, sender, settled_at)
		SELECT 'robot/a', '{}', 'sent', 'sent', '', now() - i * interval '90 hours' FROM generate_series(1, $1::int) AS i`, rows)
	storetest.Execute(t, pool, `INSERT INTO compaction_log (session_key, outcome, created_at) SELECT 'robot/a', 'nothing', now() - i * interval '90 hours' FROM generate_series(1, $1::int) AS i`, rows)
	storetest.Execute(t, pool, `INSERT INTO audit (actor, action, at) SELECT 'admin', 'old', now() - i * interval '90 hours' FROM generate_series(1, $1::int) AS i`, rows)
	for name, expire := range map[string]func(*sql.Store) (int, error){
		"replies":     func(s *sql.Store) (int, error) { return s.Retention.ExpireReplies(t.Context(), storetest.Period) },
		"compactions": func(s *sql.Store) (int, error) { return s.Retention.ExpireCompactions(t.Context(), storetest.Period) },
		"actions":     func(s *sql.Store) (int, error) { return s.Retention.ExpireActions(t.Context(), storetest.Period) },
	} {
		var counts [2]int
		var errs [2]error
		var both sync.WaitGroup
		for i, one := range []*sql.Store{s, other} {
			both.Go(func() { counts[i], errs[i] = expire(one) })
		}
		both.Wait()
		if err := errors.Join(errs[:]...); err != nil || counts[0]+counts[1] != rows {
			t.Errorf("%s: %v of %d rows are deleted, %v", name, counts, rows, err)
		}
	}
}
