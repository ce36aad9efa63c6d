package storetest

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Planner stands where queries expect a database, and instead of running them has them explained.
type Planner struct {
	*pgxpool.Pool
	Plan string
}

// Query implements dbsqlc.DBTX: no row comes back.
func (p *Planner) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	rows, err := p.Pool.Query(ctx, "EXPLAIN "+query, args...)
	if err != nil {
		return nil, err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	p.Plan = strings.Join(lines, "\n")
	return p.Pool.Query(ctx, "SELECT WHERE false")
}

// QueryRow implements dbsqlc.DBTX: the row has one number.
func (p *Planner) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	rows, err := p.Query(ctx, query, args...)
	if err != nil {
		return failedRow{err}
	}
	rows.Close()
	return p.Pool.QueryRow(ctx, "SELECT 0::bigint")
}

// SendBatch implements dbsqlc.DBTX: the plan is that of the last statement, and nothing is changed.
func (p *Planner) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	for _, q := range b.QueuedQueries {
		rows, err := p.Query(ctx, q.SQL, q.Arguments...)
		if err != nil {
			p.Plan = err.Error()
			continue
		}
		rows.Close()
	}
	return noResults{}
}

type noResults struct{ pgx.BatchResults }

// Exec implements pgx.BatchResults.
func (noResults) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, nil }

// QueryRow implements pgx.BatchResults.
func (noResults) QueryRow() pgx.Row { return failedRow{pgx.ErrNoRows} }

// Close implements pgx.BatchResults.
func (noResults) Close() error { return nil }

// failedRow is the row of a query that failed.
type failedRow struct{ err error }

// Scan implements pgx.Row.
func (r failedRow) Scan(...any) error { return r.err }

// Exec implements dbsqlc.DBTX: nothing is changed.
func (p *Planner) Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error) {
	rows, err := p.Query(ctx, query, args...)
	if err == nil {
		rows.Close()
	}
	return pgconn.CommandTag{}, err
}

// RowPlanner explains queries of one row, too. The row has no value.
type RowPlanner struct{ *Planner }

// QueryRow implements dbsqlc.DBTX.
func (p RowPlanner) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	rows, err := p.Query(ctx, query, args...)
	if err == nil {
		rows.Close()
	}
	return p.Pool.QueryRow(ctx, "SELECT WHERE false")
}

// FillLog makes a database of many people's logs, replies, facts, usage of 400 days and actions, whose plans tests read.
var FillLog = []string{
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
