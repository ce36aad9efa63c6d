-- name: LimitsOpen :exec
-- LimitsOpen adds the missing windows of a turn, which have ended. So LimitsAdmit locks all of them in one order.
INSERT INTO limit_windows (subject, ends_at, used)
SELECT w.subject, now(), 0 FROM (SELECT unnest(@subjects::bytea[]) AS subject, unnest(@turns::boolean[]) AS turns) w
WHERE w.turns
ORDER BY w.subject
ON CONFLICT (subject) DO NOTHING;

-- name: LimitsAdmit :many
-- LimitsAdmit counts a turn in the windows of its askers, unless a limit is reached, and returns the reached ones. asker is
-- the number of a person from 1 on, or 0 for all of them. turns: the window counts turns, else tokens, which are read only. lasts are the seconds of a new window.
-- The events of admitted askers keep that: a repeated attempt is not counted.
--
-- The rows are locked in the order of their keys. A row that is deleted after LimitsOpen is added out of that order. Windows
-- that two statements begin at the same moment are found by the count after it, which may then exceed the limit.
WITH wanted AS (
    SELECT unnest(@subjects::bytea[]) AS subject, unnest(@bounds::bigint[]) AS bound, unnest(@askers::int[]) AS asker,
        unnest(@turns::boolean[]) AS turns, unnest(@lasts::float8[]) AS lasts
), held AS MATERIALIZED (
    SELECT l.subject, l.used, l.ends_at FROM limit_windows l
    WHERE l.subject = ANY(@subjects::bytea[]) ORDER BY l.subject FOR UPDATE
), reached AS (
    SELECT w.subject, w.asker, h.ends_at FROM wanted w JOIN held h ON h.subject = w.subject
    WHERE h.ends_at > now() AND h.used >= w.bound
), admitted AS (
    SELECT a.asker FROM generate_series(1, @people::int) AS a (asker)
    WHERE NOT EXISTS (SELECT FROM reached r WHERE r.asker IN (0, a.asker))
), counted AS (
    INSERT INTO limit_windows AS l (subject, ends_at, used)
    SELECT w.subject, now() + interval '1 second' * w.lasts, 1 FROM wanted w
    WHERE w.turns AND EXISTS (SELECT FROM admitted a WHERE w.asker IN (0, a.asker))
    ORDER BY w.subject
    ON CONFLICT (subject) DO UPDATE SET
        used = CASE WHEN l.ends_at > now() THEN l.used + 1 ELSE 1 END,
        ends_at = CASE WHEN l.ends_at > now() THEN l.ends_at ELSE EXCLUDED.ends_at END
    RETURNING l.subject, l.used, l.ends_at
), exceeded AS (
    SELECT c.subject, w.asker, c.ends_at FROM counted c JOIN wanted w ON w.subject = c.subject WHERE c.used > w.bound
), kept AS (
    UPDATE dingtalk_session_events e SET admitted = true
    FROM (SELECT unnest(@events::bigint[]) AS id, unnest(@event_askers::int[]) AS asker) m JOIN admitted a ON a.asker = m.asker
    WHERE e.session_key = @session_key AND e.id = m.id AND e.state = 'pending'
      AND NOT EXISTS (SELECT FROM exceeded x WHERE x.asker IN (0, m.asker))
)
SELECT r.subject::bytea AS subject, r.ends_at FROM reached r
UNION ALL
SELECT x.subject::bytea AS subject, x.ends_at FROM exceeded x;

-- name: LimitsAdmitDay :one
-- LimitsAdmitDay is SpendDay for a turn. Its events are admitted if a bound of the day's tokens is not reached.
WITH day AS (
    SELECT coalesce(sum(u.prompt_tokens + u.completion_tokens), 0)::bigint AS tokens
    FROM model_usage u WHERE u.day = (now() AT TIME ZONE 'UTC')::date
), kept AS (
    UPDATE dingtalk_session_events e SET admitted = true FROM day
    WHERE e.session_key = @session_key AND e.id = ANY(@events::bigint[]) AND e.state = 'pending' AND day.tokens < @bound::bigint
)
SELECT day.tokens, ((date_trunc('day', now() AT TIME ZONE 'UTC') + interval '1 day') AT TIME ZONE 'UTC')::timestamptz AS ends_at
FROM day;

-- name: LimitsSpend :exec
-- LimitsSpend adds tokens to windows that end with the day (UTC).
INSERT INTO limit_windows AS l (subject, ends_at, used)
SELECT s.subject, (date_trunc('day', now() AT TIME ZONE 'UTC') + interval '1 day') AT TIME ZONE 'UTC', s.tokens
FROM (SELECT unnest(@subjects::bytea[]) AS subject, unnest(@tokens::bigint[]) AS tokens) s
ORDER BY s.subject
ON CONFLICT (subject) DO UPDATE SET
    used = CASE WHEN l.ends_at > now() THEN l.used ELSE 0 END + EXCLUDED.used,
    ends_at = EXCLUDED.ends_at;

-- name: LimitsNotify :execrows
-- LimitsNotify claims the notice of a window. No row: another message claimed it.
INSERT INTO limit_windows AS l (subject, ends_at, noticed)
VALUES (@subject, coalesce(sqlc.narg(ends_at)::timestamptz, now() + interval '1 second' * @lasts::float8), @noticed::text)
ON CONFLICT (subject) DO UPDATE SET ends_at = EXCLUDED.ends_at, noticed = EXCLUDED.noticed
WHERE l.ends_at <= now() OR l.noticed = @noticed::text AND @noticed::text <> '';

-- name: LimitsUsed :many
SELECT l.subject, l.used, l.ends_at FROM limit_windows l WHERE l.subject = ANY(@subjects::bytea[]) AND l.ends_at > now();

-- name: LimitsTrim :exec
DELETE FROM limit_windows l WHERE l.ends_at < now();

-- name: SpendDay :one
-- SpendDay sums the tokens of all sessions today, by the index on the day.
SELECT coalesce(sum(u.prompt_tokens + u.completion_tokens), 0)::bigint AS tokens,
    ((date_trunc('day', now() AT TIME ZONE 'UTC') + interval '1 day') AT TIME ZONE 'UTC')::timestamptz AS ends_at
FROM model_usage u WHERE u.day = (now() AT TIME ZONE 'UTC')::date;
