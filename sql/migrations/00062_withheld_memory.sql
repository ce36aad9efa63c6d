-- Finds the summaries and facts that a model refuses. Oldest release that can run on it: 0.1.

-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS session_summaries_withheld;
CREATE INDEX CONCURRENTLY session_summaries_withheld ON session_summaries (session_key) WHERE withheld IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS memories_withheld;
CREATE INDEX CONCURRENTLY memories_withheld ON memories (source_session) WHERE withheld IS NOT NULL;
