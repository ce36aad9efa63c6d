-- Pages of the console and the API. Lists are read by keyset: each page begins after the last row of the one before. The
-- parameter only_keys limits a list to sessions; NULL stands for all of them. Lists of logs look each row up in a
-- hash of these keys (IN of a subquery): a generic plan would compare each row with each element of = ANY.

-- name: PageSessions :many
-- PageSessions lists sessions, the last active first, or with by_key by key, an order that no message moves. All words must be in the title or the key, all groups in the title or
-- the conversation id. An empty parameter disables its filter. The title of a private chat matches no word.
SELECT sqlc.embed(s),
    (CASE WHEN s.spent_on = (now() AT TIME ZONE 'UTC')::date THEN s.spent_tokens ELSE 0 END)::bigint AS spent_today,
    (SELECT count(*) FROM dingtalk_session_events e WHERE e.session_key = s.session_key AND e.state = 'pending')::bigint AS waiting,
    (SELECT count(*) FROM dingtalk_session_events e WHERE e.session_key = s.session_key AND e.state = 'dead')::bigint AS dead,
    EXISTS (SELECT FROM flush_debts d WHERE d.session_key = s.session_key)::boolean AS owed
FROM dingtalk_sessions s
WHERE (CASE WHEN @by_key::boolean THEN 'epoch' ELSE s.last_active_at END, s.session_key)
    < (CASE WHEN @by_key::boolean THEN 'epoch' ELSE @before_at::timestamptz END, @before_key::text)
  AND (sqlc.narg('only_keys')::text[] IS NULL OR s.session_key = ANY(sqlc.narg('only_keys')::text[]))
  AND NOT EXISTS (SELECT FROM unnest(@words::text[]) w(word) WHERE strpos(lower(
    CASE WHEN s.conversation_type <> '2' THEN '' ELSE s.title END || ' ' || s.session_key), lower(w.word)) = 0)
  AND NOT EXISTS (SELECT FROM unnest(@groups::text[]) g(word)
    WHERE s.conversation_type <> '2' OR strpos(lower(s.title || ' ' || s.conversation_id), lower(g.word)) = 0)
  AND (@model::text = '' OR s.model = @model::text)
  AND (@state::text <> 'busy' OR EXISTS (SELECT FROM dingtalk_session_events e WHERE e.session_key = s.session_key AND e.state = 'pending'))
  AND (@state::text <> 'dead' OR EXISTS (SELECT FROM dingtalk_session_events e WHERE e.session_key = s.session_key AND e.state = 'dead'))
  AND (@state::text <> 'owed' OR EXISTS (SELECT FROM flush_debts d WHERE d.session_key = s.session_key))
  AND (@state::text <> 'failed' OR s.compact_error NOT IN ('', 'undone'))
ORDER BY CASE WHEN @by_key::boolean THEN 'epoch' ELSE s.last_active_at END DESC, s.session_key DESC
LIMIT @max_rows::int;

-- name: PageTalk :many
-- PageTalk lists the events of a session before a place in its view, the newest first.
SELECT e.* FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq < @before_seq::bigint
ORDER BY e.seq DESC
LIMIT @max_rows::int;

-- name: PageOpen :many
-- PageOpen lists the messages of a session that have no place in its view: those that wait, and dead letters.
SELECT e.* FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND (e.state = 'pending' OR e.state = 'dead')
ORDER BY e.id
LIMIT @max_rows::int;

-- name: PageCuts :many
-- PageCuts lists the committed compactions of a session whose cut is in a range of places, and their undos, the newest first. A
-- rewritten summary keeps its cut.
SELECT c.* FROM compaction_log c
WHERE c.session_key = @session_key AND c.outcome = 'committed' AND c.trigger <> 'rewrite' AND c.end_seq BETWEEN @from_seq::bigint AND @through_seq::bigint
ORDER BY c.id DESC
LIMIT @max_rows::int;

-- name: PageFlushes :many
-- PageFlushes lists the flushes of a session, the newest first.
SELECT f.id, f.through_seq, cardinality(f.saved)::int AS saved, f.created_at FROM memory_flushes f
WHERE f.session_key = @session_key
ORDER BY f.id DESC
LIMIT @max_rows::int;

-- name: PageReached :many
-- PageReached is the last event of a session's view at each time; 0 for none.
SELECT coalesce((SELECT e.seq FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.seq IS NOT NULL AND e.created_at <= t.at
    ORDER BY e.created_at DESC, e.seq DESC LIMIT 1), 0)::bigint AS seq
FROM unnest(@times::timestamptz[]) WITH ORDINALITY t(at, place)
ORDER BY t.place;

