-- Lets people log in to the console by DingTalk. Oldest release that can run on it: 0.1.

-- +goose Up

-- actor of a person's login is the staff id, by which each request decides the rights.
ALTER TABLE console_logins ADD COLUMN nick text NOT NULL DEFAULT '';
ALTER TABLE console_logins DROP CONSTRAINT console_logins_role_check,
    ADD CONSTRAINT console_logins_role_check CHECK (role IN ('admin', 'viewer', 'person'));

-- A login by DingTalk begins on one replica and may end on another one, once. Its state is stored as its hash alone.
CREATE TABLE console_login_states (
    state_hash bytea PRIMARY KEY,
    next       text NOT NULL, -- path of the console that the login leads to
    expires_at timestamptz NOT NULL
);

-- +goose Down

DROP TABLE console_login_states;
DELETE FROM console_logins WHERE role = 'person';
ALTER TABLE console_logins DROP CONSTRAINT console_logins_role_check,
    ADD CONSTRAINT console_logins_role_check CHECK (role IN ('admin', 'viewer'));
ALTER TABLE console_logins DROP COLUMN nick;
