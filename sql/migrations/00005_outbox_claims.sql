-- Lets the row of a reply decide what is sent. Oldest release that can run on it: 0.1.

-- +goose Up

-- Who works on the table goes first: everything else would wait behind this, and the start tries again.
SET LOCAL lock_timeout = '3s';

-- joint: the key of the message that the last try sent this reply in, together with others; '' where it went alone.
-- in_flight: a try has begun, and no mark says how it ended. The default is for the release before, which marks no end.
-- refusals: how often DingTalk refused this text alone, under a code that names no cause.
ALTER TABLE outbox
    ADD COLUMN joint text NOT NULL DEFAULT '',
    ADD COLUMN in_flight boolean NOT NULL DEFAULT true,
    ADD COLUMN refusals integer NOT NULL DEFAULT 0;

-- +goose Down

ALTER TABLE outbox DROP COLUMN joint, DROP COLUMN in_flight, DROP COLUMN refusals;
