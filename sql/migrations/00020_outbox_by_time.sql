-- Finds a session's replies by their times with an index. Oldest release that can run on it: 0.1.

-- +goose NO TRANSACTION
-- +goose Up

-- For quotes of the bot's answers, which are known by the time of their reply alone. An index is built while others write;
-- a build that was cut off leaves an invalid index behind.
DROP INDEX CONCURRENTLY IF EXISTS outbox_by_time;
CREATE INDEX CONCURRENTLY outbox_by_time ON outbox (session_key, created_at);

-- +goose Down

DROP INDEX CONCURRENTLY IF EXISTS outbox_by_time;
