-- Finds the events that a model refuses. Oldest release that can run on it: 0.1.

-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS events_withheld;
CREATE INDEX CONCURRENTLY events_withheld ON dingtalk_session_events (session_key, seq) WHERE withheld IS NOT NULL;
