-- Adds reminders and other messages at set times. Oldest release that can run on it: 0.1.

-- +goose Up

-- An active schedule has its next time in due_at, an ended one its last. The transaction that moves due_at stores the message, so
-- that each time counts once. origin names the command or the tool call that set the schedule: repeated, it sets no second one.
CREATE TABLE schedules (
    session_key text        NOT NULL,
    id          bigint      NOT NULL, -- from 1 on in each session
    state       text        NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'done', 'cancelled')),
    kind        text        NOT NULL CHECK (kind IN ('remind', 'ask')),
    due_at      timestamptz NOT NULL,
    spec        text        NOT NULL, -- the times, as package bot/schedule/when writes them
    text        text        NOT NULL,
    created_by  text        NOT NULL,
    creator     jsonb       NOT NULL, -- the message of the creator that later messages repeat: ids, nick and conversation
    origin      text        NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    settled_at  timestamptz,

    PRIMARY KEY (session_key, id),
    CONSTRAINT schedule_settled_or_active CHECK ((settled_at IS NULL) = (state = 'active'))
);
CREATE UNIQUE INDEX schedules_origin ON schedules (session_key, origin);
CREATE INDEX schedules_due ON schedules (due_at) WHERE state = 'active';
CREATE INDEX schedules_settled ON schedules (settled_at) WHERE state <> 'active';
CREATE INDEX schedules_by_creator ON schedules (created_by);
CREATE INDEX schedules_by_age ON schedules (created_at, session_key, id);

-- +goose Down

DROP TABLE schedules;
