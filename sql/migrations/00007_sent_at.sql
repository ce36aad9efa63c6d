-- Keeps when messages were sent. Oldest release that can run on it: 0.1.

-- +goose Up

-- Who works on the table goes first: everything else would wait behind this, and the start tries again.
SET LOCAL lock_timeout = '3s';

-- When a message was sent, by DingTalk's clock: turns take messages in this order. Where that is not known, or can't be
-- true, it is when the message arrived.
ALTER TABLE dingtalk_session_events ADD COLUMN sent_at timestamptz NOT NULL DEFAULT now();

-- +goose Down

ALTER TABLE dingtalk_session_events DROP COLUMN sent_at;
