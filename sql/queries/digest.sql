-- name: DigestsDue :many
-- DigestsDue lists days of groups without a digest, the oldest first, after a place in that order. Days, starts and ends are
-- parallel arrays.
SELECT s.session_key, d.day::text AS date, coalesce(g.attempts, 0)::int AS attempts
FROM dingtalk_sessions s
CROSS JOIN (SELECT unnest(@days::date[]) AS day, unnest(@starts::timestamptz[]) AS starts_at,
    unnest(@ends::timestamptz[]) AS ends_at) d
LEFT JOIN memory_digests g ON g.session_key = s.session_key AND g.day = d.day
WHERE s.conversation_type = '2' AND s.last_active_at >= d.starts_at
  AND (d.day, s.session_key) > (@after_day::date, @after_key::text)
  AND (g.session_key IS NULL OR (NOT g.done AND g.attempts < @max_attempts::int
    AND g.updated_at <= now() - interval '1 second' * @rest_seconds::float8))
  AND (s.lease_owner IS NULL OR s.lease_owner = @owner::text OR s.lease_owner <> ALL (ARRAY(
    SELECT r.id FROM replicas r WHERE r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8)))
  AND NOT EXISTS (SELECT 1 FROM dingtalk_session_events p
    WHERE p.session_key = s.session_key AND p.state = 'pending' AND p.created_at < d.ends_at)
ORDER BY d.day, s.session_key
LIMIT @max_rows::int;

-- name: DigestCount :batchone
-- DigestCount counts the messages of people in a day of a log, by an index, and finds the day's place.
SELECT count(*) FILTER (WHERE e.role = 'user' AND e.content <> @erased::text)::bigint AS messages,
    coalesce(min(e.seq), 0)::bigint AS first_seq, coalesce(max(e.seq), 0)::bigint AS last_seq
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq IS NOT NULL AND e.created_at >= @starts_at AND e.created_at < @ends_at;

-- name: DigestQuiet :batchexec
-- DigestQuiet settles a day with few messages.
INSERT INTO memory_digests (session_key, day, done, updated_at) VALUES (@session_key, @day::date, true, now())
ON CONFLICT (session_key, day) DO UPDATE SET done = true, updated_at = EXCLUDED.updated_at;

-- name: DigestEvents :many
-- DigestEvents reads the messages between two instants, within a range of places.
SELECT e.id, e.seq, e.role, e.content, e.sender_id, e.sender_nick, e.msg_id, e.message, e.tokens, e.created_at, e.withheld
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq > @after_seq::bigint AND e.seq <= @through_seq::bigint
  AND e.created_at >= @starts_at AND e.created_at < @ends_at
  AND e.role IN ('user', 'assistant') AND e.content NOT IN ('', @erased::text)
ORDER BY e.seq
LIMIT @max_rows::int;

-- name: DigestInsert :one
-- DigestInsert stores a digest with the time of its last event, so that it is found under its day.
INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, source_group, said_at, last_seen_at,
    created_at, start_seq, end_seq, terms, terms_version)
VALUES (@scope, @scope_id, @kind, @content, @norm_hash, @source_session, @source_group, @at::timestamptz, @at::timestamptz,
    @at::timestamptz, @start_seq, @end_seq, @terms::bigint[], 2)
RETURNING id;

-- name: DigestDone :execrows
-- DigestDone settles a day, unless it is settled.
INSERT INTO memory_digests (session_key, day, memory_id, attempts, done, updated_at)
VALUES (@session_key, @day::date, sqlc.narg(memory_id), 1, true, now())
ON CONFLICT (session_key, day) DO UPDATE SET
    memory_id = EXCLUDED.memory_id, attempts = memory_digests.attempts + 1, error = '', done = true, updated_at = EXCLUDED.updated_at
WHERE NOT memory_digests.done;

-- name: DigestPutOff :exec
INSERT INTO memory_digests (session_key, day, attempts, error, updated_at)
VALUES (@session_key, @day::date, @attempts, @error, now())
ON CONFLICT (session_key, day) DO UPDATE SET
    attempts = memory_digests.attempts + EXCLUDED.attempts, error = EXCLUDED.error, updated_at = EXCLUDED.updated_at
WHERE NOT memory_digests.done;

-- name: DigestsReadable :many
-- DigestsReadable lists the digests of a time in the scopes of a reader's group and session.
SELECT m.id, m.scope, m.scope_id, m.kind, m.content, m.source_session, m.source_group, m.start_seq, m.end_seq, m.created_at
FROM memories m
WHERE m.kind = 'digest' AND m.superseded_by IS NULL
  AND ((m.scope = 'group' AND m.scope_id = @group_id::text) OR (m.scope = 'session' AND m.scope_id = @session_key::text))
  AND m.created_at >= @starts_at AND m.created_at < @ends_at
  AND NOT coalesce(jsonb_exists(m.withheld, @model::text), false)
ORDER BY m.created_at, m.id
LIMIT @max_rows::int;
