-- Stores DingTalk's keys of the messages of a reply, by which people quote it. Oldest release that can run on it: 0.1.

-- +goose Up

ALTER TABLE outbox ADD COLUMN carriers text[] NOT NULL DEFAULT '{}';
