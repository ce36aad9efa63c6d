-- Versions the search terms. Oldest release that can run on it: 0.1.

-- +goose Up

-- Current work on the tables takes precedence: other statements would wait behind this one, and the start tries again.
SET LOCAL lock_timeout = '3s';

-- The version of the stemmer that made a row's terms. An older release stores no version, so that its rows are indexed
-- again. Version 2 is the Snowball stemmer for English, 1 that of Porter.
ALTER TABLE dingtalk_session_events ADD COLUMN terms_version smallint NOT NULL DEFAULT 1;
ALTER TABLE memories ADD COLUMN terms_version smallint NOT NULL DEFAULT 1;

-- +goose Down

ALTER TABLE memories DROP COLUMN terms_version;
ALTER TABLE dingtalk_session_events DROP COLUMN terms_version;
