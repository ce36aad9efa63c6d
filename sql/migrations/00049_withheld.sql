-- Keeps rows that a model refuses out of requests to it. Oldest release that can run on it: 0.1.

-- +goose Up

-- An object by model and endpoint: {"qwen-plus@host/v1": {"parts": ["body"], "class": "refused", "at": "…"}}. It has no text.
ALTER TABLE dingtalk_session_events ADD COLUMN withheld jsonb;
ALTER TABLE session_summaries ADD COLUMN withheld jsonb;
ALTER TABLE memories ADD COLUMN withheld jsonb;

-- The rows of a refused request until those at fault are found.
ALTER TABLE dingtalk_sessions ADD COLUMN suspicion jsonb;
