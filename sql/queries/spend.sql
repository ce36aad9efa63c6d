-- name: SpendAdd :batchexec
-- SpendAdd adds the usage of model calls to the session's.
UPDATE dingtalk_sessions s SET
    prompt_tokens = s.prompt_tokens + @prompt_tokens::bigint,
    cached_tokens = s.cached_tokens + @cached_tokens::bigint,
    completion_tokens = s.completion_tokens + @completion_tokens::bigint,
    spent_tokens = CASE WHEN s.spent_on = @day::date THEN s.spent_tokens ELSE 0 END + @upkeep::bigint,
    spent_on = @day::date
WHERE s.session_key = @session_key;

-- name: UsageAdd :batchone
-- UsageAdd adds it to the day's, if there is such a session. No row: there is none.
INSERT INTO model_usage AS u (session_key, day, kind, model, prompt_tokens, cached_tokens, completion_tokens, cost)
SELECT s.session_key, @day::date, @kind::text, @model::text, @prompt_tokens::bigint, @cached_tokens::bigint,
    @completion_tokens::bigint, @cost::float8
FROM dingtalk_sessions s WHERE s.session_key = @session_key
ON CONFLICT (session_key, day, kind, model, person) DO UPDATE SET
    prompt_tokens = u.prompt_tokens + EXCLUDED.prompt_tokens, cached_tokens = u.cached_tokens + EXCLUDED.cached_tokens,
    completion_tokens = u.completion_tokens + EXCLUDED.completion_tokens, cost = u.cost + EXCLUDED.cost
RETURNING u.day;

-- name: UsageOfSession :many
-- UsageOfSession sums the usage of a session without its people, in the order in which all writers lock the rows of deleted sessions.
SELECT u.day, u.kind, u.model, sum(u.turns)::bigint AS turns, sum(u.prompt_tokens)::bigint AS prompt_tokens,
    sum(u.cached_tokens)::bigint AS cached_tokens, sum(u.completion_tokens)::bigint AS completion_tokens, sum(u.cost)::float8 AS cost
FROM model_usage u WHERE u.session_key = @session_key
GROUP BY u.day, u.kind, u.model
ORDER BY u.day, u.kind, u.model;

-- name: UsageKeep :batchexec
-- UsageKeep adds usage to a key that needs no session.
INSERT INTO model_usage AS u (session_key, day, kind, model, turns, prompt_tokens, cached_tokens, completion_tokens, cost)
VALUES (@session_key, @day::date, @kind::text, @model::text, @turns::bigint, @prompt_tokens::bigint, @cached_tokens::bigint,
    @completion_tokens::bigint, @cost::float8)
ON CONFLICT (session_key, day, kind, model, person) DO UPDATE SET
    turns = u.turns + EXCLUDED.turns, prompt_tokens = u.prompt_tokens + EXCLUDED.prompt_tokens, cached_tokens = u.cached_tokens + EXCLUDED.cached_tokens,
    completion_tokens = u.completion_tokens + EXCLUDED.completion_tokens, cost = u.cost + EXCLUDED.cost;

-- name: SpendSums :many
-- SpendSums sums by kind and, on request, by session and by day or month, the newest first. NULL stands for all sessions.
SELECT (CASE WHEN @by_session::boolean THEN u.session_key ELSE '' END)::text AS session,
    coalesce(to_char(u.day, @period_form::text), '')::text AS period,
    u.kind, sum(u.turns)::bigint AS turns, sum(u.prompt_tokens)::bigint AS prompt_tokens, sum(u.cached_tokens)::bigint AS cached_tokens,
    sum(u.completion_tokens)::bigint AS completion_tokens, sum(u.cost)::float8 AS cost
FROM model_usage u
WHERE u.day >= @since::date AND (sqlc.narg('only_keys')::text[] IS NULL OR u.session_key = ANY(sqlc.narg('only_keys')::text[]))
GROUP BY 1, 2, 3
ORDER BY 2 DESC, 1, 3;

