-- Counts messages of a reminder that can't arrive. Oldest release that can run on it: 0.1.

-- +goose Up

ALTER TABLE schedules ADD COLUMN lost integer NOT NULL DEFAULT 0;
