-- Keeps calls of tools that wait for approval. Oldest release that can run on it: 0.1.

-- +goose Up

CREATE TABLE approvals (
    session_key   text NOT NULL,
    id            bigint NOT NULL, -- from 1 on in each session
    turn_event_id bigint NOT NULL, -- first message of the turn that asked
    tool          text NOT NULL,
    arguments     text NOT NULL,
    asked_by      text NOT NULL,   -- the last asker of the turn
    state         text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'approved', 'rejected', 'expired')),
    decided_by    text NOT NULL DEFAULT '',
    decided_at    timestamptz,
    decided_event bigint,          -- message with the decision; its turn makes an approved call
    created_at    timestamptz NOT NULL DEFAULT now(),
    expires_at    timestamptz NOT NULL,

    PRIMARY KEY (session_key, id),
    CONSTRAINT approval_decided_or_waiting CHECK ((decided_at IS NULL) = (state = 'waiting'))
);

CREATE INDEX approvals_due ON approvals (expires_at) WHERE state = 'waiting';
CREATE INDEX approvals_decided ON approvals (decided_at) WHERE state <> 'waiting';
CREATE INDEX approvals_by_asker ON approvals (asked_by);
CREATE INDEX approvals_by_decider ON approvals (decided_by) WHERE decided_by <> '';
