-- Counts the attempts at a message by their cause. Oldest release that can run on it: 0.1.

-- +goose Up

-- Who works on the table goes first: everything else would wait behind this, and the start tries again.
SET LOCAL lock_timeout = '3s';

-- attempt_term is the term of the lease under which a turn has the message; counted_term is the term whose turn was
-- counted last, because its process seemed dead. A process that comes back finds its turn by it.
ALTER TABLE dingtalk_session_events ADD COLUMN attempt_term bigint, ADD COLUMN counted_term bigint;

-- The term of the last lease that was taken from a replica without a heartbeat. Marks of other terms ended on purpose.
ALTER TABLE dingtalk_sessions ADD COLUMN fallen_term bigint NOT NULL DEFAULT 0;

-- +goose Down

ALTER TABLE dingtalk_sessions DROP COLUMN fallen_term;
ALTER TABLE dingtalk_session_events DROP COLUMN attempt_term, DROP COLUMN counted_term;
