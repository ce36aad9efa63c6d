-- Fences what a card shows while its turn runs, and keeps what its end needs. Oldest release that can run on it: 0.1.

-- +goose Up

-- Call under way that shows something on an open card: the term of its lease, and the time after which it is over. NULL: none.
-- content_key: the variable of the card's text; empty: a card of before there was the column.
ALTER TABLE cards
    ADD COLUMN frame_term bigint,
    ADD COLUMN frame_until timestamptz,
    ADD COLUMN content_key text NOT NULL DEFAULT '';
