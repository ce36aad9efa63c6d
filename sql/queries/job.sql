-- name: BlobFind :one
SELECT b.body FROM blobs b WHERE b.session_key = @session_key AND b.blob_id = @blob_id;

-- name: BlobsLogged :many
-- BlobsLogged reads the bodies of the events that were moved out of the view under an address: one, unless the log
-- changed since.
SELECT DISTINCT e.content FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq IS NOT NULL AND e.blob_id = @blob_id;

-- name: BlobsKeep :exec
-- BlobsKeep stores the bodies that the view after a place refers to. Most exist already.
INSERT INTO blobs (session_key, blob_id, body)
SELECT e.session_key, e.blob_id, e.content FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq > @after_seq::bigint AND e.blob_id IS NOT NULL
  AND NOT EXISTS (SELECT FROM blobs b WHERE b.session_key = @session_key AND b.blob_id = e.blob_id)
ON CONFLICT DO NOTHING;

-- name: BlobsSweep :many
-- BlobsSweep deletes the bodies that the view after a place no longer refers to, and returns their addresses.
DELETE FROM blobs b
WHERE b.session_key = @session_key AND NOT EXISTS (
    SELECT FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.seq > @after_seq::bigint AND e.blob_id = b.blob_id)
RETURNING b.blob_id;

-- name: EventsShow :exec
-- EventsShow sets the view's texts of events, or removes them.
UPDATE dingtalk_session_events e SET
    shown = CASE WHEN n.whole THEN NULL ELSE n.shown END,
    shown_tokens = CASE WHEN n.whole THEN NULL ELSE n.tokens END,
    blob_id = CASE WHEN n.whole THEN NULL ELSE nullif(n.blob_id, '') END
FROM (SELECT unnest(@seqs::bigint[]) AS seq, unnest(@texts::text[]) AS shown, unnest(@tokens::int[]) AS tokens,
    unnest(@blob_ids::text[]) AS blob_id, unnest(@whole::boolean[]) AS whole) n
WHERE e.session_key = @session_key AND e.seq = n.seq;

-- name: EventsShown :many
-- EventsShown reads the view's texts of events after a place, with the bodies of those to be moved out.
SELECT e.seq, e.shown, e.shown_tokens, e.blob_id,
    (CASE WHEN e.seq = ANY(@moved::bigint[]) THEN e.content ELSE '' END)::text AS content
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq > @after_seq::bigint AND e.seq = ANY(@seqs::bigint[]);

-- name: EventsSource :many
-- EventsSource reads a range as it was said, with the kept bodies of events that were moved out of the view.
SELECT sqlc.embed(e), b.body
FROM dingtalk_session_events e
LEFT JOIN blobs b ON b.session_key = @session_key AND b.blob_id = e.blob_id
WHERE e.session_key = @session_key AND e.seq > @after_seq::bigint AND e.seq <= @through_seq::bigint
ORDER BY e.seq;

-- name: JobDelete :exec
DELETE FROM compaction_jobs j WHERE j.session_key = @session_key;

-- name: JobFind :one
SELECT j.* FROM compaction_jobs j WHERE j.session_key = @session_key;

-- name: JobOpen :exec
-- JobOpen records a job in place of any other of the session.
INSERT INTO compaction_jobs AS j (session_key, gen, from_seq, through_seq, source_hash, version, attempts, staged, updated_at, created_at)
VALUES (@session_key, @gen, @from_seq, @through_seq, @source_hash, @version, @attempts, @staged, now(), now())
ON CONFLICT (session_key) DO UPDATE SET
    gen = EXCLUDED.gen, from_seq = EXCLUDED.from_seq, through_seq = EXCLUDED.through_seq,
    source_hash = EXCLUDED.source_hash, version = EXCLUDED.version, attempts = EXCLUDED.attempts,
    staged = EXCLUDED.staged, updated_at = EXCLUDED.updated_at,
    created_at = CASE WHEN EXCLUDED.attempts > 1 THEN j.created_at ELSE EXCLUDED.created_at END;

-- name: UpkeepMark :execrows
-- UpkeepMark keeps until when upkeep is under way under a lease.
UPDATE dingtalk_sessions s SET upkeep_term = s.lease_term, upkeep_until = now() + interval '1 second' * @limit_seconds::float8
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term;

-- name: UpkeepDone :exec
-- UpkeepDone ends the count of erasures that cut upkeep. A flush and a compaction do so by their own statements.
UPDATE dingtalk_sessions s SET cut_upkeep = 0 WHERE s.session_key = @session_key AND s.cut_upkeep > 0;

-- name: JobStage :execrows
-- JobStage stores the result of a job. No row: the session has another job.
UPDATE compaction_jobs j SET staged = @staged, updated_at = now()
WHERE j.session_key = @session_key AND j.gen = @gen AND j.from_seq = @from_seq AND j.through_seq = @through_seq
  AND j.version = @version;
