-- Finds the rows of the audit that name a person by indexes. Oldest release that can run on it: 0.1.

-- +goose NO TRANSACTION
-- +goose Up

-- An index is built while others write; a build that was cut off leaves an invalid index behind.
DROP INDEX CONCURRENTLY IF EXISTS audit_by_actor;
CREATE INDEX CONCURRENTLY audit_by_actor ON audit (actor, at);
-- The third part of a session's key is the member whose session it is.
DROP INDEX CONCURRENTLY IF EXISTS audit_of_members;
CREATE INDEX CONCURRENTLY audit_of_members ON audit ((split_part(session_key, '/', 3))) WHERE split_part(session_key, '/', 3) <> '';

-- +goose Down

DROP INDEX CONCURRENTLY IF EXISTS audit_of_members;
DROP INDEX CONCURRENTLY IF EXISTS audit_by_actor;
