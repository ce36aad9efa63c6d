-- name: EmbeddingCursorSet :exec
INSERT INTO embedding_cursors AS c (session_key, model, through_seq) VALUES (@session_key, @model, @through_seq)
ON CONFLICT (session_key, model) DO UPDATE SET through_seq = greatest(c.through_seq, EXCLUDED.through_seq);

-- name: EmbeddingCursorsOutdated :exec
DELETE FROM embedding_cursors c WHERE c.model <> @model;

-- name: EmbeddingsDelete :exec
-- EmbeddingsDelete deletes a session's vectors and their cursor.
WITH cursors AS (DELETE FROM embedding_cursors c WHERE c.session_key = @session_key::text)
DELETE FROM embeddings e WHERE e.scope_key = @session_key::text OR e.scope_key = 'session|' || @session_key::text;

-- name: EmbeddingsErase :execrows
-- EmbeddingsErase deletes the vectors of texts everywhere, and resets the cursors of sessions that lost one, since
-- others may have the same text.
WITH gone AS (
    DELETE FROM embeddings e WHERE e.content_hash = ANY(@hashes::bytea[]) RETURNING e.scope_key
), again AS (
    DELETE FROM embedding_cursors c WHERE c.session_key IN (SELECT gone.scope_key FROM gone)
)
SELECT gone.scope_key FROM gone;

-- name: EmbeddingsExpire :batchexec
-- EmbeddingsExpire deletes the vector of a deleted memory, unless another memory in force of the scope has the same text.
DELETE FROM embeddings e
WHERE e.scope_key = @scope_key AND e.content_hash = @content_hash AND NOT EXISTS (SELECT FROM memories m
    WHERE m.scope = @scope AND m.scope_id = @scope_id AND m.content = @content AND m.superseded_by IS NULL
      AND (m.expires_at IS NULL OR m.expires_at > now()));

-- name: EmbeddingsExact :many
-- EmbeddingsExact reads the vectors of some texts.
SELECT e.content_hash, e.seq, e.vec FROM embeddings e
WHERE e.scope_key = ANY(@scope_keys::text[]) AND e.model = @model AND e.content_hash = ANY(@hashes::bytea[]);

-- name: MemoriesShare :exec
-- MemoriesShare protects memories from deletion until the transaction ends. It waits for those in progress.
SELECT m.id FROM memories m WHERE m.id = ANY(@ids::bigint[]) ORDER BY m.id FOR KEY SHARE;

-- name: EmbeddingsInsert :execrows
-- EmbeddingsInsert stores one vector, if the text is still where it was read: in an event of a session, or in a memory.
INSERT INTO embeddings (scope_key, content_hash, model, vec, small, seq)
SELECT @scope_key, @content_hash, @model, @vec::real[], @small, @seq
WHERE EXISTS (SELECT FROM dingtalk_session_events e
        WHERE e.session_key = @scope_key AND e.seq = @seq AND sha256(convert_to(e.content, 'UTF8')) = @content_hash)
   OR EXISTS (SELECT FROM memories m
        WHERE m.id = @id::bigint AND m.scope || '|' || m.scope_id = @scope_key
          AND sha256(convert_to(m.content, 'UTF8')) = @content_hash)
ON CONFLICT (scope_key, model, content_hash) DO NOTHING;

-- name: EmbeddingsKnown :many
-- EmbeddingsKnown finds existing vectors of texts.
SELECT DISTINCT ON (e.content_hash) e.content_hash, e.vec FROM embeddings e
WHERE e.content_hash = ANY(@hashes::bytea[]) AND e.model = @model
ORDER BY e.content_hash;

-- name: EmbeddingsOutdated :execrows
-- EmbeddingsOutdated deletes some of the vectors of other models.
DELETE FROM embeddings e USING (
    SELECT o.scope_key, o.model, o.content_hash FROM embeddings o WHERE o.model <> @model LIMIT @max_rows::int
) old
WHERE e.scope_key = old.scope_key AND e.model = old.model AND e.content_hash = old.content_hash;

-- name: EventsNear :many
-- EventsNear reads the beginnings of events, with the hashes of their vectors.
SELECT e.seq, e.role, e.sender_id, e.sender_nick, e.created_at, left(e.content, @max_chars::int)::text AS content,
    sha256(convert_to(e.content, 'UTF8'))::bytea AS content_hash
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq = ANY(@seqs::bigint[]);

-- name: EventsUnembedded :many
-- EventsUnembedded lists messages of people and the model without a vector in a part of the log. Commands and
-- their answers are left out.
SELECT e.seq, c.content_hash, left(e.content, @max_chars::int)::text AS content
FROM dingtalk_session_events e
CROSS JOIN LATERAL (SELECT sha256(convert_to(e.content, 'UTF8'))::bytea AS content_hash) c
WHERE e.session_key = @session_key AND e.seq > @after_seq::bigint AND e.seq <= @through_seq::bigint
  AND e.role IN ('user', 'assistant') AND e.content NOT IN ('', @erased::text) AND e.searched
  AND NOT EXISTS (SELECT FROM embeddings v
    WHERE v.scope_key = @session_key::text AND v.model = @model AND v.content_hash = c.content_hash)
ORDER BY e.seq;

-- name: MemoriesUnembedded :many
-- MemoriesUnembedded lists the memories after an id. It reports which have no vector, and which are so old that no
-- transaction can still commit one with a smaller id. Only those without a vector have their text.
SELECT m.id, m.source_session, (m.scope || '|' || m.scope_id)::text AS scope_key, c.content_hash,
    (CASE WHEN v.content_hash IS NULL THEN left(m.content, @max_chars::int) ELSE '' END)::text AS content,
    (m.superseded_by IS NULL AND coalesce(m.expires_at > now(), true) AND v.content_hash IS NULL)::boolean AS missing,
    (m.created_at < now() - interval '1 minute')::boolean AS settled
FROM (SELECT n.id, n.scope, n.scope_id, n.content, n.source_session, n.superseded_by, n.expires_at, n.created_at
    FROM memories n WHERE n.id > @after_id::bigint ORDER BY n.id LIMIT @max_rows::int) m
CROSS JOIN LATERAL (SELECT sha256(convert_to(m.content, 'UTF8'))::bytea AS content_hash) c
LEFT JOIN embeddings v ON v.scope_key = m.scope || '|' || m.scope_id AND v.model = @model AND v.content_hash = c.content_hash
ORDER BY m.id;

-- name: SessionsUnembedded :many
-- SessionsUnembedded lists sessions with events after those that have vectors, the last active first.
SELECT s.session_key, s.last_seq, coalesce(c.through_seq, 0)::bigint AS through_seq
FROM dingtalk_sessions s LEFT JOIN embedding_cursors c ON c.session_key = s.session_key AND c.model = @model
WHERE s.last_seq > coalesce(c.through_seq, 0)
ORDER BY s.last_active_at DESC
LIMIT @max_rows::int;