-- name: PageUndoable :one
-- PageUndoable is the id of the compaction that CompactionUndoable finds.
SELECT c.id FROM dingtalk_sessions s
JOIN compaction_log c ON c.session_key = s.session_key AND c.gen = s.gen
WHERE s.session_key = @session_key AND c.outcome = 'committed' AND c.undone_at IS NULL AND c.view_before IS NOT NULL
ORDER BY c.id DESC LIMIT 1;

-- name: PageCompactions :many
-- PageCompactions lists attempts, the newest first, by the filters that are not empty. The group is a part of the
-- conversation's title or key. The title of a private chat matches no word.
SELECT sqlc.embed(c), coalesce(s.title, '')::text AS title, coalesce(s.conversation_type, '')::text AS conversation_type
FROM compaction_log c
LEFT JOIN dingtalk_sessions s ON s.session_key = c.session_key
WHERE (c.created_at, c.id) < (@before_at::timestamptz, @before_id::bigint)
  AND c.created_at >= @since::timestamptz
  AND (@session_key::text = '' OR c.session_key = @session_key::text)
  AND (sqlc.narg('only_keys')::text[] IS NULL OR c.session_key IN (SELECT unnest(sqlc.narg('only_keys')::text[])))
  AND (@outcome::text = '' OR c.outcome = @outcome::text)
  AND (@policy::text = '' OR c.policy = @policy::text)
  AND (@trigger::text = '' OR c.trigger = @trigger::text)
  AND NOT EXISTS (SELECT FROM unnest(@words::text[]) w(word)
    WHERE strpos(lower(
        CASE WHEN s.conversation_type <> '2' THEN '' ELSE coalesce(s.title, '') END || ' ' || c.session_key), lower(w.word)) = 0)
ORDER BY c.created_at DESC, c.id DESC
LIMIT @max_rows::int;

-- name: PageSchedules :many
-- PageSchedules lists active schedules by their next time, after a place. All words must be in the title of the group or in the key. An
-- empty parameter disables its filter.
SELECT sqlc.embed(c), coalesce(s.title, '')::text AS title, coalesce(s.conversation_type, '')::text AS conversation_type
FROM schedules c
LEFT JOIN dingtalk_sessions s ON s.session_key = c.session_key
WHERE c.state = 'active' AND c.due_at >= @after_at::timestamptz
  AND (c.due_at, c.session_key, c.id) > (@after_at::timestamptz, @after_key::text, @after_id::bigint)
  AND (@kind::text = '' OR c.kind = @kind::text)
  AND (@session_key::text = '' OR c.session_key = @session_key::text)
  AND (sqlc.narg('only_keys')::text[] IS NULL OR c.session_key = ANY(sqlc.narg('only_keys')::text[]))
  AND NOT EXISTS (SELECT FROM unnest(@words::text[]) w(word) WHERE strpos(lower(
    CASE WHEN s.conversation_type <> '2' THEN '' ELSE coalesce(s.title, '') END || ' ' || c.session_key), lower(w.word)) = 0)
ORDER BY c.due_at, c.session_key, c.id
LIMIT @max_rows::int;

-- name: PageSchedulesEnded :many
-- PageSchedulesEnded lists ended schedules, the last ended first, by the filters of PageSchedules.
SELECT sqlc.embed(c), coalesce(s.title, '')::text AS title, coalesce(s.conversation_type, '')::text AS conversation_type
FROM schedules c
LEFT JOIN dingtalk_sessions s ON s.session_key = c.session_key
WHERE c.state <> 'active' AND c.settled_at <= @before_at::timestamptz
  AND (c.settled_at, c.session_key, c.id) < (@before_at::timestamptz, @before_key::text, @before_id::bigint)
  AND (@state::text = '' OR c.state = @state::text)
  AND (@kind::text = '' OR c.kind = @kind::text)
  AND (@session_key::text = '' OR c.session_key = @session_key::text)
  AND (sqlc.narg('only_keys')::text[] IS NULL OR c.session_key = ANY(sqlc.narg('only_keys')::text[]))
  AND NOT EXISTS (SELECT FROM unnest(@words::text[]) w(word) WHERE strpos(lower(
    CASE WHEN s.conversation_type <> '2' THEN '' ELSE coalesce(s.title, '') END || ' ' || c.session_key), lower(w.word)) = 0)
ORDER BY c.settled_at DESC, c.session_key DESC, c.id DESC
LIMIT @max_rows::int;

