-- Files that replies send.

-- name: SentFileKeep :one
-- SentFileKeep stores a file of a turn that has not committed, in place of the same one by an earlier attempt. No row: the lease is not
-- the current one.
INSERT INTO sent_files (session_key, event_id, source, name, kind, body)
SELECT held.session_key, @event_id, @source, @name, @kind, @body
FROM (
    SELECT s.session_key FROM dingtalk_sessions s
    WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term FOR SHARE
) held
ON CONFLICT (session_key, event_id, source) DO UPDATE SET name = excluded.name, kind = excluded.kind, body = excluded.body
RETURNING id;

-- name: SentFiles :many
-- SentFiles lists the files of turns that have not committed, in the order of their making, without their bytes.
SELECT f.id, f.source, f.name, f.kind FROM sent_files f
WHERE f.session_key = @session_key AND f.event_id = ANY(@events::bigint[])
ORDER BY f.id;

-- name: SentFileBody :one
SELECT f.body FROM sent_files f WHERE f.session_key = @session_key AND f.id = @id;

-- name: SentFileDelete :exec
DELETE FROM sent_files f WHERE f.session_key = @session_key AND f.id = @id;

-- name: SentFilesSweep :exec
-- SentFilesSweep deletes the files of a locked session that no open reply has, and no message that waits for its turn.
DELETE FROM sent_files f
WHERE f.session_key = @session_key
  AND NOT EXISTS (
    SELECT FROM outbox o
    WHERE o.session_key = @session_key AND o.state IN ('sending', 'waiting') AND (o.target -> 'file' ->> 'id')::bigint = f.id)
  AND NOT EXISTS (
    SELECT FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.id = f.event_id AND e.state = 'pending' AND e.content <> @erased::text);

-- name: SentFilesExpire :execrows
-- SentFilesExpire deletes files from before the period that no open reply has: a process died before it deleted them, or their turn never
-- committed.
DELETE FROM sent_files f USING (
    SELECT p.session_key, p.id FROM sent_files p
    WHERE p.created_at < now() - interval '1 second' * @period_seconds::float8 AND NOT EXISTS (
        SELECT FROM outbox o
        WHERE o.session_key = p.session_key AND o.state IN ('sending', 'waiting') AND (o.target -> 'file' ->> 'id')::bigint = p.id)
    ORDER BY p.created_at LIMIT @max_rows::int
) old
WHERE f.session_key = old.session_key AND f.id = old.id;
