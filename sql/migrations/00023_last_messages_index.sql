-- Finds the last messages of a person in a session by an index. Oldest release that can run on it: 0.1.

-- The index by person and session gets the order of sending in place of the id. An index is built while others write. A
-- build that was cut off leaves an invalid index behind, hence it is dropped first.

-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS events_of_person_by_time;
CREATE INDEX CONCURRENTLY events_of_person_by_time ON dingtalk_session_events (sender_id, session_key, sent_at, id) WHERE sender_id <> '';
DROP INDEX CONCURRENTLY IF EXISTS events_of_person_in_session;

-- +goose Down

DROP INDEX CONCURRENTLY IF EXISTS events_of_person_in_session;
CREATE INDEX CONCURRENTLY events_of_person_in_session ON dingtalk_session_events (sender_id, session_key, id) WHERE sender_id <> '';
DROP INDEX CONCURRENTLY IF EXISTS events_of_person_by_time;
