-- Keeps the search index of events beside the log. No older release can run on it.

-- +goose Up

-- The search index of a session's log. Its places up to through_seq are indexed, except those of again, whose text changed.
-- version: of the rules of terms.
CREATE TABLE event_index (
    session_key  text     NOT NULL PRIMARY KEY,
    through_seq  bigint   NOT NULL DEFAULT 0,
    again        bigint[] NOT NULL DEFAULT '{}',
    next_segment int      NOT NULL DEFAULT 1,
    version      integer  NOT NULL DEFAULT 0
);

-- Terms of an indexed event: a hash of 4 bytes for each, as often as the text has it, and one of its flags.
CREATE TABLE event_terms (
    session_key text   NOT NULL,
    seq         bigint NOT NULL,
    terms       bytea  NOT NULL,
    PRIMARY KEY (session_key, seq)
);

-- Segments of the index: an inverted index of some events each. sizes: a byte for each place from first_seq on, the class of the
-- text's size. bits: of a hash that select its block.
CREATE TABLE event_segments (
    session_key text     NOT NULL,
    segment     int      NOT NULL,
    first_seq   bigint   NOT NULL,
    texts       int      NOT NULL,
    bits        integer  NOT NULL,
    sizes       bytea    NOT NULL,
    PRIMARY KEY (session_key, segment)
);

-- Blocks of a segment: terms with the places of their events.
CREATE TABLE event_postings (
    session_key text  NOT NULL,
    segment     int   NOT NULL,
    block       int   NOT NULL,
    postings    bytea NOT NULL,
    PRIMARY KEY (session_key, segment, block)
);
-- Terms and blocks are packed: the server's compression would find nothing.
ALTER TABLE event_terms ALTER COLUMN terms SET STORAGE EXTERNAL;
ALTER TABLE event_postings ALTER COLUMN postings SET STORAGE EXTERNAL;

-- Not searched: commands and reminders, with their answers. Their list of terms was empty.
ALTER TABLE dingtalk_session_events ADD COLUMN searched boolean NOT NULL DEFAULT true;
DROP INDEX events_terms;
DROP INDEX events_unindexed;
UPDATE dingtalk_session_events SET searched = false WHERE terms = '{}';
ALTER TABLE dingtalk_session_events DROP COLUMN terms, DROP COLUMN terms_version;
