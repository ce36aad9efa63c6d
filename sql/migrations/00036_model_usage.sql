-- Records which model and person the usage of models belongs to. Oldest release that can run on it: 0.1.

-- +goose Up

-- The same sums as model_spend, further divided. It is a table of its own, since older replicas write model_spend by its key. A
-- turn with several askers is divided equally. An empty model or person is not known, or is of no one: upkeep has no person.
CREATE TABLE model_usage (
    session_key       text NOT NULL,
    day               date NOT NULL, -- of UTC
    kind              text NOT NULL,
    model             text NOT NULL DEFAULT '',
    person            text NOT NULL DEFAULT '',
    prompt_tokens     bigint NOT NULL DEFAULT 0,
    cached_tokens     bigint NOT NULL DEFAULT 0,
    completion_tokens bigint NOT NULL DEFAULT 0,
    cost              double precision NOT NULL DEFAULT 0,

    PRIMARY KEY (session_key, day, kind, model, person)
);
CREATE INDEX model_usage_by_day ON model_usage (day);
CREATE INDEX model_usage_by_person ON model_usage (person) WHERE person <> '';

INSERT INTO model_usage (session_key, day, kind, prompt_tokens, cached_tokens, completion_tokens, cost)
SELECT session_key, day, kind, prompt_tokens, cached_tokens, completion_tokens, cost FROM model_spend;

-- +goose Down

DROP TABLE model_usage;
