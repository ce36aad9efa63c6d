-- Counts how often a person had everything about them erased. Oldest release that can run on it: 0.1.

-- +goose Up

-- One row per person and day, for the limit of a day alone; rows of earlier days are deleted. The person is a hash: nothing
-- that names them may be left behind. There is no session_key: an erasure is of many sessions.
CREATE TABLE person_erasures (
    person bytea NOT NULL,
    day    date NOT NULL,
    times  integer NOT NULL DEFAULT 1,

    PRIMARY KEY (person, day)
);

-- +goose Down

DROP TABLE person_erasures;