-- name: PageSchedulesByKey :many
-- PageSchedulesByKey lists schedules of all states, by the filters of PageSchedules, in an order that no change of one moves.
SELECT sqlc.embed(c), coalesce(s.title, '')::text AS title, coalesce(s.conversation_type, '')::text AS conversation_type
FROM schedules c
LEFT JOIN dingtalk_sessions s ON s.session_key = c.session_key
WHERE (c.session_key, c.id) > (@after_key::text, @after_id::bigint)
  AND (@state::text = '' OR c.state = @state::text)
  AND (@kind::text = '' OR c.kind = @kind::text)
  AND (@session_key::text = '' OR c.session_key = @session_key::text)
  AND (sqlc.narg('only_keys')::text[] IS NULL OR c.session_key = ANY(sqlc.narg('only_keys')::text[]))
  AND NOT EXISTS (SELECT FROM unnest(@words::text[]) w(word) WHERE strpos(lower(
    CASE WHEN s.conversation_type <> '2' THEN '' ELSE coalesce(s.title, '') END || ' ' || c.session_key), lower(w.word)) = 0)
ORDER BY c.session_key, c.id
LIMIT @max_rows::int;

-- name: PageApprovals :many
-- PageApprovals lists calls of tools that need an approval, the newest first, by the filters of PageSchedules. asker and decider are nicks.
SELECT sqlc.embed(c), coalesce(s.title, '')::text AS title, coalesce(s.conversation_type, '')::text AS conversation_type,
    (c.expires_at <= now())::boolean AS overdue,
    coalesce((SELECT q.sender_nick FROM dingtalk_session_events q
        WHERE q.session_key = c.session_key AND q.sender_id = c.asked_by AND q.sender_id <> ''
        ORDER BY q.id DESC LIMIT 1), '')::text AS asker,
    coalesce((SELECT d.sender_nick FROM dingtalk_session_events d
        WHERE d.session_key = c.session_key AND d.id = c.decided_event), '')::text AS decider
FROM approvals c
LEFT JOIN dingtalk_sessions s ON s.session_key = c.session_key
WHERE c.created_at <= @before_at::timestamptz AND (c.created_at, c.session_key, c.id) < (@before_at::timestamptz, @before_key::text, @before_id::bigint)
  AND (@state::text = '' OR c.state = @state::text)
  AND (@session_key::text = '' OR c.session_key = @session_key::text)
  AND (sqlc.narg('only_keys')::text[] IS NULL OR c.session_key = ANY(sqlc.narg('only_keys')::text[]))
  AND NOT EXISTS (SELECT FROM unnest(@words::text[]) w(word) WHERE strpos(lower(
    CASE WHEN s.conversation_type <> '2' THEN '' ELSE coalesce(s.title, '') END || ' ' || c.session_key || ' ' || c.tool), lower(w.word)) = 0)
ORDER BY c.created_at DESC, c.session_key DESC, c.id DESC
LIMIT @max_rows::int;

-- name: PageRestarts :many
SELECT r.* FROM restarts r
WHERE (r.started_at, r.replica) < (@before_at::timestamptz, @before_replica::text)
ORDER BY r.started_at DESC, r.replica DESC
LIMIT @max_rows::int;

-- name: PageReplicas :many
-- PageReplicas lists the replicas with the leases that each holds, the last started first. It reads the sessions once.
SELECT r.id, r.started_at, r.draining, r.connected, extract(epoch FROM now() - r.heartbeat_at)::float8 AS silent_seconds,
    coalesce(l.leases, 0)::bigint AS leases
FROM replicas r
LEFT JOIN (SELECT s.lease_owner, count(*) AS leases FROM dingtalk_sessions s WHERE s.lease_owner <> '' GROUP BY 1) l ON l.lease_owner = r.id
ORDER BY r.started_at DESC, r.id;

