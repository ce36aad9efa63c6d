-- Shares the windows of limits between people, under a key of the day. Oldest release that can run on it: 0.1.

-- +goose Up

-- The turns of each person in a group's window, and in the window before it.
ALTER TABLE limit_windows ADD COLUMN parts jsonb NOT NULL DEFAULT '{}', ADD COLUMN before jsonb NOT NULL DEFAULT '{}';

-- The key of a day's hashes in limit_windows. Without it they belong to no person.
CREATE TABLE limit_keys (
    day date  PRIMARY KEY, -- of UTC
    key bytea NOT NULL
);
