-- Finds a day's events by an index. Oldest release that can run on it: 0.1.

-- +goose NO TRANSACTION
-- +goose Up

-- What came on one day, for its digest. An index is built while others write; a build that was cut off leaves an invalid
-- index behind.
DROP INDEX CONCURRENTLY IF EXISTS events_by_time;
CREATE INDEX CONCURRENTLY events_by_time ON dingtalk_session_events (session_key, created_at) WHERE seq IS NOT NULL;

-- +goose Down

DROP INDEX CONCURRENTLY IF EXISTS events_by_time;
