-- Counts the attempts to end a card, and lets a card be given up. Oldest release that can run on it: 0.1.

-- +goose Up

-- Current work on the table takes precedence: other statements would wait behind this one, and the start tries again.
SET LOCAL lock_timeout = '3s';

-- A call is counted before it is made. An attempt whose outcome is unknown may have used the prepaid call.
ALTER TABLE cards ADD COLUMN tries int NOT NULL DEFAULT 0;
ALTER TABLE cards DROP CONSTRAINT cards_state_check;
ALTER TABLE cards ADD CONSTRAINT cards_state_check CHECK (state IN ('open', 'finished', 'failed', 'given_up'));
ALTER TABLE cards DROP CONSTRAINT card_settled_or_open;
ALTER TABLE cards ADD CONSTRAINT card_settled_or_open CHECK ((settled_at IS NOT NULL) = (state <> 'open'));
CREATE INDEX cards_given_up ON cards (settled_at) WHERE state = 'given_up';

-- +goose Down

DROP INDEX cards_given_up;
UPDATE cards SET state = 'failed' WHERE state = 'given_up';
ALTER TABLE cards DROP CONSTRAINT cards_state_check;
ALTER TABLE cards ADD CONSTRAINT cards_state_check CHECK (state IN ('open', 'finished', 'failed'));
ALTER TABLE cards DROP CONSTRAINT card_settled_or_open;
ALTER TABLE cards ADD CONSTRAINT card_settled_or_open CHECK ((settled_at IS NOT NULL) = (state IN ('finished', 'failed')));
ALTER TABLE cards DROP COLUMN tries;
