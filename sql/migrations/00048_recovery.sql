-- Narrows suspects down by halves, and keeps what the limits counted with the message. Oldest release that can run on it: 0.1.

-- +goose Up

-- width bounds the suspects that a process has in progress together with this one; NULL: not narrowed down yet. admitted: the
-- limits counted the message's turn, so that its next attempt is not counted again.
ALTER TABLE dingtalk_session_events ADD COLUMN width int, ADD COLUMN admitted boolean;
