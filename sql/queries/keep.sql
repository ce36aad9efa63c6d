-- name: FlushInsert :exec
-- FlushInsert is the receipt of a flush, or of a part of one.
INSERT INTO memory_flushes (session_key, trigger, gen, epoch, from_seq, through_seq, saved, duplicate, superseded, model,
    prompt_tokens, cached_tokens, completion_tokens, cost)
VALUES (@session_key, @trigger, @gen, @epoch, @from_seq, @through_seq, @saved, @duplicate, @superseded, @model,
    @prompt_tokens, @cached_tokens, @completion_tokens, @cost);

-- name: CompactionFlushes :many
-- CompactionFlushes lists the receipts of the cycle that a compaction ended, in order.
SELECT f.* FROM compaction_log c
JOIN memory_flushes l ON l.session_key = c.session_key AND l.id = c.flush_id
JOIN memory_flushes f ON f.session_key = l.session_key AND f.gen = l.gen AND f.epoch = l.epoch AND f.id <= l.id
WHERE c.session_key = @session_key AND c.id = @id
ORDER BY f.id;

-- name: MemoriesKnown :many
-- MemoriesKnown reads the memories that drafts are compared with, in their scopes alone. These are the newest in force;
-- those with the same text or key or that are named, superseded ones too; and their successors. Digests are left out,
-- since nothing merges or corrects them. It reads people's facts of one robot, since another robot may use the same id
-- for another person. It reads the team's facts as they hold for the drafts' groups, as MemoriesReadable does.
WITH RECURSIVE places AS (
    SELECT DISTINCT p.scope, p.scope_id
    FROM (SELECT unnest(@scopes::text[]) AS scope, unnest(@scope_ids::text[]) AS scope_id) p
), chain AS (
    SELECT m.scope, m.scope_id, m.id, m.superseded_by
    FROM memories m JOIN places p ON m.scope = p.scope AND m.scope_id = p.scope_id
    WHERE m.norm_hash = ANY(@hashes::bytea[]) OR (m.id = ANY(@ids::bigint[]) AND m.kind <> 'digest')
       OR (m.superseded_by IS NULL AND m.fact_key <> '' AND m.fact_key = ANY(@keys::text[]))
       OR (m.scope = 'user' AND m.source_group <> '' AND m.superseded_by IS NOT NULL AND EXISTS (SELECT FROM memories n
            WHERE n.scope = 'user' AND n.scope_id = m.scope_id AND n.id = m.superseded_by AND n.source_group <> m.source_group))
    UNION
    SELECT n.scope, n.scope_id, n.id, n.superseded_by
    FROM memories n JOIN chain c ON n.scope = c.scope AND n.scope_id = c.scope_id AND n.id = c.superseded_by
), fresh AS (
    SELECT f.id FROM places p CROSS JOIN LATERAL (
        SELECT m.id FROM memories m
        WHERE m.scope = p.scope AND m.scope_id = p.scope_id AND m.superseded_by IS NULL AND m.kind <> 'digest'
        ORDER BY m.id DESC LIMIT @max_rows::int) f
)
SELECT k.id, k.scope, k.scope_id, k.kind, k.content, k.fact_key, k.subject_id, k.said_at, k.source_group, k.superseded_by,
    k.created_at
FROM memories k JOIN places p ON k.scope = p.scope AND k.scope_id = p.scope_id
WHERE k.id IN (SELECT chain.id FROM chain UNION SELECT fresh.id FROM fresh)
  AND (k.scope <> 'user' OR starts_with(k.source_session, @robot_sessions::text))
  AND (k.scope <> 'team' OR k.source_group <> ALL(@source_groups::text[]) OR EXISTS (SELECT FROM memories o
    WHERE o.scope = 'group' AND o.scope_id = k.source_group AND o.superseded_by = k.id))
ORDER BY k.id;

-- name: MemoryInsert :one
-- MemoryInsert stores a fact. No row: one in force has the same text.
INSERT INTO memories (scope, scope_id, kind, content, norm_hash, fact_key, subject_id, said_by, said_at, source_group,
    source_session, start_seq, end_seq, turn, expires_at, terms, terms_version, last_seen_at, superseded_by, superseded_at)
VALUES (@scope, @scope_id, @kind, @content, @norm_hash, @fact_key, @subject_id, @said_by, @said_at, @source_group,
    @source_session, @start_seq, @end_seq, @turn, @expires_at, @terms, 2, coalesce(sqlc.narg(said_at)::timestamptz, now()), @superseded_by,
    CASE WHEN sqlc.narg(superseded_by)::bigint IS NULL THEN NULL ELSE now() END)
ON CONFLICT (scope, scope_id, norm_hash) WHERE superseded_by IS NULL DO NOTHING
RETURNING id;

-- name: MemoryByHash :one
SELECT m.id FROM memories m
WHERE m.scope = @scope AND m.scope_id = @scope_id AND m.norm_hash = @norm_hash AND m.superseded_by IS NULL;

