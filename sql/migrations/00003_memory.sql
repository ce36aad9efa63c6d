-- Makes room for what memory is to be relied on for: where, how long, found by what. Oldest release that can run on it: 0.1.

-- +goose Up

ALTER TABLE memories
    -- What the fact is the value of, as in "release date": a newer one of the same key in the same scope supersedes it.
    ADD COLUMN fact_key text NOT NULL DEFAULT '',
    -- Who said it, and when; source_group is the conversation, and empty for a private chat: what was said there is
    -- never read in a group.
    ADD COLUMN said_by text NOT NULL DEFAULT '',
    ADD COLUMN said_at timestamptz,
    ADD COLUMN source_group text NOT NULL DEFAULT '',
    -- Nobody reads it after that; NULL: it stays.
    ADD COLUMN expires_at timestamptz,
    ADD COLUMN last_seen_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN seen integer NOT NULL DEFAULT 1,
    ADD COLUMN superseded_at timestamptz,
    -- Of a memory of the team: who made it one.
    ADD COLUMN promoted_by text NOT NULL DEFAULT '',
    -- Tells what others told that left force for it, with all the rows that were made in the same transaction.
    ADD COLUMN consolidated boolean NOT NULL DEFAULT false,
    -- What a search finds it by, each a hash of scope and term, as often as the text has it. NULL: not indexed yet.
    ADD COLUMN terms bigint[];

CREATE INDEX memories_terms ON memories USING gin (terms) WITH (fastupdate = off);
CREATE INDEX memories_unindexed ON memories (scope, scope_id, id) WHERE terms IS NULL;
CREATE INDEX memories_id ON memories (id);
-- What people said of themselves in a group, for that group.
CREATE INDEX memories_said ON memories (source_group, id) WHERE scope = 'user' AND source_group <> '';
CREATE INDEX memories_source ON memories (source_session, end_seq);
CREATE INDEX memories_consolidated ON memories (scope, scope_id, created_at) WHERE consolidated;
CREATE INDEX memories_expiring ON memories (expires_at) WHERE expires_at IS NOT NULL;

ALTER TABLE dingtalk_session_events
    ADD COLUMN terms bigint[],
    -- A cheap look found something that may be worth remembering.
    ADD COLUMN candidate boolean NOT NULL DEFAULT false;

ALTER TABLE dingtalk_sessions
    -- How many of the events after flushed_seq are candidates.
    ADD COLUMN candidates integer NOT NULL DEFAULT 0,
    -- The next turn reads pinned anew: of a session that begins, and where a memory was taken out of pinned.
    ADD COLUMN pinned_due boolean NOT NULL DEFAULT true;

CREATE INDEX events_terms ON dingtalk_session_events USING gin (terms) WITH (fastupdate = off);
CREATE INDEX events_unindexed ON dingtalk_session_events (session_key, seq)
    WHERE terms IS NULL AND seq IS NOT NULL AND role IN ('user', 'assistant');
CREATE INDEX events_of_person ON dingtalk_session_events (sender_id, session_key) WHERE sender_id <> '';

-- One row for each flush that came through, or each part of one: the receipt.
CREATE TABLE memory_flushes (
    session_key       text NOT NULL,
    id                bigint GENERATED ALWAYS AS IDENTITY,
    trigger           text NOT NULL DEFAULT '',
    gen               integer NOT NULL DEFAULT 0,
    epoch             integer NOT NULL DEFAULT 0,
    from_seq          bigint NOT NULL,
    through_seq       bigint NOT NULL,
    saved             bigint[] NOT NULL DEFAULT '{}',
    duplicate         bigint[] NOT NULL DEFAULT '{}',
    superseded        bigint[] NOT NULL DEFAULT '{}',
    model             text NOT NULL DEFAULT '',
    prompt_tokens     bigint NOT NULL DEFAULT 0,
    completion_tokens bigint NOT NULL DEFAULT 0,
    created_at        timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, id)
);

-- The flush that came before a compaction.
ALTER TABLE compaction_log ADD COLUMN flush_id bigint;

-- Vectors by the hash of what they are of, so that a text is embedded once. scope_key is the session of events, and
-- scope and id of memories. Events have the place of the first of them that says it; memories have 0. small is the vector
-- in a byte a number, behind what they are multiples of, for a first look: a server sends bytes faster than numbers. An
-- empty vector is of a text that the endpoint refuses.
CREATE TABLE embeddings (
    scope_key    text NOT NULL,
    content_hash bytea NOT NULL,
    model        text NOT NULL,
    vec          real[] NOT NULL,
    small        bytea NOT NULL,
    seq          bigint NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (scope_key, model, content_hash)
);

ALTER TABLE embeddings ALTER COLUMN vec SET STORAGE EXTERNAL; -- numbers like these do not get smaller
CREATE INDEX embeddings_hash ON embeddings (content_hash);
CREATE INDEX embeddings_model ON embeddings (model);

-- Up to where a session's events have vectors of a model.
CREATE TABLE embedding_cursors (
    session_key text NOT NULL,
    model       text NOT NULL,
    through_seq bigint NOT NULL,

    PRIMARY KEY (session_key, model)
);

-- One row for each conversation and day that was told as a digest, or had nothing to tell.
CREATE TABLE memory_digests (
    session_key text NOT NULL,
    day         date NOT NULL,
    memory_id   bigint,
    attempts    integer NOT NULL DEFAULT 0,
    error       text NOT NULL DEFAULT '',
    done        boolean NOT NULL DEFAULT false,
    updated_at  timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, day)
);

-- +goose Down

DROP TABLE memory_digests;
DROP TABLE embedding_cursors;
DROP TABLE embeddings;
ALTER TABLE compaction_log DROP COLUMN flush_id;
DROP TABLE memory_flushes;

ALTER TABLE dingtalk_sessions
    DROP COLUMN candidates,
    DROP COLUMN pinned_due;

ALTER TABLE dingtalk_session_events
    DROP COLUMN terms,
    DROP COLUMN candidate;

DROP INDEX memories_id;
DROP INDEX memories_source;
DROP INDEX events_of_person;

ALTER TABLE memories
    DROP COLUMN fact_key,
    DROP COLUMN said_by,
    DROP COLUMN said_at,
    DROP COLUMN source_group,
    DROP COLUMN expires_at,
    DROP COLUMN last_seen_at,
    DROP COLUMN seen,
    DROP COLUMN superseded_at,
    DROP COLUMN promoted_by,
    DROP COLUMN consolidated,
    DROP COLUMN terms;
