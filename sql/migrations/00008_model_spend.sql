-- Adds up what work beside the answers took, by day, and prices flushes. Oldest release that can run on it: 0.1.

-- +goose Up

-- Who works on the table goes first: everything else would wait behind this, and the start tries again.
SET LOCAL lock_timeout = '3s';

ALTER TABLE memory_flushes
    ADD COLUMN cached_tokens bigint NOT NULL DEFAULT 0,
    ADD COLUMN cost double precision NOT NULL DEFAULT 0;

-- What flushes, summaries, digests and consolidations took, also those that came to nothing. day is of UTC, cost in the
-- unit of the configured prices.
CREATE TABLE model_spend (
    session_key       text NOT NULL,
    day               date NOT NULL,
    kind              text NOT NULL CHECK (kind IN ('flush', 'summary', 'digest', 'consolidation')),
    prompt_tokens     bigint NOT NULL DEFAULT 0,
    cached_tokens     bigint NOT NULL DEFAULT 0,
    completion_tokens bigint NOT NULL DEFAULT 0,
    cost              double precision NOT NULL DEFAULT 0,

    PRIMARY KEY (session_key, day, kind)
);

CREATE INDEX model_spend_by_day ON model_spend (day);

-- What the logs of before know of.
INSERT INTO model_spend (session_key, day, kind, prompt_tokens, cached_tokens, completion_tokens, cost)
SELECT session_key, (created_at AT TIME ZONE 'UTC')::date, 'summary', sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens), sum(cost)
FROM compaction_log WHERE prompt_tokens + completion_tokens > 0 GROUP BY 1, 2
UNION ALL
SELECT session_key, (created_at AT TIME ZONE 'UTC')::date, 'flush', sum(prompt_tokens), 0, sum(completion_tokens), 0
FROM memory_flushes WHERE prompt_tokens + completion_tokens > 0 GROUP BY 1, 2;

-- +goose Down

DROP TABLE model_spend;
ALTER TABLE memory_flushes DROP COLUMN cached_tokens, DROP COLUMN cost;
