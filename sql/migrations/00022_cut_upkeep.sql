-- Counts the flushes and compactions that erasures ended. Oldest release that can run on it: 0.1.

-- +goose Up

-- Who works on the table goes first: everything else would wait behind this, and the start tries again.
SET LOCAL lock_timeout = '3s';

-- A flush or a compaction is under way under the lease of this term, until this time at most; cut_upkeep is how many of them
-- erasures ended since the last one that stored something.
ALTER TABLE dingtalk_sessions
    ADD COLUMN upkeep_term bigint NOT NULL DEFAULT 0,
    ADD COLUMN upkeep_until timestamptz,
    ADD COLUMN cut_upkeep integer NOT NULL DEFAULT 0;

-- +goose Down

ALTER TABLE dingtalk_sessions
    DROP COLUMN cut_upkeep,
    DROP COLUMN upkeep_until,
    DROP COLUMN upkeep_term;
