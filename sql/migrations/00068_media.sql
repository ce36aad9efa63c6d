-- Keeps the pictures and the texts of files that people send. Oldest release that can run on it: 0.1.

-- +goose Up

CREATE TABLE attachments (
    session_key text NOT NULL,
    event_id    bigint NOT NULL,
    place       integer NOT NULL,
    kind        text NOT NULL DEFAULT '',
    name        text NOT NULL DEFAULT '',
    fault       text NOT NULL DEFAULT '',
    media_id    text NOT NULL DEFAULT '',
    bytes       bigint NOT NULL DEFAULT 0,
    pages       integer NOT NULL DEFAULT 0,
    tokens      integer NOT NULL DEFAULT 0,
    created_at  timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, event_id, place)
);

CREATE TABLE pictures (
    session_key text NOT NULL,
    media_id    text NOT NULL CHECK (media_id <> ''),
    type        text NOT NULL,
    body        bytea NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, media_id)
);

CREATE INDEX pictures_by_time ON pictures (created_at);

CREATE TABLE document_pages (
    session_key text NOT NULL,
    media_id    text NOT NULL CHECK (media_id <> ''),
    page        integer NOT NULL,
    title       text NOT NULL DEFAULT '',
    body        text NOT NULL,

    PRIMARY KEY (session_key, media_id, page)
);
ALTER TABLE pictures ALTER COLUMN body SET STORAGE EXTERNAL;
