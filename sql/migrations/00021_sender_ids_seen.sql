-- Remembers when each pair of ids was first seen, so that the oldest can go. Oldest release that can run on it: 0.1.

-- +goose Up

-- The rows before this step count as seen now.
SET LOCAL lock_timeout = '3s';

ALTER TABLE sender_ids ADD COLUMN seen_at timestamptz NOT NULL DEFAULT now();

-- +goose Down

ALTER TABLE sender_ids DROP COLUMN seen_at;
