-- Adds the cards that replies are shown on. Oldest release that can run on it: 0.1.

-- +goose Up

-- A row is written before its card is delivered. A card is open until DingTalk shows its last frame, or an error. It belongs
-- to the turn of a message, and to that turn's reply after the commit. A card with neither is closed in the background.
CREATE TABLE cards (
    session_key   text        NOT NULL,
    out_track_id  text        NOT NULL,
    state         text        NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'finished', 'failed')),
    turn_event_id bigint      NOT NULL, -- the first message that the turn answers
    next_at       timestamptz NOT NULL DEFAULT now(), -- next attempt to close it in the background
    prepaid       boolean     NOT NULL DEFAULT true, -- the call that ends it is counted, and not yet left to a reply or to the background
    rating        text        NOT NULL DEFAULT '' CHECK (rating IN ('', 'good', 'bad')),
    created_at    timestamptz NOT NULL DEFAULT now(),
    settled_at    timestamptz,

    PRIMARY KEY (session_key, out_track_id),
    CONSTRAINT card_settled_or_open CHECK ((settled_at IS NOT NULL) = (state IN ('finished', 'failed')))
);
CREATE INDEX cards_open ON cards (session_key, out_track_id) WHERE state = 'open';
CREATE INDEX cards_settled ON cards (settled_at) WHERE state <> 'open';
CREATE INDEX cards_track ON cards (out_track_id);

-- +goose Down

DROP TABLE cards;
