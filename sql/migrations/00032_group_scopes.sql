-- Keeps the scope that an administrator chose for a group by command. Oldest release that can run on it: 0.1.

-- +goose Up

-- A row replaces the configured scope of one group, which is named by the key of the session that all of it would share. That
-- session need not exist, so the row outlives every session of the group.
CREATE TABLE group_scopes (
    group_key  text PRIMARY KEY,
    scope      text NOT NULL CHECK (scope IN ('group', 'member')),
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- +goose Down

DROP TABLE group_scopes;