-- name: MemoriesPass :exec
-- MemoriesPass gives facts that a turn saved from some people's words to another turn of the session.
UPDATE memories m SET turn = @to_turn
WHERE m.source_session = @source_session AND m.turn = @from_turn AND m.said_by = ANY(@people::text[]) AND m.said_by <> '';

-- name: MemorySeen :exec
-- MemorySeen records that a fact in force was said again. A message counts once, however often it is read. A fact with
-- an expiry stays as long as the new one would.
UPDATE memories m SET
    seen = m.seen + CASE WHEN m.last_seen_at < @said_at::timestamptz THEN 1 ELSE 0 END,
    last_seen_at = greatest(m.last_seen_at, @said_at::timestamptz),
    expires_at = CASE WHEN m.expires_at IS NULL OR sqlc.narg(expires_at)::timestamptz IS NULL THEN NULL
        ELSE greatest(m.expires_at, sqlc.narg(expires_at)::timestamptz) END
WHERE m.scope = @scope AND m.scope_id = @scope_id AND m.id = @id AND m.superseded_by IS NULL;

-- name: MemoriesSupersede :many
-- MemoriesSupersede takes memories out of force and keeps them as history. It also supersedes those that one of
-- successors superseded elsewhere, and the team's copy, for its source group.
UPDATE memories m SET superseded_by = @by, superseded_at = now()
WHERE m.scope = @scope AND m.scope_id = @scope_id
  AND ((m.id = ANY(@ids::bigint[]) AND (m.superseded_by IS NULL OR m.superseded_by = ANY(@successors::bigint[])))
    OR m.superseded_by = ANY(@team_ids::bigint[]))
RETURNING m.id;

-- name: MemoriesExpire :many
-- MemoriesExpire deletes memories that have been unreadable for a while, and returns their places and texts.
DELETE FROM memories m WHERE m.expires_at < now() - interval '1 second' * @rest_seconds::float8
RETURNING m.scope, m.scope_id, m.content;

-- name: MemoriesOverfull :many
-- MemoriesOverfull lists the scopes with more memories in force than the limit, the fullest first, after a place in
-- that order. It reads the whole table.
SELECT m.scope, m.scope_id, count(*)::int AS held FROM memories m
WHERE m.superseded_by IS NULL AND m.kind <> 'digest' AND (m.expires_at IS NULL OR m.expires_at > now())
GROUP BY m.scope, m.scope_id
HAVING count(*) > @max_held::int AND (-count(*), m.scope, m.scope_id) > (-(@after_held::bigint), @after_scope::text, @after_id::text)
ORDER BY held DESC, m.scope, m.scope_id
LIMIT @max_rows::int;

-- name: MemoriesPiles :many
-- MemoriesPiles groups the memories of a scope that may be consolidated by source, author and subject, with the size of
-- each group, the largest first. It leaves out memories that expire, single ones, and those with a key, which only the
-- key can correct.
SELECT m.source_session, m.source_group, m.subject_id, m.said_by, count(*)::int AS held FROM memories m
WHERE m.scope = @scope AND m.scope_id = @scope_id AND m.superseded_by IS NULL AND m.expires_at IS NULL AND m.kind <> 'digest'
  AND m.fact_key = ''
GROUP BY m.source_session, m.source_group, m.subject_id, m.said_by
HAVING count(*) > 1
ORDER BY count(*) DESC, min(m.id);

-- name: MemoriesOldest :many
-- MemoriesOldest lists the oldest memories in force of a scope that may be consolidated: all of one source, author and
-- subject. It leaves out memories that expire or have a key.
SELECT m.id, m.scope, m.scope_id, m.kind, m.content, m.fact_key, m.subject_id, m.said_by, m.said_at, m.source_group,
    m.source_session, m.start_seq, m.end_seq, m.created_at
FROM memories m
WHERE m.scope = @scope AND m.scope_id = @scope_id AND m.superseded_by IS NULL AND m.expires_at IS NULL AND m.kind <> 'digest'
  AND m.fact_key = ''
  AND m.source_session = @source_session AND m.source_group = @source_group AND m.subject_id = @subject_id
  AND m.said_by = @said_by
  AND NOT coalesce(jsonb_exists(m.withheld, @model::text), false)
ORDER BY m.last_seen_at, m.id
LIMIT @max_rows::int;

-- name: MemoriesSucceed :exec
-- MemoriesSucceed sets the successor of memories that left force before it was stored. The source group of a promoted
-- memory follows: its successor becomes the group's.
UPDATE memories m SET superseded_by = @by
WHERE (m.scope = @scope AND m.scope_id = @scope_id AND m.id = ANY(@ids::bigint[]))
   OR (@scope = 'team' AND m.scope = 'group' AND m.scope_id = @source_group::text AND m.superseded_by = ANY(@ids::bigint[]));
