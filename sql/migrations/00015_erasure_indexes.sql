-- Finds what an erasure changes by indexes, and caps old attempts. Oldest release that can run on it: 0.1.

-- An index is built while others write. A build that was cut off leaves an invalid index behind, hence each is dropped
-- first.

-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS events_of_person_by_id;
CREATE INDEX CONCURRENTLY events_of_person_by_id ON dingtalk_session_events (sender_id, id) WHERE sender_id <> '';
DROP INDEX CONCURRENTLY IF EXISTS sessions_of_conversation;
CREATE INDEX CONCURRENTLY sessions_of_conversation ON dingtalk_sessions (conversation_id, robot_code);
DROP INDEX CONCURRENTLY IF EXISTS compaction_log_views;
CREATE INDEX CONCURRENTLY compaction_log_views ON compaction_log (session_key, id) WHERE view_before IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS digests_of_memories;
CREATE INDEX CONCURRENTLY digests_of_memories ON memory_digests (memory_id) WHERE memory_id IS NOT NULL;

-- The first release counted every begin of a turn, this one counts turns that broke. A waiting message with attempts of
-- that kind is taken alone, and is not set aside for them.
UPDATE dingtalk_session_events SET attempts = 1 WHERE state = 'pending' AND attempts > 1;

-- +goose Down

DROP INDEX CONCURRENTLY IF EXISTS events_of_person_by_id;
DROP INDEX CONCURRENTLY IF EXISTS sessions_of_conversation;
DROP INDEX CONCURRENTLY IF EXISTS compaction_log_views;
DROP INDEX CONCURRENTLY IF EXISTS digests_of_memories;
