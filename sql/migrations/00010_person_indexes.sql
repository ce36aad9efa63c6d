-- Finds what is kept of a person by indexes. Oldest release that can run on it: 0.1.

-- An index is built while others write. A build that was cut off leaves an invalid index behind, hence each is dropped
-- first.

-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS events_by_nick;
CREATE INDEX CONCURRENTLY events_by_nick ON dingtalk_session_events (sender_nick, sender_id) WHERE role = 'user' AND sender_id <> '';
DROP INDEX CONCURRENTLY IF EXISTS events_with_quotes;
CREATE INDEX CONCURRENTLY events_with_quotes ON dingtalk_session_events (session_key, id) WHERE message -> 'quote' IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS events_quoting_person;
CREATE INDEX CONCURRENTLY events_quoting_person ON dingtalk_session_events ((message #>> '{quote,sender_id}'), session_key)
    WHERE message #>> '{quote,sender_id}' <> '';
DROP INDEX CONCURRENTLY IF EXISTS outbox_to_person;
CREATE INDEX CONCURRENTLY outbox_to_person ON outbox ((target ->> 'staff_id'), session_key) WHERE target ->> 'staff_id' <> '';
DROP INDEX CONCURRENTLY IF EXISTS memories_about;
CREATE INDEX CONCURRENTLY memories_about ON memories (subject_id, id) WHERE subject_id <> '';
DROP INDEX CONCURRENTLY IF EXISTS memories_said_by;
CREATE INDEX CONCURRENTLY memories_said_by ON memories (said_by, id) WHERE said_by <> '';
DROP INDEX CONCURRENTLY IF EXISTS memories_promoted_by;
CREATE INDEX CONCURRENTLY memories_promoted_by ON memories (promoted_by, id) WHERE promoted_by <> '';

-- +goose Down

DROP INDEX CONCURRENTLY IF EXISTS events_by_nick;
DROP INDEX CONCURRENTLY IF EXISTS events_with_quotes;
DROP INDEX CONCURRENTLY IF EXISTS events_quoting_person;
DROP INDEX CONCURRENTLY IF EXISTS outbox_to_person;
DROP INDEX CONCURRENTLY IF EXISTS memories_about;
DROP INDEX CONCURRENTLY IF EXISTS memories_said_by;
DROP INDEX CONCURRENTLY IF EXISTS memories_promoted_by;
