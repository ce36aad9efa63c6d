-- Keeps an account of each process. Oldest release that can run on it: 0.1.

-- +goose Up

-- One row per process, which it writes while it runs and when it stops. One that was killed is closed by another, with the
-- figures that it wrote last. There is no session_key: a process has many sessions.
CREATE TABLE restarts (
    replica     text PRIMARY KEY CHECK (replica <> ''),
    started_at  timestamptz NOT NULL DEFAULT now(),
    stopped_at  timestamptz,
    ending      text NOT NULL DEFAULT '' CHECK (ending IN ('', 'clean', 'killed')),
    told        boolean NOT NULL DEFAULT false, -- another process has logged it
    answered    bigint NOT NULL DEFAULT 0,
    drained     bigint NOT NULL DEFAULT 0,
    flushed     bigint NOT NULL DEFAULT 0,
    debt        bigint NOT NULL DEFAULT 0,
    resumed     bigint NOT NULL DEFAULT 0,
    redelivered bigint NOT NULL DEFAULT 0,
    doubled     bigint NOT NULL DEFAULT 0,
    lost        bigint NOT NULL DEFAULT 0,

    CONSTRAINT ended_or_running CHECK ((ending = '') = (stopped_at IS NULL))
);

CREATE INDEX restarts_started_at ON restarts (started_at);

-- A replica that drains leads no more, and one that is connected is where a hot standby's leader may leave.
ALTER TABLE replicas ADD COLUMN draining boolean NOT NULL DEFAULT false, ADD COLUMN connected boolean NOT NULL DEFAULT false;

-- +goose Down

ALTER TABLE replicas DROP COLUMN draining, DROP COLUMN connected;
DROP TABLE restarts;
