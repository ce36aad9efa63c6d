-- Finds the rows with terms of an older version. Oldest release that can run on it: 0.1.

-- +goose NO TRANSACTION
-- +goose Up

-- An index is built while others write; an interrupted build leaves an invalid index behind.
DROP INDEX CONCURRENTLY IF EXISTS events_outdated_terms;
CREATE INDEX CONCURRENTLY events_outdated_terms ON dingtalk_session_events (session_key, id)
    WHERE terms_version < 2 AND terms IS NOT NULL AND seq IS NOT NULL AND role IN ('user', 'assistant');
DROP INDEX CONCURRENTLY IF EXISTS memories_outdated_terms;
CREATE INDEX CONCURRENTLY memories_outdated_terms ON memories (scope, scope_id, id)
    WHERE terms_version < 2 AND terms IS NOT NULL;

-- +goose Down

DROP INDEX CONCURRENTLY IF EXISTS memories_outdated_terms;
DROP INDEX CONCURRENTLY IF EXISTS events_outdated_terms;
