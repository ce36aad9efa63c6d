-- Counts turns, tokens and notices in windows of time, for the limits of people and groups. Oldest release that can run on it: 0.1.

-- +goose Up

-- A row is the latest window of one subject; it is over at ends_at, and the next use begins another one. The subject is a
-- hash: nothing that names a person is left behind. There is no session_key: a person's limit is of all conversations.
CREATE TABLE limit_windows (
    subject bytea PRIMARY KEY,
    ends_at timestamptz NOT NULL,
    used    bigint NOT NULL DEFAULT 0,
    -- The message whose notice was given in the window; empty for none, or for a notice that no message may repeat.
    noticed text NOT NULL DEFAULT ''
);

-- +goose Down

DROP TABLE limit_windows;
