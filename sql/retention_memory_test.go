package sql_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/sql/sqltest"
)

// A value that was changed and changed back has two memories with one text and one vector. The vector goes with the last of
// them, and not with the history alone.
func TestRetentionKeepsVectorsInForce(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	execute(t, pool, `INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, superseded_by, last_seen_at)
		VALUES ('group', 'r/a', 'fact', 'port 80', '\x01', 'r/a', 99, now() - interval '90 hours'),
			('group', 'r/a', 'fact', 'port 443', '\x02', 'r/a', 99, now() - interval '80 hours'),
			('group', 'r/a', 'fact', 'port 80', '\x01', 'r/a', NULL, now()),
			('group', 'r/b', 'fact', 'port 80', '\x01', 'r/b', 99, now() - interval '90 hours'),
			('group', 'r/b', 'fact', 'port 80', '\x01', 'r/b', NULL, now() - interval '80 hours')`)
	execute(t, pool, `INSERT INTO embeddings (scope_key, content_hash, model, vec, small)
		SELECT DISTINCT scope || '|' || scope_id, sha256(convert_to(content, 'UTF8')), 'm', '{1}'::real[], '\x01'::bytea FROM memories`)
	if n, err := s.ExpireMemories(t.Context(), period); err != nil || n != 4 {
		t.Fatalf("%d memories are deleted (%v), want 4", n, err)
	}
	left := collect(t, pool, `SELECT e.scope_key || ' ' || (e.content_hash = sha256(convert_to('port 80', 'UTF8'))) FROM embeddings e`, pgx.RowTo[string])
	if !slices.Equal(left, []string{"group|r/a true"}) {
		t.Errorf("vectors are left of %q, want of the memory in force alone", left)
	}
}