-- name: PageCounts :one
-- PageCounts counts the open work of sessions, what a model refuses of them (summaries in use, facts in force), and the compactions of a day. Undos and rewritten summaries have rows in the log
-- and are none.
SELECT (SELECT count(*) FROM dingtalk_sessions s WHERE sqlc.narg('only_keys')::text[] IS NULL OR s.session_key = ANY(sqlc.narg('only_keys')::text[]))::bigint AS sessions,
    (SELECT count(*) FROM dingtalk_session_events e
        WHERE e.state = 'pending' AND (sqlc.narg('only_keys')::text[] IS NULL OR e.session_key = ANY(sqlc.narg('only_keys')::text[])))::bigint AS waiting,
    (SELECT count(*) FROM dingtalk_session_events e
        WHERE e.state = 'dead' AND e.content <> @erased::text AND (sqlc.narg('only_keys')::text[] IS NULL OR e.session_key = ANY(sqlc.narg('only_keys')::text[])))::bigint AS dead,
    (SELECT count(*) FROM dingtalk_session_events e
        WHERE e.withheld IS NOT NULL AND (sqlc.narg('only_keys')::text[] IS NULL OR e.session_key = ANY(sqlc.narg('only_keys')::text[])))::bigint AS withheld,
    (SELECT count(*) FROM session_summaries a
        WHERE a.withheld IS NOT NULL AND a.status = 'active' AND (sqlc.narg('only_keys')::text[] IS NULL OR a.session_key = ANY(sqlc.narg('only_keys')::text[])))::bigint AS withheld_summaries,
    (SELECT count(*) FROM memories m
        WHERE m.withheld IS NOT NULL AND m.superseded_by IS NULL AND (sqlc.narg('only_keys')::text[] IS NULL OR m.source_session = ANY(sqlc.narg('only_keys')::text[])))::bigint AS withheld_facts,
    (SELECT count(*) FROM flush_debts d WHERE sqlc.narg('only_keys')::text[] IS NULL OR d.session_key = ANY(sqlc.narg('only_keys')::text[]))::bigint AS debts,
    (SELECT count(*) FROM compaction_log c WHERE c.created_at > now() - interval '1 day' AND c.outcome = 'committed' AND c.trigger NOT IN ('undo', 'rewrite')
        AND (sqlc.narg('only_keys')::text[] IS NULL OR c.session_key = ANY(sqlc.narg('only_keys')::text[])))::bigint AS compacted,
    (SELECT count(*) FROM compaction_log c WHERE c.created_at > now() - interval '1 day' AND c.outcome IN ('failed', 'rejected')
        AND (sqlc.narg('only_keys')::text[] IS NULL OR c.session_key = ANY(sqlc.narg('only_keys')::text[])))::bigint AS failed;

-- name: PageGroupSessions :many
-- PageGroupSessions lists the keys of the sessions of groups. A private chat is none, whatever its conversation id.
SELECT s.session_key FROM dingtalk_sessions s WHERE s.conversation_type = '2' AND s.conversation_id = ANY(@conversations::text[]);

-- name: LoginInsert :exec
-- LoginInsert keeps a login, and deletes those that are over.
WITH over AS (DELETE FROM console_logins l WHERE l.expires_at <= now())
INSERT INTO console_logins (token_hash, role, actor, nick, expires_at)
VALUES (@token_hash, @role, @actor, @nick, now() + interval '1 second' * @ttl_seconds::float8);

-- name: LoginsExpire :exec
-- LoginsExpire deletes the logins that are over.
DELETE FROM console_logins l WHERE l.expires_at <= now();

-- name: LoginFind :one
SELECT l.role, l.actor, l.nick FROM console_logins l WHERE l.token_hash = @token_hash AND l.expires_at > now();

-- name: LoginDelete :exec
DELETE FROM console_logins l WHERE l.token_hash = @token_hash;

-- name: LoginStateUse :execrows
-- LoginStateUse keeps the state of a login that has ended, and deletes those that are over. No row: it was used before.
WITH over AS (DELETE FROM console_login_states l WHERE l.expires_at <= now())
INSERT INTO console_login_states (state_hash, next, expires_at) VALUES (@state_hash, @next, now() + interval '1 second' * @ttl_seconds::float8)
ON CONFLICT (state_hash) DO NOTHING;

-- name: AuditInsert :one
INSERT INTO audit (session_key, actor, action, detail, person) VALUES (@session_key, @actor, @action, @detail, @person) RETURNING id;

-- name: AuditEnd :execrows
-- AuditEnd finds the row by its id alone, since an erasure may have moved it to another session. A person who was not found may have
-- been forgotten, so the row names none.
UPDATE audit a SET outcome = @outcome, person = CASE WHEN @outcome = 'error.not_found' THEN '' ELSE a.person END WHERE a.id = @id;

-- name: PageAudit :many
SELECT a.* FROM audit a
WHERE a.id < @before_id::bigint AND (sqlc.narg('only_keys')::text[] IS NULL OR a.session_key IN (SELECT unnest(sqlc.narg('only_keys')::text[])))
ORDER BY a.id DESC LIMIT @max_rows::int;

