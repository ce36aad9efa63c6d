-- Finds rows that are past their retention period by indexes. Oldest release that can run on it: 0.1.

-- +goose NO TRANSACTION
-- +goose Up

-- An index is built while others write; a build that was cut off leaves an invalid index behind.
DROP INDEX CONCURRENTLY IF EXISTS memories_by_last_seen;
CREATE INDEX CONCURRENTLY memories_by_last_seen ON memories (last_seen_at);
DROP INDEX CONCURRENTLY IF EXISTS outbox_by_settled;
CREATE INDEX CONCURRENTLY outbox_by_settled ON outbox (settled_at) WHERE settled_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS audit_by_time;
CREATE INDEX CONCURRENTLY audit_by_time ON audit (at);

-- +goose Down

DROP INDEX CONCURRENTLY IF EXISTS memories_by_last_seen;
DROP INDEX CONCURRENTLY IF EXISTS outbox_by_settled;
DROP INDEX CONCURRENTLY IF EXISTS audit_by_time;
