-- Records who asked for a compaction or an undo. Oldest release that can run on it: 0.1.

-- +goose NO TRANSACTION
-- +goose Up

-- requested_by is the id of a person, or the name of an operator as in the audit; empty for an automatic compaction.
ALTER TABLE compaction_log ADD COLUMN IF NOT EXISTS requested_by text NOT NULL DEFAULT '';
ALTER TABLE compaction_requests ADD COLUMN IF NOT EXISTS requested_by text NOT NULL DEFAULT '';
-- An index is built while others write; a build that was cut off leaves an invalid index behind.
DROP INDEX CONCURRENTLY IF EXISTS compaction_log_by_requester;
CREATE INDEX CONCURRENTLY compaction_log_by_requester ON compaction_log (requested_by) WHERE requested_by <> '';

-- +goose Down

DROP INDEX CONCURRENTLY IF EXISTS compaction_log_by_requester;
ALTER TABLE compaction_requests DROP COLUMN IF EXISTS requested_by;
ALTER TABLE compaction_log DROP COLUMN IF EXISTS requested_by;
