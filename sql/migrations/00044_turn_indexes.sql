-- Narrows indexes that plans of a turn took, and that few readers need. Oldest release that can run on it: 0.1.

-- An index is built while others write. A build that was cut off leaves an invalid index behind, hence each is dropped
-- first.

-- +goose NO TRANSACTION
-- +goose Up

-- A condition on the time implies the second predicate, one on the session alone does not. A plan that was made before the first
-- ANALYZE took the former index for the places of a view, and read the whole log of a session.
DROP INDEX CONCURRENTLY IF EXISTS events_at_time;
CREATE INDEX CONCURRENTLY events_at_time ON dingtalk_session_events (session_key, created_at) WHERE seq IS NOT NULL AND created_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS events_by_time;

-- For the same reason this index has settled replies alone. Few are open, and outbox_open has them.
DROP INDEX CONCURRENTLY IF EXISTS outbox_settled_by_time;
CREATE INDEX CONCURRENTLY outbox_settled_by_time ON outbox (session_key, created_at) WHERE settled_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS outbox_by_time;

-- A reply that is sent loses its address. One that an erasure gave up keeps it.
DROP INDEX CONCURRENTLY IF EXISTS outbox_settled_to_person;
CREATE INDEX CONCURRENTLY outbox_settled_to_person ON outbox ((target ->> 'staff_id'), session_key)
    WHERE state IN ('sent', 'failed') AND target ->> 'staff_id' <> '';
DROP INDEX CONCURRENTLY IF EXISTS outbox_to_person;

-- +goose Down

DROP INDEX CONCURRENTLY IF EXISTS events_by_time;
CREATE INDEX CONCURRENTLY events_by_time ON dingtalk_session_events (session_key, created_at) WHERE seq IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS events_at_time;
DROP INDEX CONCURRENTLY IF EXISTS outbox_by_time;
CREATE INDEX CONCURRENTLY outbox_by_time ON outbox (session_key, created_at);
DROP INDEX CONCURRENTLY IF EXISTS outbox_settled_by_time;
DROP INDEX CONCURRENTLY IF EXISTS outbox_to_person;
CREATE INDEX CONCURRENTLY outbox_to_person ON outbox ((target ->> 'staff_id'), session_key) WHERE target ->> 'staff_id' <> '';
DROP INDEX CONCURRENTLY IF EXISTS outbox_settled_to_person;
