-- name: EventsFound :many
-- EventsFound reads the columns of events that a search shows, without those that the asking model refuses.
SELECT e.seq, e.role, e.sender_id, e.sender_nick, e.created_at, left(e.content, @max_chars::int)::text AS content
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq = ANY(@seqs::bigint[])
  AND NOT coalesce(jsonb_exists(e.withheld, @model::text), false);

-- name: EventsHistory :many
-- EventsHistory lists a session's messages, newest first: all of a range, or those with at least min_found of the
-- patterns. Commands and reminders are left out. It reads the piece of a long body around the first match. When seqs are given, it compares only these.
SELECT e.id, e.seq, e.role, e.sender_id, e.sender_nick, e.tool_name, e.created_at, f.place,
    (CASE WHEN jsonb_exists(e.withheld, @model::text) THEN @withheld::text ELSE substr(e.content, f.place, @max_chars::int) END)::text AS content,
    char_length(e.content)::int AS chars
FROM dingtalk_session_events e
CROSS JOIN LATERAL (
    SELECT count(*) AS found,
        (CASE WHEN char_length(e.content) <= @max_chars::int THEN 1 ELSE
            greatest(coalesce(min(strpos(lower(e.content), btrim(p.pattern, '%'))), 0) - @lead_chars::int, 1) END)::int AS place
    FROM unnest(@patterns::text[]) AS p (pattern) WHERE e.content ILIKE p.pattern
) f
WHERE e.session_key = @session_key
  AND e.seq >= @from_seq::bigint AND e.seq <= @through_seq::bigint
  AND e.created_at >= @since AND e.created_at < @until
  AND (cardinality(@seqs::bigint[]) = 0 OR e.seq = ANY(@seqs::bigint[]))
  AND e.seq IS NOT NULL AND e.searched
  AND f.found >= @min_found::int
ORDER BY e.seq DESC
LIMIT @max_rows::int;

-- name: EventsWindow :one
-- EventsWindow is the first place of the newest events of a range with at most max_rows rows and, except for a single
-- one, at most max_bytes bytes. It bounds one comparison with patterns. 0: there are none.
SELECT coalesce(min(w.seq), 0)::bigint AS from_seq
FROM (
    SELECT n.seq, sum(octet_length(n.content)) OVER (ORDER BY n.seq DESC) - octet_length(n.content) AS before
    FROM (
        SELECT e.seq, e.content FROM dingtalk_session_events e
        WHERE e.session_key = @session_key AND e.seq IS NOT NULL
          AND e.seq >= @first_seq::bigint AND e.seq <= @through_seq::bigint
          AND e.created_at >= @since AND e.created_at < @until
        ORDER BY e.seq DESC
        LIMIT @max_rows::int
    ) n
) w
WHERE w.before < @max_bytes::bigint;

-- name: EventsOutdated :many
-- EventsOutdated lists the events of a session, between two places, that were corrected later: the source events of a
-- superseded memory, when they are few. A memory superseded from another conversation, or promoted to the team, is not
-- known to be wrong here.
SELECT DISTINCT generate_series(m.start_seq, m.end_seq)::bigint AS seq FROM memories m
WHERE m.source_session = @session_key AND m.superseded_by IS NOT NULL
  AND m.end_seq >= @first_seq::bigint AND m.start_seq BETWEEN 1 AND @last_seq::bigint AND m.end_seq - m.start_seq < @most::int
  AND EXISTS (SELECT FROM memories n
    WHERE n.scope = m.scope AND n.scope_id = m.scope_id AND n.id = m.superseded_by AND n.source_group = m.source_group);

-- name: MemoriesBacklog :many
(SELECT m.scope, m.scope_id, m.id, m.content FROM memories m WHERE m.terms IS NULL LIMIT @max_rows::int)
UNION ALL
(SELECT o.scope, o.scope_id, o.id, o.content FROM memories o WHERE o.terms_version < 2 AND o.terms IS NOT NULL LIMIT @max_rows::int)
LIMIT @max_rows::int;

