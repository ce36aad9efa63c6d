package sql_test

import (
	"slices"
	"testing"
	"time"

	"ebb/memory"
	"ebb/sql/sqltest"

	"github.com/jackc/pgx/v5"
)

// An expired fact is not read; said again it is back; long after it is deleted.
func TestExpiry(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u1", false)
	task := memory.Draft{Scope: memory.ScopeSession, ScopeID: string(c.reader.Key), Kind: memory.KindTask, Content: "needle: write the report"}
	task.ExpiresAt = time.Now().Add(-time.Hour)
	first := c.save(task)
	c.wantKnown()
	if hits := c.search("needle report"); len(hits) != 0 {
		t.Errorf("what expired is found: %+v", hits)
	}
	if n, err := s.DeleteExpired(t.Context()); err != nil || n != 0 {
		t.Errorf("what has just expired is deleted: %d (%v)", n, err)
	}
	task.ExpiresAt = time.Now().Add(time.Hour)
	if r := c.save(task); !slices.Equal(r.Duplicate, first.Saved) {
		t.Errorf("said again it gave %+v", r)
	}
	c.wantKnown("needle: write the report")
	execute(t, pool, "UPDATE memories SET expires_at = now() - interval '31 days'")
	if n, err := s.DeleteExpired(t.Context()); err != nil || n != 1 {
		t.Errorf("deleted %d (%v), want 1", n, err)
	}
}

// The marks of messages that were deleted with their session go after a day.
func TestMarksOfDeletedMessagesExpire(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	execute(t, pool, `INSERT INTO deleted_messages (message, deleted_at) VALUES ('new', now() - interval '23 hours'), ('old', now() - interval '25 hours')`)
	if _, err := s.DeleteExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left string
	if err := pool.QueryRow(t.Context(), "SELECT string_agg(convert_from(message, 'UTF8'), ' ') FROM deleted_messages").Scan(&left); err != nil || left != "new" {
		t.Errorf("%q is left (%v), want the new one", left, err)
	}
}

// The newest ten encrypted ids of a person stay for each robot, and those that two people had.
func TestOldSenderIDsExpire(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	execute(t, pool, `INSERT INTO sender_ids (sender_id, robot_code, staff_id, seen_at)
		SELECT '$:' || robot || i, robot, 'staff1', now() - i * interval '1 minute' FROM generate_series(1, 15) AS i, unnest(ARRAY['r1', 'r2']) AS robot`)
	execute(t, pool, `INSERT INTO sender_ids (sender_id, robot_code, staff_id) VALUES ('$:r115', 'r1', 'staff2'), ('$:r2x', 'r2', 'staff2')`)
	for range 2 {
		if _, err := s.DeleteExpired(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got := collect(t, pool, "SELECT concat_ws(' ', robot_code, staff_id, count(*), min(sender_id)) FROM sender_ids GROUP BY robot_code, staff_id ORDER BY 1", pgx.RowTo[string])
	if want := []string{"r1 staff1 11 $:r11", "r1 staff2 1 $:r115", "r2 staff1 10 $:r21", "r2 staff2 1 $:r2x"}; !slices.Equal(got, want) {
		t.Errorf("%q are left, want %q", got, want)
	}
	if n := collect(t, pool, "SELECT count(*) FROM sender_ids WHERE sender_id IN ('$:r111', '$:r112', '$:r211', '$:r215')", pgx.RowTo[int]); n[0] != 0 {
		t.Errorf("%d old ids are left", n[0])
	}
}
