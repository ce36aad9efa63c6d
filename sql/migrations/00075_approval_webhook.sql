-- Waiting calls keep the webhook of their question, so that the word about their end takes no counted call. Oldest release that can run on it: 0.1.
-- +goose Up
ALTER TABLE approvals ADD COLUMN webhook text NOT NULL DEFAULT '', ADD COLUMN webhook_expires timestamptz;
CREATE INDEX approvals_by_age ON approvals (created_at);
