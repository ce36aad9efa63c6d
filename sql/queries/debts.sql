-- name: DebtFind :one
SELECT d.through_seq, d.failures, d.reason FROM flush_debts d WHERE d.session_key = @session_key;

-- name: DebtsDue :many
-- DebtsDue lists owed flushes whose pause is over, the oldest first, after a place in that order. Their sessions' lease
-- is free, stale or owner's. The pause doubles with each failure. A flush that a stop interrupted did not fail, and has
-- no pause.
SELECT d.session_key, d.through_seq, d.failures, d.reason, d.created_at, s.conversation_id,
    (CASE WHEN s.spent_on = (now() AT TIME ZONE 'UTC')::date THEN s.spent_tokens ELSE 0 END)::bigint AS spent_today
FROM flush_debts d
JOIN dingtalk_sessions s ON s.session_key = d.session_key
WHERE (d.failures = 0 OR d.updated_at + least(interval '1 second' * power(2, least(d.failures - 1, 20)) * @rest_seconds::float8,
        interval '1 second' * @most_seconds::float8) <= now())
  AND (d.created_at, d.session_key) > (@after_at::timestamptz, @after_key::text)
  AND (s.lease_owner IS NULL OR s.lease_owner = @owner::text OR s.lease_owner <> ALL (ARRAY(
    SELECT r.id FROM replicas r WHERE r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8)))
ORDER BY d.created_at, d.session_key
LIMIT @max_rows::int;

-- name: DebtsOwe :execrows
-- DebtsOwe stores as owed the unflushed ranges of the sessions of SessionsUnflushed, or of the one with the given key if
-- the replica holds it. A running pause stays.
INSERT INTO flush_debts AS d (session_key, from_seq, through_seq, failures, reason)
SELECT s.session_key, s.flushed_seq, s.last_seq, s.flush_failures, @reason
FROM dingtalk_sessions s
WHERE @session_key::text IN ('', s.session_key) AND s.flushed_seq < s.last_seq AND (s.lease_owner = @owner::text
    OR @session_key::text = '' AND s.last_active_at > now() - interval '1 second' * @recent_seconds::float8
    AND coalesce(s.lease_owner, '') <> ALL (ARRAY(
        SELECT r.id FROM replicas r WHERE r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8))
    AND NOT EXISTS (SELECT FROM flush_debts o WHERE o.session_key = s.session_key)
    AND NOT EXISTS (SELECT FROM dingtalk_session_events e WHERE e.session_key = s.session_key AND e.state = 'pending'))
ON CONFLICT (session_key) DO UPDATE SET from_seq = EXCLUDED.from_seq, through_seq = EXCLUDED.through_seq;

-- name: SessionsIdle :many
-- SessionsIdle lists quiet sessions with an unflushed message that looks worth remembering, or with at least the given
-- number of unflushed events. The longest quiet comes first, after a place in that order. Their lease is free, stale or
-- owner's, and they owe nothing. Sessions with older messages are flushed after their next message.
SELECT s.session_key, s.last_active_at, s.conversation_id,
    (CASE WHEN s.spent_on = (now() AT TIME ZONE 'UTC')::date THEN s.spent_tokens ELSE 0 END)::bigint AS spent_today
FROM dingtalk_sessions s
WHERE s.flushed_seq < s.last_seq AND (s.candidates > 0 OR s.last_seq - s.flushed_seq >= @least::bigint)
  AND s.last_active_at <= now() - interval '1 second' * @idle_seconds::float8
  AND s.last_active_at > now() - interval '1 second' * @oldest_seconds::float8
  AND (s.last_active_at, s.session_key) > (@after_at::timestamptz, @after_key::text)
  AND NOT EXISTS (SELECT 1 FROM flush_debts d WHERE d.session_key = s.session_key)
  AND (s.lease_owner IS NULL OR s.lease_owner = @owner::text OR s.lease_owner <> ALL (ARRAY(
    SELECT r.id FROM replicas r WHERE r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8)))
ORDER BY s.last_active_at, s.session_key
LIMIT @max_rows::int;
