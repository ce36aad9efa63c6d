-- Pages the compaction log by an index. Oldest release that can run on it: 0.1.

-- +goose NO TRANSACTION
-- +goose Up

-- An index is built while others write; a build that was cut off leaves an invalid index behind.
DROP INDEX CONCURRENTLY IF EXISTS compaction_log_by_time;
CREATE INDEX CONCURRENTLY compaction_log_by_time ON compaction_log (created_at, id);
DROP INDEX CONCURRENTLY IF EXISTS compaction_log_created_at;

-- +goose Down

DROP INDEX CONCURRENTLY IF EXISTS compaction_log_created_at;
CREATE INDEX CONCURRENTLY compaction_log_created_at ON compaction_log (created_at);
DROP INDEX CONCURRENTLY IF EXISTS compaction_log_by_time;
