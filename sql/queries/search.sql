-- name: CompilerOff :one
SELECT set_config('jit', 'off', false)::text;

-- name: EventsBacklog :many
-- EventsBacklog lists events that no search knows yet: those of older releases, and imports.
SELECT e.session_key, e.id, e.content FROM dingtalk_session_events e
WHERE e.terms IS NULL AND e.seq IS NOT NULL AND e.role IN ('user', 'assistant')
LIMIT @max_rows::int;

-- name: EventsBeside :many
-- EventsBeside reads what a search asks of events at some places.
SELECT e.seq, e.role, e.sender_id, e.sender_nick, e.created_at, coalesce(e.terms, '{}')::bigint[] AS terms
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq = ANY(@seqs::bigint[]) AND e.role IN ('user', 'assistant');

-- name: EventsFind :many
-- EventsFind reads the events of a session that have all the terms of one of some lists, of each list at most so many: in
-- the order in which they lie on disk, which is that in which they were said, but for what was written anew since. A list
-- is the text of an array; its place comes back with each event.
--
-- Terms are hashed with the session, so that the index on them finds no other session's events. That the session is
-- compared all the same must not tempt the planner to join its own index in, which holds all that was ever said in it:
-- hence IS TRUE.
SELECT w.place::int AS place, f.seq, f.role, f.sender_id, f.sender_nick, f.created_at, f.terms
FROM unnest(@lists::text[]) WITH ORDINALITY AS w (list, place)
CROSS JOIN LATERAL (
    SELECT e.seq, e.role, e.sender_id, e.sender_nick, e.created_at, e.terms
    FROM dingtalk_session_events e
    WHERE (e.session_key = @session_key) IS TRUE AND e.terms @> w.list::bigint[] AND e.seq IS NOT NULL
    LIMIT @max_rows::int
) f;

-- name: EventsFound :many
-- EventsFound reads what a search shows of events.
SELECT e.seq, e.role, e.sender_id, e.sender_nick, e.created_at, left(e.content, @max_chars::int)::text AS content
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq = ANY(@seqs::bigint[]);

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

-- name: EventsIndex :execrows
-- EventsIndex stores terms by which events are found. What changed since it was read is left for the next time. Each
-- of the terms is an array's text.
UPDATE dingtalk_session_events e SET terms = t.terms::bigint[]
FROM (SELECT unnest(@session_keys::text[]) AS session_key, unnest(@ids::bigint[]) AS id, unnest(@contents::text[]) AS content,
    unnest(@terms::text[]) AS terms) t
WHERE e.session_key = t.session_key AND e.id = t.id AND e.content = t.content AND e.terms IS NULL;

-- name: EventsOutdated :many
-- EventsOutdated lists the events of a session, between two places, that say what was corrected later: those that a
-- superseded memory was drawn from, where they are few.
SELECT DISTINCT generate_series(m.start_seq, m.end_seq)::bigint AS seq FROM memories m
WHERE m.source_session = @session_key AND m.superseded_by IS NOT NULL
  AND m.end_seq >= @first_seq::bigint AND m.start_seq BETWEEN 1 AND @last_seq::bigint AND m.end_seq - m.start_seq < @most::int;

-- name: EventsRecent :many
-- EventsRecent reads the newest events of a session, from a place on, that have one of the terms.
SELECT e.seq, e.role, e.sender_id, e.sender_nick, e.created_at, coalesce(e.terms, '{}')::bigint[] AS terms
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq >= @first_seq::bigint AND e.terms && @keys::bigint[]
ORDER BY e.seq DESC
LIMIT @max_rows::int;

-- name: EventsSaid :many
-- EventsSaid reads what people and the bot said in a time, the newest: everybody, or some.
SELECT e.seq, e.role, e.sender_id, e.sender_nick, e.created_at, coalesce(e.terms, '{}')::bigint[] AS terms
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq IS NOT NULL AND e.role IN ('user', 'assistant')
  AND e.created_at >= @from_time AND e.created_at < @to_time
  AND (cardinality(@sender_ids::text[]) = 0 OR e.sender_id = ANY(@sender_ids::text[]))
