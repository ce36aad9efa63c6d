-- Keeps the logins of the console, and the actions of administrators. Oldest release that can run on it: 0.1.

-- +goose Up

-- A login is known to all replicas. The token of the cookie is stored as its hash alone.
CREATE TABLE console_logins (
    token_hash bytea PRIMARY KEY,
    role       text NOT NULL CHECK (role IN ('admin', 'viewer')),
    actor      text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);

-- An action's row exists before the action. outcome is empty while it runs; a process that dies leaves it so. detail has ids
-- and counts, and no text of a person.
CREATE TABLE audit (
    session_key text NOT NULL DEFAULT '', -- empty: the action is of no one session
    id          bigint GENERATED ALWAYS AS IDENTITY,
    at          timestamptz NOT NULL DEFAULT now(),
    actor       text NOT NULL,
    action      text NOT NULL,
    detail      text NOT NULL DEFAULT '',
    outcome     text NOT NULL DEFAULT '',
    PRIMARY KEY (session_key, id)
);

CREATE INDEX audit_id ON audit (id);

-- +goose Down

DROP TABLE audit;
DROP TABLE console_logins;
