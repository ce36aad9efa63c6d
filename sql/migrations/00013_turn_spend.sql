-- Adds up what answers took, beside all other work of models. Oldest release that can run on it: 0.1.

-- +goose Up

-- Who works on the table goes first: everything else would wait behind this, and the start tries again.
SET LOCAL lock_timeout = '3s';

ALTER TABLE model_spend
    DROP CONSTRAINT model_spend_kind_check,
    ADD CONSTRAINT model_spend_kind_check CHECK (kind IN ('turn', 'flush', 'summary', 'digest', 'consolidation')) NOT VALID; -- wider than before: no row breaks it

-- +goose Down

DELETE FROM model_spend WHERE kind = 'turn';
ALTER TABLE model_spend
    DROP CONSTRAINT model_spend_kind_check,
    ADD CONSTRAINT model_spend_kind_check CHECK (kind IN ('flush', 'summary', 'digest', 'consolidation'));
