-- Counts the calls to DingTalk's open API by month. Oldest release that can run on it: 0.1.

-- +goose Up

CREATE TABLE api_calls (
    month text   NOT NULL, -- of Asia/Shanghai, like 2026-11
    api   text   NOT NULL,
    count bigint NOT NULL CHECK (count >= 0),
    PRIMARY KEY (month, api)
);

-- A month of all APIs together. The lock of its row makes replicas agree on the calls that are left.
CREATE TABLE api_months (
    month           text        PRIMARY KEY,
    calls           bigint      NOT NULL DEFAULT 0 CHECK (calls >= 0), -- sum of api_calls.count
    quota           bigint      NOT NULL, -- calls of a month; 0: no bound
    level           integer     NOT NULL DEFAULT 0, -- lowest level that was reported; 0 is the highest
    exhausted_until timestamptz -- DingTalk refuses calls until then
);

-- +goose Down

DROP TABLE api_months;
DROP TABLE api_calls;
