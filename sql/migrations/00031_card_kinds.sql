-- Lets the table of cards hold reactions, which stay on a message until it is answered. Oldest release that can run on it: 0.1.

-- +goose Up

-- A reaction has its message's id as its track id. It is open until it is removed from the message.
ALTER TABLE cards ADD COLUMN kind text NOT NULL DEFAULT 'card' CHECK (kind IN ('card', 'reaction'));

-- +goose Down

DELETE FROM cards WHERE kind <> 'card';
ALTER TABLE cards DROP COLUMN kind;
