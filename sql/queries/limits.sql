-- name: LimitsRenew :batchexec
-- LimitsRenew begins a window of a number of seconds in place of one that has ended.
UPDATE limit_windows l SET used = 0, ends_at = now() + interval '1 second' * @lasts::float8
WHERE l.subject = @subject AND l.ends_at <= now();

-- name: LimitsRenewDay :batchexec
-- LimitsRenewDay begins a window of this day (UTC) in place of one that has ended.
UPDATE limit_windows l SET used = 0, ends_at = (date_trunc('day', now() AT TIME ZONE 'UTC') + interval '1 day') AT TIME ZONE 'UTC'
WHERE l.subject = @subject AND l.ends_at <= now();

-- name: LimitsCount :batchexec
-- LimitsCount adds to a window, or begins one of a number of seconds. It ends the pipeline by a division by zero when the window exceeds the
-- bound.
INSERT INTO limit_windows AS l (subject, ends_at, used) VALUES (@subject, now() + interval '1 second' * @lasts::float8, @more::bigint)
ON CONFLICT (subject) DO UPDATE SET used = l.used + EXCLUDED.used
RETURNING (1 / CASE WHEN l.used <= @bound::bigint THEN 1 ELSE 0 END)::int AS within;

-- name: LimitsCountDay :batchexec
-- LimitsCountDay adds to a window of this day (UTC).
INSERT INTO limit_windows AS l (subject, ends_at, used)
VALUES (@subject, (date_trunc('day', now() AT TIME ZONE 'UTC') + interval '1 day') AT TIME ZONE 'UTC', @more::bigint)
ON CONFLICT (subject) DO UPDATE SET used = l.used + EXCLUDED.used;

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
SELECT l.subject, l.used, l.ends_at FROM limit_windows l WHERE l.subject = ANY(@subjects::bytea[]) AND l.ends_at > now();

-- name: LimitsTrim :exec
DELETE FROM limit_windows l WHERE l.ends_at < now();

-- name: SpendDay :one
-- SpendDay sums the tokens of all sessions today, by the index on the day.
SELECT coalesce(sum(u.prompt_tokens + u.completion_tokens), 0)::bigint AS tokens, count(*) AS of_rows,
    ((date_trunc('day', now() AT TIME ZONE 'UTC') + interval '1 day') AT TIME ZONE 'UTC')::timestamptz AS ends_at
FROM model_usage u WHERE u.day = (now() AT TIME ZONE 'UTC')::date;