-- name: MemoriesWithTerms :many
-- MemoriesWithTerms names memories in force with a term of one of some lists, for each list the newest. A list is the
-- text of an array; its place comes back with each memory. MemoriesReadable decides about readers.
SELECT w.place::int AS place, f.id::bigint AS id
FROM unnest(@lists::text[]) WITH ORDINALITY AS w (list, place)
CROSS JOIN LATERAL (
    SELECT m.id FROM memories m
    WHERE m.terms && w.list::bigint[] AND m.superseded_by IS NULL AND (m.expires_at IS NULL OR m.expires_at > now())
    ORDER BY m.id + 0 DESC -- by the index on terms, not by that on ids
    LIMIT @max_rows::int
) f;

-- name: MemoryIndex :exec
-- MemoryIndex stores the terms of a memory, unless its content changed since it was read.
UPDATE memories m SET terms = @terms::bigint[], terms_version = 2
WHERE m.scope = @scope AND m.scope_id = @scope_id AND m.id = @id AND m.content = @content AND (m.terms IS NULL OR m.terms_version < 2);

-- name: MemoriesReadable :many
-- MemoriesReadable lists memories in force that a reader may see, newest first. It is the only place that decides about
-- readers. Everybody sees the team's memories. Members of a conversation see the conversation's, the session's, and
-- people's statements about themselves in that conversation. A person alone with the bot sees the memories about that
-- person. A private statement has no source_group, so that no group ever sees it. Staff ids belong to an organisation:
-- another robot's person of the same id is someone else, and keys of sessions begin with the robot.
--
-- A fact that a person corrected in private still holds in its source group, which must not learn of the correction. In
-- private the newest value of a key holds, from any source. A promoted memory of a group holds there while it is the
-- successor of the group's own: a later correction in the group stays there.
--
-- A search limits it to the memories found by their terms, and those without terms of this version. Otherwise each speaker has a fair
-- share of the rows: the newest of everybody, then the second of everybody, so that a frequent speaker displaces no
-- other.
SELECT m.id, m.scope, m.scope_id, m.kind, m.content, m.fact_key, m.subject_id, m.said_by, m.said_at, m.source_group,
    m.source_session, m.start_seq, m.end_seq, m.superseded_by, m.superseded_at, m.expires_at, m.last_seen_at, m.seen,
    m.promoted_by, m.created_at, (CASE WHEN @search::boolean AND m.terms_version >= 2 THEN coalesce(m.terms, '{}') ELSE '{}' END)::bigint[] AS terms, m.withheld
FROM memories m
WHERE (m.superseded_by IS NULL OR (m.scope = 'user' AND NOT @private::boolean AND EXISTS (SELECT FROM memories n
    WHERE n.scope = 'user' AND n.scope_id = m.scope_id AND n.id = m.superseded_by AND n.source_group <> m.source_group)))
  AND (m.expires_at IS NULL OR m.expires_at > now())
  AND ((m.scope = 'team' AND m.scope_id = @team_id::text AND (m.source_group <> @group_id::text OR EXISTS (SELECT FROM memories o
        WHERE o.scope = 'group' AND o.scope_id = @group_id::text AND o.superseded_by = m.id)))
    OR (m.scope = 'group' AND m.scope_id = @group_id::text)
    OR (m.scope = 'session' AND m.scope_id = @session_key::text)
    OR (m.scope = 'user' AND @private::boolean AND m.scope_id = ANY(@user_ids::text[])
        AND starts_with(m.source_session, @robot_sessions::text)
        AND (m.fact_key = '' OR NOT EXISTS (SELECT FROM memories n
            WHERE n.scope = 'user' AND n.scope_id = m.scope_id AND n.fact_key = m.fact_key AND n.subject_id = m.subject_id
              AND n.superseded_by IS NULL AND (n.expires_at IS NULL OR n.expires_at > now())
              AND n.source_group <> m.source_group AND starts_with(n.source_session, @robot_sessions::text)
              AND (coalesce(n.said_at, n.created_at), n.id) > (coalesce(m.said_at, m.created_at), m.id))))
    OR (m.scope = 'user' AND NOT @private::boolean AND m.source_group <> '' AND m.source_group = @group_id::text))
  AND (NOT @search::boolean OR m.id = ANY(@found::bigint[]) OR m.terms IS NULL OR m.terms_version < 2 AND m.terms IS NOT NULL)
  AND (m.kind <> 'digest' OR @search::boolean) -- a view pins no digest
  AND NOT coalesce(jsonb_exists(m.withheld, @model::text), false)
