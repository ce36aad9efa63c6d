-- Keeps files that replies send until they are sent. Oldest release that can run on it: 0.1.

-- +goose Up

CREATE TABLE sent_files (
    session_key text NOT NULL,
    id          bigint GENERATED ALWAYS AS IDENTITY,
    event_id    bigint NOT NULL,
    source      text NOT NULL,
    name        text NOT NULL,
    kind        text NOT NULL,
    body        bytea NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, id)
);
ALTER TABLE sent_files ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE UNIQUE INDEX sent_files_source ON sent_files (session_key, event_id, source);
CREATE INDEX sent_files_by_time ON sent_files (created_at);
