-- name: MemoryValues :many
-- MemoryValues lists the values of one fact that a reader may see, the oldest first: those that a memory corrected,
-- itself, and those that corrected it. Corrections stay within a scope, but each value of people's statements about
-- themselves has its own place. Readers are as in MemoriesReadable: a group must not see that a value was corrected
-- elsewhere, nor that the team's fact in the same words was.
WITH RECURSIVE this AS (
    SELECT m.scope, m.scope_id, m.id, m.superseded_by FROM memories m
    WHERE m.id = @id::bigint
      AND ((m.scope = 'team' AND m.scope_id = @team_id::text)
        OR (m.scope = 'group' AND m.scope_id = @group_id::text)
        OR (m.scope = 'session' AND m.scope_id = @session_key::text)
        OR (m.scope = 'user' AND @private::boolean AND m.scope_id = ANY(@user_ids::text[])
            AND starts_with(m.source_session, @robot_sessions::text))
        OR (m.scope = 'user' AND NOT @private::boolean AND m.source_group <> '' AND m.source_group = @group_id::text))
), older AS (
    SELECT t.scope, t.scope_id, t.id FROM this t
    UNION
    SELECT m.scope, m.scope_id, m.id FROM older o
    JOIN memories m ON m.scope = o.scope AND m.scope_id = o.scope_id AND m.superseded_by = o.id
), newer AS (
    SELECT t.scope, t.scope_id, t.id, t.superseded_by FROM this t
    UNION
    SELECT m.scope, m.scope_id, m.id, m.superseded_by FROM newer n
    JOIN memories m ON m.scope = n.scope AND m.scope_id = n.scope_id AND m.id = n.superseded_by
), chain AS (
    SELECT o.scope, o.scope_id, o.id FROM older o
    UNION
    SELECT n.scope, n.scope_id, n.id FROM newer n
)
SELECT m.id, m.scope, m.scope_id, m.kind, m.content, m.fact_key, m.subject_id, m.said_by, m.said_at, m.source_group,
    m.source_session, m.start_seq, m.end_seq, m.superseded_by, m.superseded_at, m.expires_at, m.last_seen_at, m.seen,
    m.promoted_by, m.created_at,
    ((m.scope = 'user' AND NOT @private::boolean AND EXISTS (SELECT FROM memories n
        WHERE n.scope = 'user' AND n.scope_id = m.scope_id AND n.id = m.superseded_by AND n.source_group <> m.source_group))
      OR (m.scope = 'group' AND EXISTS (SELECT FROM memories n WHERE n.scope = 'team' AND n.scope_id = @team_id::text AND n.id = m.superseded_by))
    )::boolean AS corrected_elsewhere
FROM chain c
JOIN memories m ON m.scope = c.scope AND m.scope_id = c.scope_id AND m.id = c.id
WHERE (m.expires_at IS NULL OR m.expires_at > now())
  AND (m.scope <> 'user' OR @private::boolean OR (m.source_group <> '' AND m.source_group = @group_id::text))
  AND NOT coalesce(jsonb_exists(m.withheld, @model::text), false)
ORDER BY coalesce(m.said_at, m.created_at), m.id;
