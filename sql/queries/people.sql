-- People in the logs of sessions. The table has the events with a place in a view; open messages are those that wait and dead
-- letters, which few sessions have, and which are found by the partial indexes of their states.

-- name: PeopleSee :batchexec
-- PeopleSee notes the speakers and the quoted people of messages that a turn took, in the pipeline of its commit, which locks the
-- session: no erasure runs beside it. It reads the stored messages, since an erasure may have removed a name that the turn still has.
INSERT INTO people AS p (session_key, person, nick, spoke, seen_at)
SELECT @session_key, n.person, n.nick, n.spoke, @seen_at FROM (
    SELECT e.sender_id AS person, e.sender_nick AS nick, true AS spoke FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.id = ANY(@ids::bigint[]) AND e.seq IS NOT NULL
    UNION
    SELECT q.message #>> '{quote,sender_id}', coalesce(q.message #>> '{quote,nick}', ''), false FROM dingtalk_session_events q
    WHERE q.session_key = @session_key AND q.id = ANY(@ids::bigint[]) AND q.seq IS NOT NULL
) n JOIN dingtalk_sessions s ON s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
WHERE n.person <> ''
ON CONFLICT (session_key, person, nick, spoke) DO UPDATE SET seen_at = greatest(p.seen_at, EXCLUDED.seen_at);

-- name: PeopleTrim :exec
-- PeopleTrim deletes the rows of a session that its log no longer has, under the session's lock. Rows since seen_before stay: their
-- writer may still count on them. The log is read up to said_before: later messages are of people who were seen since seen_before.
DELETE FROM people p
WHERE p.session_key = @session_key AND p.seen_at < @seen_before AND NOT EXISTS (
    SELECT FROM (
        SELECT e.sender_id AS person, e.sender_nick AS nick, true AS spoke FROM dingtalk_session_events e
        WHERE e.session_key = @session_key AND e.seq IS NOT NULL AND e.created_at < @said_before
        UNION ALL
        SELECT q.message #>> '{quote,sender_id}', coalesce(q.message #>> '{quote,nick}', ''), false FROM dingtalk_session_events q
        WHERE q.session_key = @session_key AND q.message -> 'quote' IS NOT NULL AND q.seq IS NOT NULL AND q.created_at < @said_before
    ) l WHERE l.person = p.person AND l.nick = p.nick AND l.spoke = p.spoke);

-- name: LogBegin :one
-- LogBegin is the time of the oldest event of a session's log; without one it is in the future.
SELECT coalesce(min(e.created_at), now() + interval '1 year')::timestamptz AS at FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq IS NOT NULL;

-- name: PeopleNames :many
-- PeopleNames lists the names under which people spoke in sessions with a prefix, or in those of a group, with the time when each was
-- last seen.
SELECT n.person, n.nick, max(n.seen_at)::timestamptz AS seen_at FROM (
    SELECT p.person, p.nick, p.seen_at, p.session_key FROM people p
    WHERE p.person = ANY(@people::text[]) AND p.spoke
    UNION ALL
    SELECT e.sender_id, e.sender_nick, e.created_at, e.session_key FROM dingtalk_session_events e
    WHERE (e.state = 'pending' OR e.state = 'dead') AND e.sender_id = ANY(@people::text[]) AND e.sender_id <> ''
) n
WHERE starts_with(n.session_key, @robot_sessions::text)
  AND (@group_key::text = '' OR n.session_key = @group_key::text OR starts_with(n.session_key, @group_key::text || '/'))
GROUP BY n.person, n.nick;

-- name: PeopleNamesAnywhere :many
-- PeopleNamesAnywhere is PeopleNames for all sessions. It reads an index alone: a page of people can be in tens of thousands of rows.
SELECT n.person, n.nick, max(n.seen_at)::timestamptz AS seen_at FROM (
    SELECT p.person, p.nick, p.seen_at FROM people p
    WHERE p.person = ANY(@people::text[]) AND p.spoke
    UNION ALL
    SELECT e.sender_id, e.sender_nick, e.created_at FROM dingtalk_session_events e
    WHERE (e.state = 'pending' OR e.state = 'dead') AND e.sender_id = ANY(@people::text[]) AND e.sender_id <> ''
) n
GROUP BY n.person, n.nick;

