-- name: DebtDelete :exec
-- DebtDelete and DebtShorten settle a debt as far as it was flushed.
DELETE FROM flush_debts d WHERE d.session_key = @session_key AND d.through_seq <= @through_seq;

-- name: DebtShorten :exec
UPDATE flush_debts d SET from_seq = @through_seq, updated_at = now()
WHERE d.session_key = @session_key AND d.through_seq > @through_seq;

-- name: DebtUpsert :exec
INSERT INTO flush_debts AS d (session_key, from_seq, through_seq, failures, reason)
VALUES (@session_key, @from_seq, @through_seq, @failures, @reason)
ON CONFLICT (session_key) DO UPDATE SET
    from_seq = EXCLUDED.from_seq, through_seq = EXCLUDED.through_seq, failures = EXCLUDED.failures,
    reason = EXCLUDED.reason, updated_at = now();

-- name: EventsHistory :many
-- EventsHistory lists what was said in a session, newest first: all of it, or what holds at least min_found of the
-- patterns. Of a long body it reads the piece around the first word that is found.
SELECT e.id, e.seq, e.role, e.sender_id, e.sender_nick, e.tool_name, e.created_at, f.place,
    substr(e.content, f.place, @max_chars::int)::text AS content
FROM dingtalk_session_events e
CROSS JOIN LATERAL (
    SELECT count(*) AS found,
        (CASE WHEN char_length(e.content) <= @max_chars::int THEN 1 ELSE
            greatest(coalesce(min(strpos(lower(e.content), btrim(p.pattern, '%'))), 0) - @lead_chars::int, 1) END)::int AS place
    FROM unnest(@patterns::text[]) AS p (pattern) WHERE e.content ILIKE p.pattern
) f
WHERE e.session_key = @session_key
  AND (e.seq < @before_seq::bigint OR @before_seq::bigint = 0)
  AND e.seq IS NOT NULL
  AND f.found >= @min_found::int
ORDER BY e.seq DESC
LIMIT @max_rows::int;

-- name: EventsMatch :many
-- EventsMatch finds what people and the model said in a session that holds at least one of the patterns: first what
-- holds most of them, of equals the newer. Of a long body it reads the piece around the first word that is found.
SELECT e.id, e.seq, e.role, e.sender_id, e.sender_nick, e.created_at, f.found::int AS found, f.place,
    substr(e.content, f.place, @max_chars::int)::text AS content
FROM dingtalk_session_events e
CROSS JOIN LATERAL (
    SELECT count(*) AS found,
        (CASE WHEN char_length(e.content) <= @max_chars::int THEN 1 ELSE
            greatest(coalesce(min(strpos(lower(e.content), btrim(p.pattern, '%'))), 0) - @lead_chars::int, 1) END)::int AS place
    FROM unnest(@patterns::text[]) AS p (pattern) WHERE e.content ILIKE p.pattern
) f
WHERE e.session_key = @session_key AND e.seq IS NOT NULL AND e.role <> 'tool' AND f.found > 0
ORDER BY f.found DESC, e.seq DESC
LIMIT @max_rows::int;

-- name: EventsRange :many
-- EventsRange reads the log as it was said, archived events too.
SELECT e.* FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq > @after_seq::bigint AND e.seq <= @through_seq::bigint
ORDER BY e.seq
LIMIT @max_rows::int;

-- name: MemoriesByHash :many
-- MemoriesByHash finds the rows in force that hold facts. Scopes, scope_ids and hashes lie side by side.
SELECT m.id, m.scope, m.scope_id, m.norm_hash FROM memories m
JOIN (SELECT unnest(@scopes::text[]) AS scope, unnest(@scope_ids::text[]) AS scope_id,
    unnest(@hashes::bytea[]) AS norm_hash) w
  ON m.scope = w.scope AND m.scope_id = w.scope_id AND m.norm_hash = w.norm_hash
WHERE m.superseded_by IS NULL;

-- name: MemoriesInsert :many
-- MemoriesInsert stores facts, all but those that are there already. Only new rows come back.
INSERT INTO memories (scope, scope_id, kind, content, norm_hash, subject_id, source_session, start_seq, end_seq)
SELECT n.scope, n.scope_id, n.kind, n.content, n.norm_hash, n.subject_id, @source_session, @start_seq, @end_seq
FROM (SELECT unnest(@scopes::text[]) AS scope, unnest(@scope_ids::text[]) AS scope_id, unnest(@kinds::text[]) AS kind,
    unnest(@contents::text[]) AS content, unnest(@hashes::bytea[]) AS norm_hash,
    unnest(@subject_ids::text[]) AS subject_id, generate_subscripts(@hashes::bytea[], 1) AS place) n
ORDER BY n.place
ON CONFLICT (scope, scope_id, norm_hash) WHERE superseded_by IS NULL DO NOTHING
RETURNING id;

-- name: MemoriesReadable :many
-- MemoriesReadable lists memories in force that a reader may see, newest first: of the team, of the conversation, of
-- the session, and of the people given. Of these last, outside their private chat, only what was learnt in this very
-- session. Patterns narrow it to memories that hold one of them.
SELECT m.* FROM memories m
WHERE m.superseded_by IS NULL
  AND ((m.scope = 'team' AND m.scope_id = @team_id::text)
    OR (m.scope = 'group' AND m.scope_id = @group_id::text)
    OR (m.scope = 'session' AND m.scope_id = @session_key::text)
    OR (m.scope = 'user' AND m.scope_id = ANY(@user_ids::text[])
        AND (@private::boolean OR m.source_session = @session_key::text)))
  AND (cardinality(@patterns::text[]) = 0 OR m.content ILIKE ANY(@patterns::text[]))
  AND (@id::bigint = 0 OR m.id = @id::bigint)
ORDER BY m.id DESC
LIMIT @max_rows::int;

-- name: SessionFlushFailed :exec
-- SessionFlushFailed keeps the count of failures in a row.
UPDATE dingtalk_sessions s SET flush_failures = @flush_failures, updated_at = now() WHERE s.session_key = @session_key;

-- name: SessionFlushed :exec
-- SessionFlushed moves the flush cursor. The caller holds the row's lock and has compared the cursor. A flush in several
-- parts counts once, and marks its cycle as flushed, with the last of them; a cycle of a generation that ended meanwhile
-- is marked by nobody.
UPDATE dingtalk_sessions s SET
    flushed_seq = @through_seq,
    flush_epoch = CASE WHEN @last::boolean AND s.gen = @gen::int THEN @flush_epoch::int ELSE s.flush_epoch END,
    flush_count = s.flush_count + CASE WHEN @last::boolean THEN 1 ELSE 0 END,
    flush_failures = 0,
    updated_at = now()
WHERE s.session_key = @session_key;