ORDER BY e.seq DESC
LIMIT @max_rows::int;

-- name: EventsUnindexed :many
-- EventsUnindexed reads the newest events of a session whose terms are not stored yet.
SELECT e.seq, e.role, e.sender_id, e.sender_nick, e.created_at, left(e.content, @max_chars::int)::text AS content
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.terms IS NULL AND e.seq IS NOT NULL AND e.role IN ('user', 'assistant')
ORDER BY e.seq DESC
LIMIT @max_rows::int;

-- name: MemoriesBacklog :many
SELECT m.scope, m.scope_id, m.id, m.content FROM memories m WHERE m.terms IS NULL LIMIT @max_rows::int;

-- name: MemoriesIndex :execrows
UPDATE memories m SET terms = t.terms::bigint[]
FROM (SELECT unnest(@scopes::text[]) AS scope, unnest(@scope_ids::text[]) AS scope_id, unnest(@ids::bigint[]) AS id,
    unnest(@contents::text[]) AS content, unnest(@terms::text[]) AS terms) t
WHERE m.scope = t.scope AND m.scope_id = t.scope_id AND m.id = t.id AND m.content = t.content AND m.terms IS NULL;

-- name: MemoriesReadable :many
-- MemoriesReadable lists memories in force that a reader may see, newest first. It is the one place that says who may
-- see what: everybody what is the team's; who is in a conversation what is the conversation's, the session's, and what
-- people said of themselves in that very conversation; and who is alone with the bot what is kept of that person.
-- What was said in private has no source_group, so that no group ever sees it.
--
-- A search narrows it to memories with one of the terms. Those that people said of themselves in a group are few, and
-- hashed by the person, whom nobody named: they come with no regard to terms, and so does what has none yet.
SELECT m.id, m.scope, m.scope_id, m.kind, m.content, m.fact_key, m.subject_id, m.said_by, m.said_at, m.source_group,
    m.source_session, m.start_seq, m.end_seq, m.superseded_by, m.superseded_at, m.expires_at, m.last_seen_at, m.seen,
    m.promoted_by, m.created_at, (CASE WHEN @search::boolean THEN coalesce(m.terms, '{}') ELSE '{}' END)::bigint[] AS terms
FROM memories m
WHERE m.superseded_by IS NULL
  AND (m.expires_at IS NULL OR m.expires_at > now())
  AND ((m.scope = 'team' AND m.scope_id = @team_id::text)
    OR (m.scope = 'group' AND m.scope_id = @group_id::text)
    OR (m.scope = 'session' AND m.scope_id = @session_key::text)
    OR (m.scope = 'user' AND @private::boolean AND m.scope_id = ANY(@user_ids::text[]))
    OR (m.scope = 'user' AND NOT @private::boolean AND m.source_group <> '' AND m.source_group = @group_id::text))
  AND (NOT @search::boolean OR m.terms && @keys::bigint[] OR m.terms IS NULL OR (m.scope = 'user' AND NOT @private::boolean))
  AND (@id::bigint = 0 OR m.id = @id::bigint)
  AND (m.kind <> 'digest' OR @search::boolean OR @id::bigint > 0) -- a view pins no digest
ORDER BY m.id DESC
LIMIT @max_rows::int;

-- name: SearchScope :one
-- SearchScope tells how much was said in a session, and who did of late.
WITH recent AS (
    SELECT e.sender_id, e.sender_nick FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.seq IS NOT NULL
    ORDER BY e.seq DESC LIMIT 64
), people AS (
    SELECT DISTINCT r.sender_id, r.sender_nick FROM recent r WHERE r.sender_id <> ''
)
SELECT
    coalesce((SELECT s.last_seq FROM dingtalk_sessions s WHERE s.session_key = @session_key), 0)::bigint AS last_seq,
    coalesce((SELECT array_agg(p.sender_id ORDER BY p.sender_id, p.sender_nick) FROM people p), '{}')::text[] AS ids,
    coalesce((SELECT array_agg(p.sender_nick ORDER BY p.sender_id, p.sender_nick) FROM people p), '{}')::text[] AS nicks;
