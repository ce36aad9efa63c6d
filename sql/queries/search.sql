-- name: EventsBacklog :many
-- EventsBacklog lists events without terms, of imports, and events with terms of an older release. Together they have at
-- most max_bytes bytes, but at least one comes. Each row has the number of all such events.
SELECT b.session_key, b.id, left(b.content, @max_chars::int)::text AS content, b.listed::int AS listed,
    sha256(convert_to(b.content, 'UTF8'))::bytea AS content_hash
FROM (
    SELECT l.session_key, l.id, l.content, count(*) OVER () AS listed,
        sum(octet_length(l.content)) OVER (ORDER BY l.session_key, l.id) - octet_length(l.content) AS before
    FROM (
        SELECT e.session_key, e.id, e.content FROM dingtalk_session_events e
        WHERE (e.terms IS NULL OR e.terms_version < 2) AND e.seq IS NOT NULL AND e.role IN ('user', 'assistant')
        LIMIT @max_rows::int
    ) l
) b
WHERE b.before < @max_bytes::bigint;

-- name: EventsBeside :many
-- EventsBeside reads the search columns of events at some places, the first ones with at most max_bytes bytes of terms
-- in all. Their transfer is the slowest part of a search.
SELECT b.seq, b.role, b.sender_id, b.sender_nick, b.created_at, coalesce(b.terms, '{}')::bigint[] AS terms
FROM (
    SELECT e.seq, e.role, e.sender_id, e.sender_nick, e.created_at, e.terms,
        sum(coalesce(pg_column_size(e.terms), 0)) OVER (ORDER BY w.place) - coalesce(pg_column_size(e.terms), 0) AS before
    FROM unnest(@seqs::bigint[]) WITH ORDINALITY AS w (seq, place)
    JOIN dingtalk_session_events e ON e.session_key = @session_key AND e.seq = w.seq
    WHERE e.role IN ('user', 'assistant')
) b
WHERE b.before < @max_bytes::bigint;

-- name: EventsFind :many
-- EventsFind names the events of a session with all the terms of one of some lists, up to a limit for each list. They
-- come in disk order, which is the order of the messages except for rewritten rows. A list is the text of an array; its
-- place comes back with each event, and the stored bytes of its terms. The terms, which are long, are not read.
--
-- Terms are hashed with the session, so the index on them finds no other session's events. The comparison of the
-- session must not tempt the planner to join its own index, which holds the whole log: hence the other collation.
SELECT w.place::int AS place, f.seq::bigint AS seq, f.size::int AS size
FROM unnest(@lists::text[]) WITH ORDINALITY AS w (list, place)
CROSS JOIN LATERAL (
    SELECT e.seq, pg_column_size(e.terms) AS size FROM dingtalk_session_events e
    WHERE e.session_key COLLATE "C" = @session_key AND e.terms @> w.list::bigint[] AND e.seq IS NOT NULL
    LIMIT @max_rows::int
) f;

-- name: EventsFound :many
-- EventsFound reads the columns of events that a search shows, without those that the asking model refuses.
SELECT e.seq, e.role, e.sender_id, e.sender_nick, e.created_at, left(e.content, @max_chars::int)::text AS content
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq = ANY(@seqs::bigint[])
  AND NOT coalesce(jsonb_exists(e.withheld, @model::text), false);

-- name: EventsHistory :many
-- EventsHistory lists a session's messages, newest first: all of a range, or those with at least min_found of the
-- patterns. Commands and reminders have an empty list of terms, and are left out. It reads the piece of a long body around the first match. When seqs are given, it compares only these.
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
  AND e.seq IS NOT NULL AND e.terms IS DISTINCT FROM '{}'
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

-- name: EventsIndex :execrows
-- EventsIndex stores search terms of events. Rows that changed since they were read are left for the next time. Each of
-- the terms is an array's text.
UPDATE dingtalk_session_events e SET terms = t.terms::bigint[], terms_version = 2
FROM (SELECT unnest(@session_keys::text[]) AS session_key, unnest(@ids::bigint[]) AS id, unnest(@hashes::bytea[]) AS content_hash,
    unnest(@terms::text[]) AS terms) t
WHERE e.session_key = t.session_key AND e.id = t.id AND (e.terms IS NULL OR e.terms_version < 2)
  AND sha256(convert_to(e.content, 'UTF8')) = t.content_hash;

-- name: EventsOutdated :many
-- EventsOutdated lists the events of a session, between two places, that were corrected later: the source events of a
-- superseded memory, when they are few. A memory superseded from another conversation, or promoted to the team, is not
-- known to be wrong here.
SELECT DISTINCT generate_series(m.start_seq, m.end_seq)::bigint AS seq FROM memories m
WHERE m.source_session = @session_key AND m.superseded_by IS NOT NULL
  AND m.end_seq >= @first_seq::bigint AND m.start_seq BETWEEN 1 AND @last_seq::bigint AND m.end_seq - m.start_seq < @most::int
  AND EXISTS (SELECT FROM memories n
    WHERE n.scope = m.scope AND n.scope_id = m.scope_id AND n.id = m.superseded_by AND n.source_group = m.source_group);

