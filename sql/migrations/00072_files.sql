-- Keeps files that the people of a session asked to keep. Oldest release that can run on it: 0.1.

-- +goose Up

ALTER TABLE dingtalk_sessions ADD COLUMN files integer NOT NULL DEFAULT 0;
ALTER TABLE document_pages ADD COLUMN terms bigint[];

CREATE INDEX document_pages_terms ON document_pages USING gin (terms) WITH (fastupdate = off) WHERE terms IS NOT NULL;

CREATE TABLE files (
    session_key text NOT NULL,
    id          bigint GENERATED ALWAYS AS IDENTITY,
    name        text NOT NULL CHECK (name <> ''),
    version     integer NOT NULL DEFAULT 1,
    kind        text NOT NULL,
    media_id    text NOT NULL CHECK (media_id <> ''),
    bytes       bigint NOT NULL,
    pages       integer NOT NULL,
    sent_by     text NOT NULL DEFAULT '',
    kept_by     text NOT NULL DEFAULT '',
    event_id    bigint NOT NULL,
    kept_event  bigint NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, id)
);

CREATE INDEX files_of_sender ON files (sent_by) WHERE sent_by <> '';
CREATE INDEX files_of_keeper ON files (kept_by) WHERE kept_by <> '';
