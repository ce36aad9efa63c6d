-- Keeps compactions that an administrator asked for until a replica has executed them. Oldest release that can run on it: 0.1.

-- +goose Up

-- One row a session, from the request to the end of its attempt. The replica that has the session's lease executes it, or any
-- one where the lease is free. started_at is of the last attempt; a replica that dies leaves the row to the next one.
CREATE TABLE compaction_requests (
    session_key  text PRIMARY KEY,
    settings     text NOT NULL DEFAULT '', -- the session's settings with those of the request, as JSON; empty: none
    focus        text NOT NULL DEFAULT '',
    requested_at timestamptz NOT NULL DEFAULT now(),
    started_at   timestamptz,
    attempts     integer NOT NULL DEFAULT 0
);

-- +goose Down

DROP TABLE compaction_requests;
