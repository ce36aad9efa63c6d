-- Keeps settings of single conversations, made by command. Oldest release that can run on it: 0.1.

-- +goose Up

-- Who works on the table goes first: everything else would wait behind this, and the start tries again.
SET LOCAL lock_timeout = '3s';

-- What the conversation is compacted by in place of the file's settings: an object of keys of agent.compaction. NULL for
-- none.
ALTER TABLE dingtalk_sessions ADD COLUMN settings jsonb CHECK (jsonb_typeof(settings) = 'object');

-- +goose Down

ALTER TABLE dingtalk_sessions DROP COLUMN settings;
