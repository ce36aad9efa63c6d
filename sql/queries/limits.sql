-- name: LimitsRenew :batchexec
-- LimitsRenew begins a window in place of one that has ended. It ends at a time or after a number of seconds. The parts of the ended one
-- are recent use if it ended after another time.
UPDATE limit_windows l SET used = 0, before = CASE WHEN l.ends_at > @recent::timestamptz THEN l.parts ELSE '{}' END, parts = '{}',
    ends_at = greatest(sqlc.narg(ends_at)::timestamptz, now() + interval '1 second' * @lasts::float8)
WHERE l.subject = @subject AND l.ends_at <= now();

-- name: LimitsCount :batchexec
-- LimitsCount adds to a window, or begins one that ends at a time or after a number of seconds. It ends the pipeline by a division by
-- zero when the window exceeds the bound.
INSERT INTO limit_windows AS l (subject, ends_at, used)
VALUES (@subject, greatest(sqlc.narg(ends_at)::timestamptz, now() + interval '1 second' * @lasts::float8), @more::bigint)
ON CONFLICT (subject) DO UPDATE SET used = l.used + EXCLUDED.used
RETURNING (1 / CASE WHEN l.used <= @bound::bigint THEN 1 ELSE 0 END)::int AS within;

-- name: LimitsPart :batchexec
-- LimitsPart adds one to the part of a person in a group's window.
UPDATE limit_windows l SET parts = l.parts || jsonb_build_object(@person::text, coalesce((l.parts ->> @person::text)::bigint, 0) + 1)
WHERE l.subject = @subject;

-- name: LimitsAdmit :batchexec
-- LimitsAdmit marks messages whose turn is counted: a repeated attempt is not counted.
UPDATE dingtalk_session_events e SET admitted = true
WHERE e.session_key = @session_key AND e.id = ANY(@events::bigint[]) AND e.state = 'pending';

-- name: LimitsOpen :batchexec
-- LimitsOpen adds a missing window, which has ended.
INSERT INTO limit_windows (subject, ends_at, used) VALUES (@subject, now(), 0) ON CONFLICT (subject) DO NOTHING;

-- name: LimitsNotify :batchone
-- LimitsNotify claims the notice of a window, which ends at a time or after a number of seconds. No row: another message claimed it.
UPDATE limit_windows l SET noticed = @noticed::text,
    ends_at = greatest(sqlc.narg(ends_at)::timestamptz, now() + interval '1 second' * @lasts::float8)
WHERE l.subject = @subject AND (l.ends_at <= now() OR l.noticed = @noticed::text AND @noticed::text <> '')
RETURNING l.subject;

-- name: LimitsRelease :exec
-- LimitsRelease gives a claimed notice back.
UPDATE limit_windows l SET noticed = '', ends_at = now() WHERE l.subject = @subject;

-- name: LimitsUsed :many
SELECT l.subject, l.used, l.ends_at, (l.ends_at > now())::boolean AS running, l.parts, l.before
FROM limit_windows l WHERE l.subject = ANY(@subjects::bytea[]);

-- name: LimitsTrim :exec
-- LimitsTrim deletes windows that ended ten minutes ago: until then they are the recent use.
DELETE FROM limit_windows l WHERE l.ends_at < now() - interval '10 minutes';

-- name: LimitsKey :many
SELECT k.key FROM limit_keys k WHERE k.day = @day::date;

-- name: LimitsKeyAdd :exec
INSERT INTO limit_keys (day, key) VALUES (@day::date, @key::bytea) ON CONFLICT (day) DO NOTHING;

-- name: LimitsKeysTrim :exec
DELETE FROM limit_keys k WHERE k.day < @day::date;

-- name: UsageOfOthers :one
-- UsageOfOthers is the most that other people used on one of some days (UTC), by the index on the day.
SELECT coalesce(max(d.tokens), 0)::bigint AS tokens, coalesce(sum(d.of_rows), 0)::bigint AS of_rows FROM (
    SELECT sum(u.prompt_tokens + u.completion_tokens) AS tokens, count(*) AS of_rows FROM model_usage u
    WHERE u.day >= @since::date AND u.person <> '' AND u.person <> @person::text
    GROUP BY u.day
) d;

-- name: SpendDay :one
-- SpendDay sums the tokens of all sessions today, by the index on the day.
SELECT coalesce(sum(u.prompt_tokens + u.completion_tokens), 0)::bigint AS tokens, count(*) AS of_rows,
    ((date_trunc('day', now() AT TIME ZONE 'UTC') + interval '1 day') AT TIME ZONE 'UTC')::timestamptz AS ends_at
FROM model_usage u WHERE u.day = (now() AT TIME ZONE 'UTC')::date;
