-- name: CallsOpen :execrows
-- CallsOpen begins a month. One replica inserts the row.
INSERT INTO api_months (month, quota) VALUES (@month, @quota) ON CONFLICT (month) DO NOTHING;

-- name: CallsSetQuota :exec
-- CallsSetQuota changes a month's quota. Levels of the old quota do not count.
UPDATE api_months m SET quota = @quota, level = 0, exhausted_until = NULL WHERE m.month = @month AND m.quota <> @quota;

-- name: CallsMonth :one
SELECT m.calls, m.level, m.exhausted_until,
    coalesce((SELECT p.level > 0 OR p.exhausted_until IS NOT NULL FROM api_months p WHERE p.month < @month ORDER BY p.month DESC LIMIT 1), false)::boolean
        AS low_before
FROM api_months m
WHERE m.month = @month;

-- name: CallsReserve :one
-- CallsReserve counts one call for each entry of the list, or none. The month's row is locked first, by this and by CallsReturn.
WITH m AS (
    UPDATE api_months m SET calls = m.calls + cardinality(@apis::text[])
    WHERE m.month = @month AND m.calls + cardinality(@apis::text[]) <= @bound::bigint AND m.level <= @lowest::integer
        AND (m.exhausted_until IS NULL OR m.exhausted_until <= @now::timestamptz)
    RETURNING m.month, m.calls, m.level, m.exhausted_until
), counted AS (
    INSERT INTO api_calls AS c (month, api, count)
    SELECT m.month, a.api, count(*) FROM m, unnest(@apis::text[]) AS a(api) GROUP BY m.month, a.api
    ON CONFLICT (month, api) DO UPDATE SET count = c.count + EXCLUDED.count
), of_day AS (
    INSERT INTO api_days AS d (day, api, count)
    SELECT @day::text, a.api, count(*) FROM m, unnest(@apis::text[]) AS a(api) GROUP BY a.api
    ON CONFLICT (day, api) DO UPDATE SET count = d.count + EXCLUDED.count
)
SELECT m.calls, m.level, m.exhausted_until FROM m;

-- name: CallsReturn :one
-- CallsReturn takes back a counted call.
WITH m AS (
    UPDATE api_months m SET calls = m.calls - 1
    WHERE m.month = @month
    RETURNING m.month, m.calls, m.level, m.exhausted_until
), counted AS (
    UPDATE api_calls c SET count = c.count - 1 FROM m WHERE c.month = m.month AND c.api = @api
), of_day AS (
    UPDATE api_days d SET count = d.count - 1 FROM m WHERE d.day = @day::text AND d.api = @api
)
SELECT m.calls, m.level, m.exhausted_until FROM m;

-- name: CallsLower :execrows
-- CallsLower sets a lower level. One replica changes the row.
UPDATE api_months m SET level = @level WHERE m.month = @month AND m.level < @level;

-- name: CallsExhaust :one
-- CallsExhaust returns true for one replica in a month.
UPDATE api_months m SET exhausted_until = greatest(m.exhausted_until, @until::timestamptz)
FROM (SELECT b.month, b.exhausted_until FROM api_months b WHERE b.month = @month FOR UPDATE) before
WHERE m.month = before.month
RETURNING (before.exhausted_until IS NULL)::boolean AS first;

-- name: CallsResume :one
-- CallsResume ends the platform's refusal of a month. No row: the month has no call yet.
WITH before AS (
    SELECT b.month, b.exhausted_until FROM api_months b WHERE b.month = @month FOR UPDATE
)
UPDATE api_months m SET exhausted_until = NULL FROM before WHERE m.month = before.month
RETURNING m.calls, m.quota, m.level, before.exhausted_until;

-- name: RepliesResume :execrows
-- RepliesResume ends the pauses of replies that an outage or the platform's refusal delayed. Refused replies keep theirs: each further
-- refusal counts towards giving them up. The owners of the replies find them due.
UPDATE outbox o SET next_at = now() WHERE o.state = 'waiting' AND o.next_at > now() AND o.refusals = 0;

-- name: CallsList :many
-- CallsList lists the newest months: each with its sum, as the row without an API, and then by API.
SELECT m.month, ''::text AS api, m.calls AS count, m.quota, m.level, m.exhausted_until FROM api_months m
WHERE @month::text = '' OR m.month = @month
UNION ALL
SELECT c.month, c.api, c.count, 0, 0, NULL FROM api_calls c
WHERE @month::text = '' OR c.month = @month
ORDER BY month DESC, api
LIMIT @max_rows::integer;

-- name: CallsDays :many
-- CallsDays lists the newest days by API.
SELECT d.day, d.api, d.count FROM api_days d
WHERE d.day LIKE @month::text || '%'
ORDER BY d.day DESC, d.api
LIMIT @max_rows::integer;
