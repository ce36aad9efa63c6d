-- name: SpendAdd :exec
-- SpendAdd adds the usage of model calls to the session's and the day's.
WITH one AS (
    UPDATE dingtalk_sessions s SET
        prompt_tokens = s.prompt_tokens + @prompt_tokens::bigint,
        cached_tokens = s.cached_tokens + @cached_tokens::bigint,
        completion_tokens = s.completion_tokens + @completion_tokens::bigint,
        spent_tokens = CASE WHEN s.spent_on = (now() AT TIME ZONE 'UTC')::date THEN s.spent_tokens ELSE 0 END
            + @upkeep::bigint,
        spent_on = (now() AT TIME ZONE 'UTC')::date
    WHERE s.session_key = @session_key
    RETURNING s.session_key
)
INSERT INTO model_spend AS m (session_key, day, kind, prompt_tokens, cached_tokens, completion_tokens, cost)
SELECT one.session_key, (now() AT TIME ZONE 'UTC')::date, @kind::text, @prompt_tokens::bigint, @cached_tokens::bigint,
    @completion_tokens::bigint, @cost::float8
FROM one
ON CONFLICT (session_key, day, kind) DO UPDATE SET
    prompt_tokens = m.prompt_tokens + EXCLUDED.prompt_tokens, cached_tokens = m.cached_tokens + EXCLUDED.cached_tokens,
    completion_tokens = m.completion_tokens + EXCLUDED.completion_tokens, cost = m.cost + EXCLUDED.cost;

-- name: SpendSums :many
-- SpendSums sums by kind and, on request, by session and by day or month, the newest first. NULL stands for all sessions.
SELECT (CASE WHEN @by_session::boolean THEN m.session_key ELSE '' END)::text AS session,
    coalesce(to_char(m.day, @period_form::text), '')::text AS period,
    m.kind, sum(m.prompt_tokens)::bigint AS prompt_tokens, sum(m.cached_tokens)::bigint AS cached_tokens,
    sum(m.completion_tokens)::bigint AS completion_tokens, sum(m.cost)::float8 AS cost
FROM model_spend m
WHERE m.day >= @since::date AND (sqlc.narg('only_keys')::text[] IS NULL OR m.session_key = ANY(sqlc.narg('only_keys')::text[]))
GROUP BY 1, 2, 3
ORDER BY 2 DESC, 1, 3;
