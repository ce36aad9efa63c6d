-- name: DebtFind :one
SELECT d.through_seq, d.failures, d.reason FROM flush_debts d WHERE d.session_key = @session_key;

-- name: DebtsDue :many
-- DebtsDue lists debts whose rest is over, the oldest first, of sessions whose lease is free, stale or owner's. The rest
-- doubles with each failure.
SELECT d.session_key, d.through_seq, d.failures, d.reason
FROM flush_debts d
JOIN dingtalk_sessions s ON s.session_key = d.session_key
WHERE d.updated_at + least(interval '1 second' * power(2, least(greatest(d.failures - 1, 0), 20)) * @rest_seconds::float8,
        interval '1 second' * @most_seconds::float8) <= now()
  AND (s.lease_owner IS NULL OR s.lease_owner = @owner::text OR NOT EXISTS (
    SELECT 1 FROM replicas r
    WHERE r.id = s.lease_owner AND r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8))
ORDER BY d.created_at, d.session_key
LIMIT @max_rows::int;

-- name: SessionsIdle :many
-- SessionsIdle lists sessions where a message that looks worth remembering is not flushed, and nothing was said for a
-- while, the one that rests for longest first: those whose lease is free, stale or owner's, and that owe nothing. Older
-- ones than that are flushed when somebody speaks there again.
SELECT s.session_key
FROM dingtalk_sessions s
WHERE s.flushed_seq < s.last_seq AND s.candidates > 0
  AND s.last_active_at <= now() - interval '1 second' * @idle_seconds::float8
  AND s.last_active_at > now() - interval '1 second' * @oldest_seconds::float8
  AND NOT EXISTS (SELECT 1 FROM flush_debts d WHERE d.session_key = s.session_key)
  AND (s.lease_owner IS NULL OR s.lease_owner = @owner::text OR NOT EXISTS (
    SELECT 1 FROM replicas r
    WHERE r.id = s.lease_owner AND r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8))
ORDER BY s.last_active_at, s.session_key
LIMIT @max_rows::int;