-- name: UsageGroups :many
-- UsageGroups sums usage from a day on by any of kind, day, session, model and person: the most expensive first with by_cost, or a page
-- in the order of the group's key after a group. after_any is 0 for the first page and 1 for others. No session before after_session is
-- read, and by session none behind those of the page. An unused column, and the title, is empty.
SELECT g.kind, g.period, g.session, g.model, g.person, g.turns, g.prompt_tokens, g.cached_tokens, g.completion_tokens, g.cost, ''::text AS title
FROM (
    SELECT (CASE WHEN @by_kind::boolean THEN u.kind ELSE '' END)::text AS kind,
        (CASE WHEN @by_day::boolean THEN u.day::text ELSE '' END)::text AS period,
        (CASE WHEN @by_session::boolean THEN u.session_key ELSE '' END)::text AS session,
        (CASE WHEN @by_model::boolean THEN u.model ELSE '' END)::text AS model,
        (CASE WHEN @by_person::boolean THEN u.person ELSE '' END)::text AS person,
        sum(u.turns)::bigint AS turns, sum(u.prompt_tokens)::bigint AS prompt_tokens, sum(u.cached_tokens)::bigint AS cached_tokens,
        sum(u.completion_tokens)::bigint AS completion_tokens, sum(u.cost)::float8 AS cost
    FROM model_usage u WHERE u.day >= @since::date AND u.session_key >= @after_session::text
      AND (@by_cost::boolean OR NOT @by_session::boolean OR u.session_key <= (SELECT max(k.session_key) FROM (
        SELECT b.session_key FROM model_usage b WHERE b.day >= @since::date AND b.session_key >= @after_session::text
        GROUP BY b.session_key ORDER BY b.session_key LIMIT 1 + @max_rows::int) k))
    GROUP BY 1, 2, 3, 4, 5
) g
WHERE (1, g.session, g.period, g.kind, g.model, g.person)
    > (@after_any::int, @after_session::text, @after_period::text, @after_kind::text, @after_model::text, @after_person::text)
ORDER BY CASE WHEN @by_cost::boolean THEN g.cost END DESC, CASE WHEN @by_cost::boolean THEN g.prompt_tokens END DESC,
    g.session, g.period, g.kind, g.model, g.person
LIMIT @max_rows::int;

-- name: UsageRows :many
-- UsageRows lists usage from a day on without sums, a page of the primary key after a row. The columns are those of UsageGroups.
SELECT u.kind, u.day::text AS period, u.session_key::text AS session, u.model, u.person, u.turns, u.prompt_tokens, u.cached_tokens, u.completion_tokens, u.cost,
    coalesce((SELECT s.title FROM dingtalk_sessions s WHERE s.session_key = u.session_key AND s.conversation_type = '2'), '')::text AS title
FROM model_usage u
WHERE u.day >= @since::date
    AND (u.session_key, u.day, u.kind, u.model, u.person) > (@after_session::text, @after_day::date, @after_kind::text, @after_model::text, @after_person::text)
ORDER BY u.session_key, u.day, u.kind, u.model, u.person
LIMIT @max_rows::int;

-- name: UsageUnname :exec
-- UsageUnname moves the usage of a person at a robot, or at all of them, to that of no one.
WITH gone AS (
    DELETE FROM model_usage u
    WHERE u.person = ANY(@people::text[]) AND u.person <> '' AND (@robot_sessions::text = '' OR starts_with(u.session_key, @robot_sessions::text))
    RETURNING u.session_key, u.day, u.kind, u.model, u.turns, u.prompt_tokens, u.cached_tokens, u.completion_tokens, u.cost
)
INSERT INTO model_usage AS u (session_key, day, kind, model, turns, prompt_tokens, cached_tokens, completion_tokens, cost)
SELECT gone.session_key, gone.day, gone.kind, gone.model, sum(gone.turns), sum(gone.prompt_tokens), sum(gone.cached_tokens), sum(gone.completion_tokens), sum(gone.cost)
FROM gone GROUP BY 1, 2, 3, 4
ON CONFLICT (session_key, day, kind, model, person) DO UPDATE SET
    turns = u.turns + EXCLUDED.turns, prompt_tokens = u.prompt_tokens + EXCLUDED.prompt_tokens, cached_tokens = u.cached_tokens + EXCLUDED.cached_tokens,
    completion_tokens = u.completion_tokens + EXCLUDED.completion_tokens, cost = u.cost + EXCLUDED.cost;

-- name: UsagePeople :many
-- UsagePeople lists a page of the people with usage, by id.
SELECT DISTINCT u.person FROM model_usage u
WHERE u.person <> '' AND u.person > @after_person::text
ORDER BY u.person LIMIT @max_rows::int;

-- name: SessionTitles :many
-- SessionTitles reads the titles of groups.
SELECT s.session_key, s.title FROM dingtalk_sessions s WHERE s.session_key = ANY(@session_keys::text[]) AND s.conversation_type = '2';
