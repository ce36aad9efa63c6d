-- Remembers for a day which messages were deleted with their session. Oldest release that can run on it: 0.1.

-- +goose Up

-- DingTalk pushes a message again whose acknowledgement got lost: one that was deleted meanwhile must not come back. The
-- message is a hash of session and message id, so that nothing of the session is left behind.
CREATE TABLE deleted_messages (
    message    bytea PRIMARY KEY,
    deleted_at timestamptz NOT NULL DEFAULT now()
);

-- +goose Down

DROP TABLE deleted_messages;
