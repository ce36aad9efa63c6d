-- name: MemoriesDerived :many
-- MemoriesDerived adds to memories those derived from them. These are all rows of their consolidations, when one of the
-- rows is listed, and the team's copies of a group's, also after the group corrected its own.
WITH RECURSIVE derived AS (
    SELECT m.id, m.scope, m.scope_id, m.norm_hash, m.source_session, m.superseded_by, m.superseded_at, m.consolidated, m.created_at
    FROM memories m WHERE m.id = ANY(@ids::bigint[])
    UNION
    SELECT n.id, n.scope, n.scope_id, n.norm_hash, n.source_session, n.superseded_by, n.superseded_at, n.consolidated, n.created_at
    FROM derived o CROSS JOIN LATERAL (
        SELECT c.* FROM memories c
        WHERE c.id = o.superseded_by
          AND (c.consolidated OR (o.scope = 'group' AND c.scope = 'team' AND c.norm_hash = o.norm_hash))
        UNION ALL
        SELECT c.* FROM memories c
        WHERE c.consolidated AND c.scope = o.scope AND c.scope_id = o.scope_id
          AND c.created_at = ANY(ARRAY[o.superseded_at, CASE WHEN o.consolidated THEN o.created_at END])
        UNION ALL
        SELECT c.* FROM memories c
        WHERE o.scope = 'group' AND c.scope = 'team' AND c.source_session = o.source_session AND c.norm_hash = o.norm_hash
    ) n
)
SELECT derived.id::bigint AS id FROM derived;

-- name: MemoriesUnder :many
-- MemoriesUnder lists the facts consolidated into memories to delete, once for each of these, with its text and its
-- successor. 0 is none.
WITH RECURSIVE under AS (
    SELECT m.id, c.id AS teller, c.superseded_by AS by FROM memories c JOIN memories m ON m.superseded_by = c.id
    WHERE c.consolidated AND c.id = ANY(@ids::bigint[]) AND m.id <> ALL(@ids::bigint[])
    UNION
    SELECT m.id, c.id, c.superseded_by
    FROM memories c JOIN memories m ON m.scope = c.scope AND m.scope_id = c.scope_id AND m.superseded_at = c.created_at
    WHERE c.consolidated AND c.id = ANY(@ids::bigint[]) AND m.id <> ALL(@ids::bigint[])
), up AS (
    SELECT u.id, u.teller, u.by FROM under u
    UNION
    SELECT u.id, u.teller, c.superseded_by FROM up u JOIN memories c ON c.id = u.by WHERE c.id = ANY(@ids::bigint[])
)
SELECT u.id::bigint AS id, coalesce(u.by, 0)::bigint AS by, o.content, t.content AS consolidated
FROM up u JOIN memories o ON o.id = u.id JOIN memories t ON t.id = u.teller
WHERE u.by IS NULL OR u.by <> ALL(@ids::bigint[])
ORDER BY u.id, u.teller;

-- name: MemoriesBefore :many
-- MemoriesBefore lists the predecessors of a memory: values that it corrected, and facts consolidated into it or
-- similar ones.
SELECT m.id, m.scope, m.scope_id, m.kind, m.source_session, m.start_seq, m.end_seq, m.turn, m.said_by, m.content, m.created_at,
    m.consolidated, (NOT n.consolidated OR (m.scope = n.scope AND m.scope_id = n.scope_id AND m.superseded_by = n.id
        AND m.superseded_at IS DISTINCT FROM n.created_at))::boolean AS corrected
FROM memories n CROSS JOIN memories m
WHERE n.id = @id::bigint AND (m.superseded_by = n.id OR (n.consolidated
  AND (m.scope = n.scope AND m.scope_id = n.scope_id AND m.superseded_at = n.created_at OR m.superseded_by IN (SELECT c.id FROM memories c
    WHERE c.consolidated AND c.scope = n.scope AND c.scope_id = n.scope_id AND c.created_at = n.created_at))))
ORDER BY m.id;

-- name: MemoriesToldWith :many
-- MemoriesToldWith reads the other rows of a memory's consolidation.
SELECT c.content FROM memories n JOIN memories c ON c.scope = n.scope AND c.scope_id = n.scope_id AND c.created_at = n.created_at
WHERE n.id = @id::bigint AND n.consolidated AND c.consolidated AND c.id <> n.id;

-- name: MemoriesRestore :exec
-- MemoriesRestore puts memories back in force, or sets their successors. Ids and successors are parallel arrays. A fact
-- that another row in force has in the same words stays history.
UPDATE memories m SET superseded_by = nullif(r.by, 0), superseded_at = CASE WHEN r.by = 0 THEN NULL ELSE m.superseded_at END
FROM (SELECT unnest(@ids::bigint[]) AS id, unnest(@bys::bigint[]) AS by) r
WHERE m.id = r.id AND (r.by <> 0 OR NOT EXISTS (
    SELECT FROM memories f WHERE f.scope = m.scope AND f.scope_id = m.scope_id AND f.norm_hash = m.norm_hash
      AND (f.superseded_by IS NULL OR (f.id = ANY(@ids::bigint[]) AND f.id > m.id))));

-- name: MemoriesConsolidated :exec
-- MemoriesConsolidated marks memories as consolidations of others.
UPDATE memories m SET consolidated = true
WHERE m.scope = @scope AND m.scope_id = @scope_id AND m.id = ANY(@ids::bigint[]);

-- name: DigestsTelling :many
-- DigestsTelling lists the digests of a session that cover one of some events, and the digests in a list of memories.
-- Those that cover events and are no older than the given seconds can be written again.
SELECT d.id, d.content, d.scope, d.scope_id,
    (d.covers AND d.created_at > now() - interval '1 second' * @fresh_seconds::float8)::boolean AS fresh
FROM (
    SELECT m.id, m.content, m.scope, m.scope_id, m.created_at, (m.source_session = @session_key
        AND EXISTS (SELECT FROM unnest(@seqs::bigint[]) AS w (seq) WHERE w.seq BETWEEN m.start_seq AND m.end_seq)) AS covers
    FROM memories m WHERE m.kind = 'digest' AND (m.id = ANY(@ids::bigint[]) OR m.source_session = @session_key)
) d
WHERE d.covers OR d.id = ANY(@ids::bigint[])
ORDER BY d.id;

-- name: DigestsDrop :exec
-- DigestsDrop settles without a digest the days whose digests are not wanted.
UPDATE memory_digests g SET memory_id = NULL, updated_at = now() WHERE g.memory_id = ANY(@ids::bigint[]);

-- name: DigestTrim :exec
-- DigestTrim replaces the text of a digest.
UPDATE memories m SET content = @content, norm_hash = @norm_hash, terms = @terms::bigint[], terms_version = 2 WHERE m.id = @id;
