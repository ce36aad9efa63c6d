-- Notes the key by which people quote a card. Oldest release that can run on it: 0.1.

-- +goose Up

-- A quote of a card has no words, only this key of its message.
ALTER TABLE cards ADD COLUMN carrier text NOT NULL DEFAULT '';
