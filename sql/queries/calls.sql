-- name: CallsOpen :execrows
-- CallsOpen begins the month of a robot. One replica inserts the row.
INSERT INTO api_months (robot_code, month, quota) VALUES (@robot_code, @month, @quota) ON CONFLICT (robot_code, month) DO NOTHING;

-- name: CallsSetQuota :exec
-- CallsSetQuota changes a month's quota. Reports of the old quota do not count.
UPDATE api_months m SET quota = @quota, level = 0, exhausted_until = NULL WHERE m.robot_code = @robot_code AND m.month = @month AND m.quota <> @quota;

-- name: CallsMonth :one
SELECT m.calls, m.level, m.exhausted_until,
    coalesce((SELECT p.level > 0 OR p.exhausted_until IS NOT NULL FROM api_months p WHERE p.robot_code = @robot_code AND p.month < @month ORDER BY p.month DESC LIMIT 1), false)::boolean
        AS low_before
FROM api_months m
WHERE m.robot_code = @robot_code AND m.month = @month;

-- name: CallsLock :batchone
-- CallsLock locks a month's row, before the counts of its calls change. No row: the month has no call yet.
SELECT m.calls, m.quota, m.level, m.exhausted_until FROM api_months m WHERE m.robot_code = @robot_code AND m.month = @month FOR UPDATE;

-- name: CallsCount :batchexec
-- CallsCount and CallsCountDay count one call for each entry of the list, if CallsReserve will.
INSERT INTO api_calls AS c (robot_code, month, api, count)
SELECT m.robot_code, m.month, a.api, count(*) FROM api_months m, unnest(@apis::text[]) AS a(api)
WHERE m.robot_code = @robot_code AND m.month = @month AND m.calls + cardinality(@apis::text[]) <= @bound::bigint
  AND (m.exhausted_until IS NULL OR m.exhausted_until <= @now::timestamptz)
GROUP BY m.robot_code, m.month, a.api
ON CONFLICT (robot_code, month, api) DO UPDATE SET count = c.count + EXCLUDED.count;

-- name: CallsCountDay :batchexec
INSERT INTO api_days AS d (robot_code, day, api, count)
SELECT m.robot_code, @day::text, a.api, count(*) FROM api_months m, unnest(@apis::text[]) AS a(api)
WHERE m.robot_code = @robot_code AND m.month = @month AND m.calls + cardinality(@apis::text[]) <= @bound::bigint
  AND (m.exhausted_until IS NULL OR m.exhausted_until <= @now::timestamptz)
GROUP BY m.robot_code, a.api
ON CONFLICT (robot_code, day, api) DO UPDATE SET count = d.count + EXCLUDED.count;

-- name: CallsReserve :batchone
-- CallsReserve counts the calls of a list in the month, or none of them. No row: none.
UPDATE api_months m SET calls = m.calls + cardinality(@apis::text[])
WHERE m.robot_code = @robot_code AND m.month = @month AND m.calls + cardinality(@apis::text[]) <= @bound::bigint
  AND (m.exhausted_until IS NULL OR m.exhausted_until <= @now::timestamptz)
RETURNING m.calls, m.level, m.exhausted_until;

-- name: CallsReturn :batchone
-- CallsReturn, CallsUncount and CallsUncountDay take back a counted call.
UPDATE api_months m SET calls = m.calls - 1 WHERE m.robot_code = @robot_code AND m.month = @month RETURNING m.calls, m.level, m.exhausted_until;

-- name: CallsUncount :batchexec
UPDATE api_calls c SET count = c.count - 1 WHERE c.robot_code = @robot_code AND c.month = @month AND c.api = @api;

-- name: CallsUncountDay :batchexec
UPDATE api_days d SET count = d.count - 1 WHERE d.robot_code = @robot_code AND d.day = @day AND d.api = @api;

-- name: CallsReport :execrows
-- CallsReport notes the lowest level that was reported. One replica changes the row.
UPDATE api_months m SET level = @level WHERE m.robot_code = @robot_code AND m.month = @month AND m.level < @level;

-- name: CallsOfPerson :one
-- CallsOfPerson is the number of calls that a person's schedules made in a month. subject is a hash of both.
SELECT coalesce(max(l.used), 0)::bigint AS calls FROM limit_windows l WHERE l.subject = @subject;

-- name: CallsCountPerson :exec
-- CallsCountPerson counts such a call. The count ends after the month.
INSERT INTO limit_windows AS l (subject, ends_at, used) VALUES (@subject, @ends_at, 1)
ON CONFLICT (subject) DO UPDATE SET used = l.used + EXCLUDED.used;

-- name: CallsExhaust :batchexec
-- CallsExhaust stores until when the platform refuses calls.
UPDATE api_months m SET exhausted_until = greatest(m.exhausted_until, @until::timestamptz) WHERE m.robot_code = @robot_code AND m.month = @month;

-- name: CallsRobots :many
-- CallsRobots lists the robots with calls of a month, in the order of locks.
SELECT m.robot_code FROM api_months m WHERE m.month = @month ORDER BY m.robot_code;

-- name: CallsResume :exec
-- CallsResume ends the platform's refusal of a month.
UPDATE api_months m SET exhausted_until = NULL WHERE m.robot_code = @robot_code AND m.month = @month;

-- name: RepliesResume :execrows
-- RepliesResume ends the pauses of replies that an outage or the platform's refusal delayed. Refused replies keep theirs: each further
-- refusal counts towards giving them up. The owners of the replies find them due.
UPDATE outbox o SET next_at = now() WHERE o.state = 'waiting' AND o.next_at > now() AND o.refusals = 0;

-- name: CallsList :many
-- CallsList lists the newest months of the robots: each with its sum, as the row without an API, and then by API.
SELECT m.robot_code, m.month, ''::text AS api, m.calls AS count, m.quota, m.exhausted_until FROM api_months m
WHERE @month::text = '' OR m.month = @month
UNION ALL
SELECT c.robot_code, c.month, c.api, c.count, 0, NULL FROM api_calls c
WHERE @month::text = '' OR c.month = @month
ORDER BY month DESC, robot_code, api
LIMIT @max_rows::integer;

-- name: CallsDays :many
-- CallsDays lists the newest days by API.
SELECT d.robot_code, d.day, d.api, d.count FROM api_days d
WHERE d.day LIKE @month::text || '%'
ORDER BY d.day DESC, d.robot_code, d.api
LIMIT @max_rows::integer;
