-- Clears the reasons of owed flushes: an older release may have quoted messages in them. Oldest release that can run on it: 0.1.

-- An erasure does not look into reasons: this release writes none but words of its own. A replica of an older release that
-- still runs may write one more. The next failure of the flush replaces it, and its success deletes the row.

-- +goose Up

UPDATE flush_debts SET reason = '' WHERE reason <> '';

-- +goose Down

-- The reasons stay cleared: the next failure of each flush stores one.
SELECT 1;