ORDER BY (CASE WHEN @search::boolean THEN m.id = ANY(@found::bigint[]) END) DESC,
    (CASE WHEN NOT @search::boolean THEN row_number() OVER (PARTITION BY m.said_by ORDER BY m.id DESC) END), m.id DESC
LIMIT @max_rows::int;

-- name: MemoriesSaid :many
-- MemoriesSaid names the memories in force of people's statements about themselves in a group, for each term the
-- newest. Their terms are hashed by person, and a query's person is unknown. So terms come as the lower halves of their
-- hashes; a term's place comes back with each memory.
SELECT f.place::int AS place, f.id::bigint AS id
FROM (
    SELECT h.place, m.id, row_number() OVER (PARTITION BY h.place ORDER BY m.id DESC) AS nth
    FROM memories m
    CROSS JOIN LATERAL (
        SELECT k.place FROM unnest(@hashes::bigint[]) WITH ORDINALITY AS k (hash, place)
        WHERE k.hash = ANY(ARRAY(SELECT t.term & 4294967295 FROM unnest(m.terms) AS t (term)))
    ) h
    WHERE m.scope = 'user' AND m.source_group <> '' AND m.source_group = @group_id::text
      AND (m.superseded_by IS NULL OR EXISTS (SELECT FROM memories n -- as in MemoriesReadable
        WHERE n.scope = 'user' AND n.scope_id = m.scope_id AND n.id = m.superseded_by AND n.source_group <> m.source_group))
      AND (m.expires_at IS NULL OR m.expires_at > now())
) f
WHERE f.nth <= @max_rows::int;

-- name: SearchScope :one
-- SearchScope returns the number of messages in a session, how far they are indexed by the rules of a version, its recent speakers, and
-- the time. An index by other rules counts as none: its terms may differ from those of the query. backlog says that memories of an
-- earlier release have no terms of this one yet, has_files that the session keeps files.
WITH recent AS (
    SELECT e.sender_id, e.sender_nick FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.seq IS NOT NULL
    ORDER BY e.seq DESC LIMIT 64
), speakers AS (
    SELECT DISTINCT r.sender_id, r.sender_nick FROM recent r WHERE r.sender_id <> ''
)
SELECT
    now()::timestamptz AS at,
    (EXISTS (SELECT FROM memories m WHERE m.terms IS NULL)
        OR EXISTS (SELECT FROM memories o WHERE o.terms_version < 2 AND o.terms IS NOT NULL))::boolean AS backlog,
    coalesce((SELECT s.last_seq FROM dingtalk_sessions s WHERE s.session_key = @session_key), 0)::bigint AS last_seq,
    coalesce((SELECT i.through_seq FROM event_index i WHERE i.session_key = @session_key AND i.version = @version::int), 0)::bigint AS indexed_seq,
    coalesce((SELECT i.again FROM event_index i WHERE i.session_key = @session_key AND i.version = @version::int), '{}')::bigint[] AS again,
    coalesce((SELECT array_agg(p.sender_id ORDER BY p.sender_id, p.sender_nick) FROM speakers p), '{}')::text[] AS ids,
    coalesce((SELECT array_agg(p.sender_nick ORDER BY p.sender_id, p.sender_nick) FROM speakers p), '{}')::text[] AS nicks,
    EXISTS (SELECT FROM files f WHERE f.session_key = @session_key)::boolean AS has_files;
