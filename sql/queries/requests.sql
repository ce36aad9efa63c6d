-- Compactions that an administrator asked for.

-- name: CompactionRequest :execrows
-- CompactionRequest stores a request. No row: one is waiting or running, or there is no such session.
INSERT INTO compaction_requests (session_key, settings, focus, requested_by)
SELECT s.session_key, @settings::text, @focus::text, @requested_by::text FROM dingtalk_sessions s WHERE s.session_key = @session_key
ON CONFLICT (session_key) DO NOTHING;

-- name: CompactionRequestFind :one
SELECT q.* FROM compaction_requests q WHERE q.session_key = @session_key;

-- name: CompactionRequestsDue :many
-- CompactionRequestsDue lists requests of sessions whose lease is free, stale or owner's, the oldest first.
SELECT q.* FROM compaction_requests q JOIN dingtalk_sessions s ON s.session_key = q.session_key
WHERE s.lease_owner IS NULL OR s.lease_owner = @owner::text OR s.lease_owner <> ALL (ARRAY(
    SELECT r.id FROM replicas r WHERE r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8))
ORDER BY q.requested_at, q.session_key
LIMIT @max_rows::int;

-- name: CompactionRequestStart :one
-- CompactionRequestStart counts an attempt under the current lease, and returns its number.
UPDATE compaction_requests q SET started_at = now(), attempts = q.attempts + 1
WHERE q.session_key = @session_key AND EXISTS (
    SELECT FROM dingtalk_sessions s WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term)
RETURNING q.attempts;

-- name: CompactionRequestReturn :exec
-- CompactionRequestReturn takes back an attempt that did not begin. Its term may have ended.
UPDATE compaction_requests q SET started_at = NULL, attempts = q.attempts - 1
WHERE q.session_key = @session_key AND q.attempts = @attempt AND EXISTS (
    SELECT FROM dingtalk_sessions s WHERE s.session_key = @session_key AND s.lease_owner = @owner::text);

-- name: CompactionRequestEnd :exec
-- CompactionRequestEnd deletes a request after its attempt, unless the session has another owner since, or another attempt.
DELETE FROM compaction_requests q
WHERE q.session_key = @session_key AND q.attempts = @attempt AND EXISTS (
    SELECT FROM dingtalk_sessions s WHERE s.session_key = @session_key AND s.lease_owner = @owner::text);

-- name: DebtRetry :execrows
-- DebtRetry ends the pause of an owed flush.
UPDATE flush_debts d SET failures = 0, updated_at = now() WHERE d.session_key = @session_key;
