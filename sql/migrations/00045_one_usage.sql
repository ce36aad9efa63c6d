-- Makes model_usage the only account of the usage of models. Oldest release that can run on it: 0.1.

-- +goose Up

-- model_usage has the sums of model_spend, except those of releases from before model_usage: they had no model and person. A cost
-- alone is a remainder from 1e-9 on, since shares of a cost are rounded.
INSERT INTO model_usage AS u (session_key, day, kind, turns, prompt_tokens, cached_tokens, completion_tokens, cost)
SELECT m.session_key, m.day, m.kind, greatest(m.turns - s.turns, 0), greatest(m.prompt_tokens - s.prompt_tokens, 0),
    greatest(m.cached_tokens - s.cached_tokens, 0), greatest(m.completion_tokens - s.completion_tokens, 0), greatest(m.cost - s.cost, 0)
FROM model_spend m CROSS JOIN LATERAL (
    SELECT coalesce(sum(x.turns), 0)::bigint AS turns, coalesce(sum(x.prompt_tokens), 0)::bigint AS prompt_tokens,
        coalesce(sum(x.cached_tokens), 0)::bigint AS cached_tokens, coalesce(sum(x.completion_tokens), 0)::bigint AS completion_tokens,
        coalesce(sum(x.cost), 0) AS cost
    FROM model_usage x WHERE x.session_key = m.session_key AND x.day = m.day AND x.kind = m.kind) s
WHERE m.turns > s.turns OR m.prompt_tokens > s.prompt_tokens OR m.cached_tokens > s.cached_tokens
    OR m.completion_tokens > s.completion_tokens OR m.cost > s.cost + 1e-9
ORDER BY 1, 2, 3
ON CONFLICT (session_key, day, kind, model, person) DO UPDATE SET
    turns = u.turns + EXCLUDED.turns, prompt_tokens = u.prompt_tokens + EXCLUDED.prompt_tokens, cached_tokens = u.cached_tokens + EXCLUDED.cached_tokens,
    completion_tokens = u.completion_tokens + EXCLUDED.completion_tokens, cost = u.cost + EXCLUDED.cost;

-- Older replicas write both tables and read model_spend, so it stays until none of them can run. Nothing else adds to it, and a
-- deletion of a session takes its rows.
COMMENT ON TABLE model_spend IS 'Written by older releases only; model_usage has the same usage.';

-- +goose Down

COMMENT ON TABLE model_spend IS NULL;

INSERT INTO model_spend AS m (session_key, day, kind, turns, prompt_tokens, cached_tokens, completion_tokens, cost)
SELECT u.session_key, u.day, u.kind, sum(u.turns), sum(u.prompt_tokens), sum(u.cached_tokens), sum(u.completion_tokens), sum(u.cost)
FROM model_usage u GROUP BY 1, 2, 3
ON CONFLICT (session_key, day, kind) DO UPDATE SET
    turns = greatest(m.turns, EXCLUDED.turns), prompt_tokens = greatest(m.prompt_tokens, EXCLUDED.prompt_tokens),
    cached_tokens = greatest(m.cached_tokens, EXCLUDED.cached_tokens), completion_tokens = greatest(m.completion_tokens, EXCLUDED.completion_tokens),
    cost = greatest(m.cost, EXCLUDED.cost);