-- name: PageMemories :many
-- PageMemories lists memories in force, or with every also superseded and expired ones, the newest first. All words must be
-- in the content; they match no memory from a private chat, which a list masks. The columns are those of
-- MemoriesReadable.
SELECT m.id, m.scope, m.scope_id, m.kind, m.content, m.fact_key, m.subject_id, m.said_by, m.said_at, m.source_group,
    m.source_session, m.start_seq, m.end_seq, m.superseded_by, m.superseded_at, m.expires_at, m.last_seen_at, m.seen,
    m.promoted_by, m.created_at, '{}'::bigint[] AS terms, m.withheld
FROM memories m
WHERE m.id < @before_id::bigint
  AND (@scope::text = '' OR m.scope = @scope::text)
  AND (@person::text = '' OR m.subject_id = @person::text OR m.said_by = @person::text OR (m.scope = 'user' AND m.scope_id = @person::text))
  AND (@source::text = '' OR m.source_session = @source::text)
  AND (sqlc.narg('only_keys')::text[] IS NULL OR m.source_session IN (SELECT unnest(sqlc.narg('only_keys')::text[])))
  AND (m.source_group <> '' OR cardinality(@words::text[]) = 0)
  AND NOT EXISTS (SELECT FROM unnest(@words::text[]) w(word) WHERE strpos(lower(m.content), lower(w.word)) = 0)
  AND (@every::boolean OR (m.superseded_by IS NULL AND (m.expires_at IS NULL OR m.expires_at > now())))
ORDER BY m.id DESC
LIMIT @max_rows::int;

-- name: PageSaved :many
-- PageSaved lists memories by their ids, also superseded ones.
SELECT m.* FROM memories m WHERE m.id = ANY(@ids::bigint[]) ORDER BY m.id;

-- name: ReplicaSilent :one
-- ReplicaSilent is the time since the last heartbeat of a replica; 0: there is no such replica.
SELECT coalesce(max(extract(epoch FROM now() - r.heartbeat_at)), 0)::float8 AS seconds FROM replicas r WHERE r.id = @owner::text;

-- name: PageWork :one
-- PageWork reads the running work of a session: the holder of its lease, the messages that wait and those in a turn, and
-- the range of a compaction that has begun. A mark of an earlier lease is of no running work.
SELECT s.last_seq, s.compaction_count, s.gen, coalesce(s.lease_owner, '')::text AS owner,
    (s.lease_owner IS NOT NULL AND s.upkeep_term = s.lease_term AND coalesce(s.upkeep_until > now(), false))::boolean AS upkeep,
    s.upkeep_until, coalesce(w.waiting, 0)::bigint AS waiting, coalesce(w.waiting_since, now())::timestamptz AS waiting_since,
    coalesce(w.answered, 0)::bigint AS answered, coalesce(w.answered_since, now())::timestamptz AS answered_since,
    coalesce(j.from_seq + 1, 0)::bigint AS job_from, coalesce(j.through_seq, 0)::bigint AS job_through, coalesce(j.attempts, 0)::int AS job_attempts, j.created_at AS job_since
FROM dingtalk_sessions s
LEFT JOIN compaction_jobs j ON j.session_key = s.session_key
LEFT JOIN LATERAL (
    SELECT count(*) FILTER (WHERE NOT m.taken) AS waiting, min(m.created_at) FILTER (WHERE NOT m.taken) AS waiting_since,
        count(*) FILTER (WHERE m.taken) AS answered, min(m.created_at) FILTER (WHERE m.taken) AS answered_since
    FROM (SELECT e.created_at, coalesce(s.lease_owner IS NOT NULL AND e.attempt_term = s.lease_term, false) AS taken
        FROM dingtalk_session_events e WHERE e.session_key = s.session_key AND e.state = 'pending') m
) w ON true
WHERE s.session_key = @session_key;

-- name: PageFiles :many
-- PageFiles lists kept files after a place, by key and id. All words must be in the title of the group or in the key. An empty parameter
-- disables its filter.
SELECT sqlc.embed(c), coalesce(s.title, '')::text AS title, coalesce(s.conversation_type, '')::text AS conversation_type
FROM files c
LEFT JOIN dingtalk_sessions s ON s.session_key = c.session_key
WHERE (c.session_key, c.id) > (@after_key::text, @after_id::bigint)
  AND (@session_key::text = '' OR c.session_key = @session_key::text)
  AND (sqlc.narg('only_keys')::text[] IS NULL OR c.session_key = ANY(sqlc.narg('only_keys')::text[]))
  AND NOT EXISTS (SELECT FROM unnest(@words::text[]) w(word) WHERE strpos(lower(
    CASE WHEN s.conversation_type <> '2' THEN '' ELSE coalesce(s.title, '') END || ' ' || c.session_key), lower(w.word)) = 0)
ORDER BY c.session_key, c.id
LIMIT @max_rows::int;
