-- Dead letters, for administrators.

-- name: DeadLettersList :many
-- DeadLettersList lists dead letters of sessions, NULL for all, the newest first, without erased ones.
SELECT e.* FROM dingtalk_session_events e
WHERE e.state = 'dead' AND e.content <> @erased::text AND (sqlc.narg('only_keys')::text[] IS NULL OR e.session_key = ANY(sqlc.narg('only_keys')::text[]))
ORDER BY e.id DESC LIMIT @max_rows::int;

-- name: DeadLetterRetry :one
-- DeadLetterRetry queues a dead letter for another answer, as if it came now. One attempt stays counted, so that a turn
-- takes it alone. No row: it was no dead letter.
UPDATE dingtalk_session_events e SET state = 'pending', turn = NULL, attempts = 1, attempt_term = NULL, counted_term = NULL, width = NULL, created_at = now()
WHERE e.id = @id AND e.state = 'dead' AND e.content <> @erased::text
RETURNING e.session_key;
