-- name: DebtsList :many
-- DebtsList lists owed flushes of sessions, NULL for all, oldest first.
SELECT d.* FROM flush_debts d
WHERE sqlc.narg('only_keys')::text[] IS NULL OR d.session_key = ANY(sqlc.narg('only_keys')::text[])
ORDER BY d.created_at, d.session_key LIMIT @max_rows::int;

-- name: EventsList :many
-- EventsList lists a session's log in order of arrival, a page at a time.
SELECT e.* FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.id > @after_id::bigint
ORDER BY e.id
LIMIT @max_rows::int;

-- name: SessionFind :one
SELECT sqlc.embed(s),
    (CASE WHEN s.spent_on = (now() AT TIME ZONE 'UTC')::date THEN s.spent_tokens ELSE 0 END)::bigint AS spent_today
FROM dingtalk_sessions s WHERE s.session_key = @session_key;

-- name: SessionsList :many
SELECT sqlc.embed(s),
    (CASE WHEN s.spent_on = (now() AT TIME ZONE 'UTC')::date THEN s.spent_tokens ELSE 0 END)::bigint AS spent_today
FROM dingtalk_sessions s ORDER BY s.last_active_at DESC, s.session_key LIMIT @max_rows::int;

-- name: SessionsUnflushed :many
-- SessionsUnflushed lists a replica's sessions with messages since their last flush, and their size. Recent ones that no
-- living replica has leased are listed too, unless they owe the flush already or messages wait. It reads each session's
-- events from its cursor on, by the index of places: a join would read the whole log for a few unflushed events.
SELECT s.session_key, u.tokens
FROM dingtalk_sessions s
CROSS JOIN LATERAL (
    SELECT coalesce(sum(e.tokens), 0)::bigint AS tokens FROM dingtalk_session_events e
    WHERE e.session_key = s.session_key AND e.seq > s.flushed_seq
) u
WHERE s.flushed_seq < s.last_seq AND (s.lease_owner = @owner::text
    OR s.last_active_at > now() - interval '1 second' * @recent_seconds::float8
    AND coalesce(s.lease_owner, '') <> ALL (ARRAY(
        SELECT r.id FROM replicas r WHERE r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8))
    AND NOT EXISTS (SELECT FROM flush_debts d WHERE d.session_key = s.session_key)
    AND NOT EXISTS (SELECT FROM dingtalk_session_events e WHERE e.session_key = s.session_key AND e.state = 'pending'))
ORDER BY u.tokens DESC, s.session_key;