-- name: EventsRecent :many
-- EventsRecent names the newest events of a session, from a place on, with one of the terms, the places of their terms,
-- and the stored bytes of all terms. It leaves out events above a number of bytes, since reading long ones takes long.
SELECT e.seq::bigint AS seq, pg_column_size(e.terms)::int AS size,
    ARRAY(SELECT k.place FROM unnest(@keys::bigint[]) WITH ORDINALITY AS k (key, place) WHERE k.key = ANY(e.terms))::bigint[] AS places
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq >= @first_seq::bigint AND pg_column_size(e.terms) <= @max_size::int
  AND e.terms && @keys::bigint[]
ORDER BY e.seq DESC
LIMIT @max_rows::int;

-- name: EventsTold :many
-- EventsTold reads the newest messages in a time, of all people and the bot or of some.
SELECT e.seq, e.role, e.sender_id, e.sender_nick, e.created_at, coalesce(e.terms, '{}')::bigint[] AS terms
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq IS NOT NULL AND e.role IN ('user', 'assistant')
  AND e.created_at >= @from_time AND e.created_at < @to_time
  AND (cardinality(@sender_ids::text[]) = 0 OR e.sender_id = ANY(@sender_ids::text[]))
ORDER BY e.seq DESC
LIMIT @max_rows::int;

-- name: EventsUnindexed :many
-- EventsUnindexed reads the beginnings of the newest events of a session without terms, with at most max_bytes bytes in
-- all.
SELECT u.seq, u.role, u.sender_id, u.sender_nick, u.created_at, left(u.content, @max_chars::int)::text AS content
FROM (
    SELECT n.seq, n.role, n.sender_id, n.sender_nick, n.created_at, n.content,
        sum(least(octet_length(n.content), 4 * @max_chars::int)) OVER (ORDER BY n.seq DESC)
            - least(octet_length(n.content), 4 * @max_chars::int) AS before
    FROM (
        SELECT e.seq, e.role, e.sender_id, e.sender_nick, e.created_at, e.content FROM dingtalk_session_events e
        WHERE e.session_key = @session_key AND e.terms IS NULL AND e.seq IS NOT NULL AND e.role IN ('user', 'assistant')
        ORDER BY e.seq DESC
        LIMIT @max_rows::int
    ) n
) u
WHERE u.before < @max_bytes::bigint
ORDER BY u.seq DESC;

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

-- name: MemoriesIndex :execrows
UPDATE memories m SET terms = t.terms::bigint[], terms_version = 2
FROM (SELECT unnest(@scopes::text[]) AS scope, unnest(@scope_ids::text[]) AS scope_id, unnest(@ids::bigint[]) AS id,
    unnest(@contents::text[]) AS content, unnest(@terms::text[]) AS terms) t
WHERE m.scope = t.scope AND m.scope_id = t.scope_id AND m.id = t.id AND m.content = t.content
  AND (m.terms IS NULL OR m.terms_version < 2);

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
-- A search limits it to the memories found by their terms, and those without terms. Otherwise each speaker has a fair
-- share of the rows: the newest of everybody, then the second of everybody, so that a frequent speaker displaces no
-- other.
SELECT m.id, m.scope, m.scope_id, m.kind, m.content, m.fact_key, m.subject_id, m.said_by, m.said_at, m.source_group,
    m.source_session, m.start_seq, m.end_seq, m.superseded_by, m.superseded_at, m.expires_at, m.last_seen_at, m.seen,
    m.promoted_by, m.created_at, (CASE WHEN @search::boolean THEN coalesce(m.terms, '{}') ELSE '{}' END)::bigint[] AS terms
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
  AND (NOT @search::boolean OR m.id = ANY(@found::bigint[]) OR m.terms IS NULL)
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
-- SearchScope returns the number of messages in a session, its recent speakers, and the time.
WITH recent AS (
    SELECT e.sender_id, e.sender_nick FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.seq IS NOT NULL
    ORDER BY e.seq DESC LIMIT 64
), speakers AS (
    SELECT DISTINCT r.sender_id, r.sender_nick FROM recent r WHERE r.sender_id <> ''
)
SELECT
    now()::timestamptz AS at,
    coalesce((SELECT s.last_seq FROM dingtalk_sessions s WHERE s.session_key = @session_key), 0)::bigint AS last_seq,
    coalesce((SELECT array_agg(p.sender_id ORDER BY p.sender_id, p.sender_nick) FROM speakers p), '{}')::text[] AS ids,
    coalesce((SELECT array_agg(p.sender_nick ORDER BY p.sender_id, p.sender_nick) FROM speakers p), '{}')::text[] AS nicks;
