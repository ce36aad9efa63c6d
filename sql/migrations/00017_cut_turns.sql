-- Counts the turns that erasures ended. Oldest release that can run on it: 0.1.

-- +goose Up

-- Who works on the table goes first: everything else would wait behind this, and the start tries again.
SET LOCAL lock_timeout = '3s';

-- How many turns erasures ended since the last turn that was committed.
ALTER TABLE dingtalk_sessions ADD COLUMN cut_turns integer NOT NULL DEFAULT 0;

-- +goose Down

ALTER TABLE dingtalk_sessions DROP COLUMN cut_turns;
