-- Numbers turns. Oldest release that can run on it: 0.1.

-- +goose Up

-- The number of the session's last turn, from 1 on. An event has the number of the turn that took or wrote it; NULL: none did, or a turn
-- before there were numbers.
ALTER TABLE dingtalk_sessions ADD COLUMN last_turn bigint NOT NULL DEFAULT 0;
ALTER TABLE dingtalk_session_events ADD COLUMN turn bigint;
