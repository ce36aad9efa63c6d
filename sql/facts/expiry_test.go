package facts_test

import (
	"slices"
	"testing"
	"time"

	"ebb/memory"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// An expired fact is not read; said again it is back; long after it is deleted.
func TestExpiry(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	task := memory.Draft{Scope: memory.ScopeSession, ScopeID: string(c.Reader.Key), Kind: memory.KindTask, Content: "needle: write the report"}
	task.ExpiresAt = time.Now().Add(-time.Hour)
	first := c.Save(task)
	wantKnown(c)
	if hits := c.Search("needle report"); len(hits) != 0 {
		t.Errorf("what expired is found: %+v", hits)
	}
	if n, err := s.FactUpkeep.DeleteExpired(t.Context()); err != nil || n != 0 {
		t.Errorf("what has just expired is deleted: %d (%v)", n, err)
	}
	task.ExpiresAt = time.Now().Add(time.Hour)
	if r := c.Save(task); !slices.Equal(r.Duplicate, first.Saved) {
		t.Errorf("said again it gave %+v", r)
	}
	wantKnown(c, "needle: write the report")
	storetest.Execute(t, pool, "UPDATE memories SET expires_at = now() - interval '31 days'")
	if n, err := s.FactUpkeep.DeleteExpired(t.Context()); err != nil || n != 1 {
		t.Errorf("deleted %d (%v), want 1", n, err)
	}
}