-- name: PeopleNamed :many
-- PeopleNamed finds people who spoke, by id or by a name that they went by, and people of whom only memories are left, by id.
-- With a group only its sessions count.
SELECT n.person, max(n.seen_at)::timestamptz AS seen_at FROM (
    SELECT p.person, p.seen_at, p.session_key FROM people p WHERE p.person = @name::text AND p.spoke
    UNION ALL
    SELECT k.person, k.seen_at, k.session_key FROM people k WHERE k.nick = @name::text AND k.spoke
    UNION ALL
    SELECT e.sender_id, e.created_at, e.session_key FROM dingtalk_session_events e
    WHERE (e.state = 'pending' OR e.state = 'dead') AND @name::text IN (e.sender_id, e.sender_nick) AND e.sender_id <> ''
    UNION ALL
    SELECT a.subject_id, a.created_at, a.source_session FROM memories a WHERE a.subject_id = @name::text AND a.subject_id <> ''
    UNION ALL
    SELECT b.said_by, b.created_at, b.source_session FROM memories b WHERE b.said_by = @name::text AND b.said_by <> ''
    UNION ALL
    SELECT c.scope_id, c.created_at, c.source_session FROM memories c WHERE c.scope = 'user' AND c.scope_id = @name::text
) n
WHERE starts_with(n.session_key, @robot_sessions::text)
  AND (@group_key::text = '' OR n.session_key = @group_key::text OR starts_with(n.session_key, @group_key::text || '/'))
GROUP BY n.person
ORDER BY seen_at DESC, n.person
LIMIT 20;

-- name: PeopleSpoke :many
-- PeopleSpoke lists those of some people who spoke.
SELECT p.person FROM people p WHERE p.person = ANY(@people::text[]) AND p.spoke
UNION
SELECT e.sender_id FROM dingtalk_session_events e
WHERE (e.state = 'pending' OR e.state = 'dead') AND e.sender_id = ANY(@people::text[]) AND e.sender_id <> '';

