-- Counts the calls to DingTalk's open API by day, for bot calls. Oldest release that can run on it: 0.1.

-- +goose Up

-- The sum of a month's days is below its rows of api_calls where an older release counted part of the month.
CREATE TABLE api_days (
    day   text   NOT NULL, -- of Asia/Shanghai, like 2026-11-23
    api   text   NOT NULL,
    count bigint NOT NULL CHECK (count >= 0),
    PRIMARY KEY (day, api)
);

-- +goose Down

DROP TABLE api_days;