-- name: PeopleKept :many
-- PeopleKept lists those of some people under whose ids rows are stored: messages, quotes and memories.
SELECT p.person FROM people p WHERE p.person = ANY(@people::text[])
UNION
SELECT e.sender_id FROM dingtalk_session_events e
WHERE (e.state = 'pending' OR e.state = 'dead') AND e.sender_id = ANY(@people::text[]) AND e.sender_id <> ''
UNION
SELECT (q.message #>> '{quote,sender_id}')::text FROM dingtalk_session_events q
WHERE (q.state = 'pending' OR q.state = 'dead') AND q.message #>> '{quote,sender_id}' = ANY(@people::text[])
UNION
SELECT a.subject_id FROM memories a WHERE a.subject_id = ANY(@people::text[]) AND a.subject_id <> ''
UNION
SELECT b.said_by FROM memories b WHERE b.said_by = ANY(@people::text[]) AND b.said_by <> ''
UNION
SELECT c.scope_id FROM memories c WHERE c.scope = 'user' AND c.scope_id = ANY(@people::text[]);

-- name: PersonNicks :many
-- PersonNicks lists the names that a person went by, their own and those in quotes of them.
SELECT n.nick FROM (
    SELECT p.nick FROM people p WHERE p.person = ANY(@people::text[])
    UNION
    SELECT e.sender_nick FROM dingtalk_session_events e
    WHERE (e.state = 'pending' OR e.state = 'dead') AND e.sender_id = ANY(@people::text[]) AND e.sender_id <> ''
    UNION
    SELECT (q.message #>> '{quote,nick}')::text FROM dingtalk_session_events q
    WHERE (q.state = 'pending' OR q.state = 'dead') AND q.message #>> '{quote,sender_id}' = ANY(@people::text[])
) n WHERE n.nick <> '';

-- name: PersonLogs :many
-- PersonLogs lists the sessions with messages or quotes of a person, and whether the person spoke there. Their rows may be missing.
SELECT f.session_key, bool_or(f.spoke)::boolean AS spoke FROM (
    SELECT p.session_key, p.spoke FROM people p WHERE p.person = ANY(@people::text[])
    UNION
    SELECT e.session_key, true FROM dingtalk_session_events e
    WHERE (e.state = 'pending' OR e.state = 'dead') AND e.sender_id = ANY(@people::text[]) AND e.sender_id <> ''
    UNION
    SELECT q.session_key, false FROM dingtalk_session_events q
    WHERE (q.state = 'pending' OR q.state = 'dead') AND q.message #>> '{quote,sender_id}' = ANY(@people::text[])
) f
WHERE starts_with(f.session_key, @robot_sessions::text)
GROUP BY f.session_key;

-- name: NicksSeen :many
-- NicksSeen lists the last nicks of people, each in the log of a session. By two lists apart the server would look for each person in
-- each session.
SELECT DISTINCT ON (p.session_key, p.person) p.session_key, p.person, p.nick
FROM (SELECT unnest(@session_keys::text[]) AS session_key, unnest(@people::text[]) AS person) w
JOIN people p ON p.session_key = w.session_key AND p.person = w.person
WHERE p.spoke AND p.nick <> ''
ORDER BY p.session_key, p.person, p.seen_at DESC, p.nick;

-- name: PagePeople :many
-- PagePeople lists people who spoke with a lower-case text in their id, by id, after one. It reads at most a number of rows of an index.
-- The person of the last one is listed too, so that the next page begins behind it: bounded. matches is false for it unless it has the
-- text.
SELECT i.person, i.matches, i.bounded FROM (
    SELECT r.person, (strpos(lower(r.person), @part::text) > 0)::boolean AS matches, (max(r.place) = @most_rows::int)::boolean AS bounded
    FROM (
        SELECT p.person, row_number() OVER (ORDER BY p.person) AS place FROM people p
        WHERE p.person > @after_id::text AND p.spoke ORDER BY p.person LIMIT @most_rows::int
    ) r
    GROUP BY r.person
) i
WHERE i.matches OR i.bounded
ORDER BY i.person LIMIT @max_rows::int;

-- name: PagePeopleLike :many
-- PagePeopleLike lists people with a lower-case text in an id or a name that they went by, in the order of names and ids after one.
-- bounded and matches are as in PagePeople.
SELECT i.nick AS name, i.person, i.matches, i.bounded FROM (
    SELECT r.nick, r.person, (strpos(lower(r.nick), @part::text) > 0 OR strpos(lower(r.person), @part::text) > 0)::boolean AS matches,
        (max(r.place) = @most_rows::int)::boolean AS bounded
    FROM (
        SELECT p.nick, p.person, row_number() OVER (ORDER BY p.nick, p.person) AS place FROM people p
        WHERE (p.nick, p.person) > (@after_nick::text, @after_id::text) AND p.spoke ORDER BY p.nick, p.person LIMIT @most_rows::int
    ) r
    GROUP BY r.nick, r.person
) i
WHERE i.matches OR i.bounded
ORDER BY i.nick, i.person LIMIT @max_rows::int;

-- name: PageSpoke :one
-- PageSpoke counts the private chats and groups where a person spoke under one id.
SELECT count(DISTINCT s.session_key) FILTER (WHERE s.conversation_type = '1') AS private,
    count(DISTINCT s.session_key) FILTER (WHERE s.conversation_type <> '1') AS groups,
    coalesce(max(p.seen_at), 'epoch')::timestamptz AS seen_at
FROM people p JOIN dingtalk_sessions s ON s.session_key = p.session_key
WHERE p.person = @person::text AND p.spoke;
