-- name: ListenForWakes :exec
-- ListenForWakes subscribes the connection to the notifications of replicas. A payload is "owner|key"; an empty owner
-- means all.
LISTEN ebb;

-- name: MessageAccept :one
-- MessageAccept stores a message as pending, in one statement and so in one transaction and one round trip.
--
-- deleted: the message was deleted with its session. The mark names the conversation without the member, whose id may
-- differ in the next delivery; marks of earlier releases name the whole session. known: it was stored before, or deleted, so nothing is written.
-- living: the session exists and its lease is valid. Its row stays untouched, since a turn may be committing on it.
-- taken: the session is created, its free or stale lease is taken, its broken term is replaced, or its title or kind is
-- renewed. A group stays a group, and a private chat's pins are not shown to a group. An id of 0 says that the same
-- message was committed while this statement ran, where its snapshot cannot see it.
--
-- A session's first term is the id of the message that created it. So a session created again has another lease than
-- the workers of the deleted one. If the row alone was deleted, the message is stored without one, which SessionsRevive inserts.
--
-- A time of sending that is an hour off or more can't be true, and NULL is an unknown one. The time of arrival, by this
-- server's clock, takes its place: waited is the time since then.
--
-- elsewhere: the group has another scope, or one of other_keys has the message, its deletion or a waiting message of its
-- sender. Then nothing is written. The keys and senders are read as in MessagePlace, and counted: a plan of EXISTS may read the
-- whole log.
--
-- learned: the staff id of an encrypted id, when the frame had both. A second staff id for one encrypted id is a clash:
-- from then on the encrypted id alone identifies no member of staff. is_old: the pair was last noted a day ago or more.
--
-- Notifications go only to another replica, since they put all commits of the server into one queue.
WITH deleted AS (
    SELECT 0::bigint AS id FROM deleted_messages d
    WHERE d.message IN (sha256(convert_to(split_part(@session_key::text, '/', 1) || '/' || split_part(@session_key::text, '/', 2) || ' ' || @msg_id::text, 'UTF8')),
        sha256(convert_to(@session_key::text || ' ' || @msg_id::text, 'UTF8')))
), elsewhere AS (
    SELECT 0::bigint AS id
    WHERE EXISTS (SELECT FROM group_scopes g WHERE g.group_key = @group_key::text AND g.scope <> 'group')
       OR 0 < (SELECT count(*) FROM dingtalk_session_events e
            WHERE e.session_key = ANY((SELECT @other_keys::text[])::text[]) AND e.msg_id = @msg_id::text)
       OR 0 < (SELECT count(*) FROM dingtalk_session_events e
            WHERE e.session_key = ANY((SELECT @other_keys::text[])::text[]) AND e.state = 'pending'
              AND e.sender_id = ANY((SELECT @senders::text[])::text[]))
       OR 0 < (SELECT count(*) FROM unnest((SELECT @other_keys::text[])::text[]) AS x (session_key) JOIN deleted_messages d
            ON d.message = sha256(convert_to(x.session_key || ' ' || @msg_id::text, 'UTF8')))
), known AS (
    SELECT e.id FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.msg_id = @msg_id::text
    UNION ALL
    SELECT deleted.id FROM deleted
    UNION ALL
    SELECT elsewhere.id FROM elsewhere
), living AS (
    SELECT s.lease_owner, s.lease_term FROM dingtalk_sessions s
    WHERE s.session_key = @session_key AND (@title::text = '' OR s.title = @title::text)
      AND (s.conversation_type IN ('2', @conversation_type) OR @conversation_type = '')
      AND (s.lease_owner = @owner::text OR EXISTS (
        SELECT 1 FROM replicas r
        WHERE r.id = s.lease_owner AND r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8))
), stored AS (
    INSERT INTO dingtalk_session_events
        (session_key, role, state, content, sender_id, sender_nick, msg_id, message, sent_at)
    SELECT @session_key, 'user', 'pending', @content, @sender_id, @sender_nick, @msg_id::text, @message,
        CASE WHEN sqlc.narg(sent_at)::timestamptz BETWEEN now() - interval '1 hour' AND now() + interval '1 hour'
            THEN sqlc.narg(sent_at)::timestamptz ELSE now() - interval '1 second' * @waited::float8 END
    WHERE NOT EXISTS (SELECT 1 FROM known)
    ON CONFLICT (session_key, msg_id) WHERE msg_id IS NOT NULL DO NOTHING
    RETURNING id
), taken AS (
    INSERT INTO dingtalk_sessions AS s
        (session_key, robot_code, conversation_id, conversation_type, title, lease_owner, lease_term)
    SELECT @session_key, @robot_code, @conversation_id, @conversation_type, @title::text, @owner::text,
        coalesce((SELECT stored.id FROM stored), 1)
    WHERE NOT EXISTS (SELECT 1 FROM known) AND NOT EXISTS (SELECT 1 FROM living)
      AND (EXISTS (SELECT FROM dingtalk_sessions x WHERE x.session_key = @session_key)
        OR NOT EXISTS (SELECT FROM dingtalk_session_events e WHERE e.session_key = @session_key))
    ON CONFLICT (session_key) DO UPDATE SET
        title = CASE WHEN EXCLUDED.title = '' THEN s.title ELSE EXCLUDED.title END,
        conversation_type = CASE WHEN s.conversation_type = '2' OR EXCLUDED.conversation_type = ''
            THEN s.conversation_type ELSE EXCLUDED.conversation_type END,
        pinned = CASE WHEN s.conversation_type = '1' AND EXCLUDED.conversation_type = '2' THEN '' ELSE s.pinned END,
        pinned_due = s.pinned_due OR s.conversation_type = '1' AND EXCLUDED.conversation_type = '2',
        view_version = s.view_version + (s.conversation_type = '1' AND EXCLUDED.conversation_type = '2')::int,
        lease_term = CASE
            WHEN s.lease_owner = EXCLUDED.lease_owner OR EXISTS (
                SELECT 1 FROM replicas r
                WHERE r.id = s.lease_owner AND r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8)
            THEN s.lease_term ELSE s.lease_term + 1 END,
        fallen_term = CASE
            WHEN s.lease_owner IS NULL OR s.lease_owner = EXCLUDED.lease_owner OR EXISTS (
                SELECT 1 FROM replicas r
                WHERE r.id = s.lease_owner AND r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8)
            THEN s.fallen_term ELSE s.lease_term END,
        lease_owner = CASE
            WHEN EXISTS (
                SELECT 1 FROM replicas r
                WHERE r.id = s.lease_owner AND r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8)
            THEN s.lease_owner ELSE EXCLUDED.lease_owner END,
        updated_at = now()
    RETURNING s.lease_owner, s.lease_term
), learned AS (
    INSERT INTO sender_ids (sender_id, robot_code, staff_id)
    SELECT @encrypted_id::text, @robot_code, @staff_id::text
    WHERE @encrypted_id::text <> '' AND @staff_id::text <> '' AND NOT EXISTS (SELECT 1 FROM known) AND NOT EXISTS (
        SELECT 1 FROM sender_ids k
        WHERE k.sender_id = @encrypted_id::text AND k.robot_code = @robot_code AND k.staff_id = @staff_id::text)
    ON CONFLICT DO NOTHING
    RETURNING staff_id
), outcome AS (
    SELECT
        coalesce((SELECT stored.id FROM stored), (SELECT max(known.id) FROM known), 0)::bigint AS id,
        EXISTS (SELECT 1 FROM stored) AS is_new,
        EXISTS (SELECT 1 FROM deleted) AS is_deleted,
        EXISTS (SELECT 1 FROM elsewhere) AS is_elsewhere,
        EXISTS (SELECT 1 FROM learned) AND EXISTS (
            SELECT 1 FROM sender_ids k WHERE k.sender_id = @encrypted_id::text AND k.robot_code = @robot_code) AS is_clash,
        EXISTS (
            SELECT 1 FROM sender_ids k
            WHERE k.sender_id = @encrypted_id::text AND k.robot_code = @robot_code AND k.staff_id = @staff_id::text
              AND k.seen_at <= now() - interval '1 day') AS is_old,
        coalesce((SELECT taken.lease_owner FROM taken), (SELECT living.lease_owner FROM living),
            (SELECT s.lease_owner FROM dingtalk_sessions s WHERE s.session_key = @session_key), '')::text AS owner,
        coalesce((SELECT taken.lease_term FROM taken), (SELECT living.lease_term FROM living),
            (SELECT s.lease_term FROM dingtalk_sessions s WHERE s.session_key = @session_key), 0)::bigint AS term
)
SELECT outcome.id, outcome.is_new, outcome.is_deleted, outcome.is_elsewhere, outcome.is_clash::boolean AS is_clash,
    outcome.is_old::boolean AS is_old, outcome.owner, outcome.term,
    (CASE WHEN outcome.is_new AND outcome.owner <> @owner::text
        THEN pg_notify('ebb', outcome.owner || '|' || @session_key::text)::text END IS NOT NULL)::boolean AS notified
FROM outcome;

-- name: SenderIDSee :exec
-- SenderIDSee notes the use of a pair of ids. As a part of MessageAccept it could lock the pair before the session,
-- in the reverse order of an erasure.
UPDATE sender_ids k SET seen_at = now()
WHERE k.sender_id = @encrypted_id::text AND k.robot_code = @robot_code AND k.staff_id = @staff_id::text
  AND k.seen_at <= now() - interval '1 day';

-- name: MessagesPending :many
-- MessagesPending reads the newest pending messages of a session, each with the first characters of its text only.
SELECT e.id, left(e.content, @max_chars::int)::text AS content, e.sender_id, e.sender_nick, e.msg_id, e.attempts,
    e.message, e.created_at, coalesce(e.admitted, false)::boolean AS admitted
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.state = 'pending'
ORDER BY e.id DESC LIMIT @max_messages::int;

-- name: MessageFind :one
SELECT e.id, coalesce(s.lease_owner, '')::text AS owner, coalesce(s.lease_term, 0)::bigint AS lease_term
FROM dingtalk_session_events e LEFT JOIN dingtalk_sessions s ON s.session_key = e.session_key
WHERE e.session_key = @session_key AND e.msg_id = @msg_id::text;

-- name: SenderStaff :many
-- SenderStaff lists the staff ids that were seen with an encrypted id.
SELECT DISTINCT k.staff_id FROM sender_ids k
WHERE k.sender_id = @encrypted_id::text AND (@robot::text = '' OR k.robot_code = @robot::text)
ORDER BY k.staff_id;

-- name: SessionsRevive :many
-- SessionsRevive creates missing sessions of pending messages, open replies and owed flushes, and those of the listed logs: a
-- message can be stored while its session is deleted, and an outsider can delete a row. The numbers of such a session go on
-- behind the end of its log. It begins a generation with an empty view, and is flushed as far as its receipts say, or its debt.
-- The first term is a message's id, as in MessageAccept. The version of the view is not one that an open turn has read.
--
-- A session with a message in a turn is created under a given lease of that term, so that the turn can commit, or under one
-- without an owner, by which the turn's process is presumed dead. Otherwise it is returned. The lease can't fence a turn whose
-- row is missing, but the marks of its messages do: a later turn marks them again, and an erasure removes them.
--
-- The order keeps two replicas that create the same sessions from a deadlock.
WITH missing AS (
    SELECT w.session_key, max(w.term)::bigint AS term, bool_or(w.listed) AS listed
    FROM (
        SELECT e.session_key, e.attempt_term AS term, false AS listed FROM dingtalk_session_events e WHERE e.state = 'pending'
        UNION ALL
        SELECT o.session_key, NULL, false FROM outbox o WHERE o.state IN ('sending', 'waiting')
        UNION ALL
        SELECT d.session_key, NULL, false FROM flush_debts d
        UNION ALL
        SELECT k.session_key, NULL, true FROM (SELECT unnest(@logs::text[]) AS session_key) k
    ) w
    WHERE NOT EXISTS (SELECT FROM dingtalk_sessions s WHERE s.session_key = w.session_key)
    GROUP BY w.session_key
), made AS (
    INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, title, lease_owner, lease_term, fallen_term,
        last_seq, base_seq, compacted_seq, flushed_seq, gen, candidates, view_version)
    SELECT m.session_key, coalesce(said.message ->> 'robot_code', ''), coalesce(said.message ->> 'conversation_id', ''),
        coalesce(said.message ->> 'conversation_type', ''), coalesce(said.message ->> 'conversation_title', ''),
        nullif(h.owner, ''), CASE WHEN h.owner <> '' THEN h.term ELSE greatest(said.id, m.term + 1) END, CASE WHEN h.owner = '' THEN coalesce(m.term, 0) ELSE 0 END,
        n.last_seq, n.last_seq, n.last_seq, n.flushed_seq, n.gen, n.candidates, (n.last_seq % 1000000000)::int
    FROM missing m
    LEFT JOIN (SELECT unnest(@keys::text[]) AS session_key, unnest(@owners::text[]) AS owner, unnest(@terms::bigint[]) AS term) h
        ON h.session_key = m.session_key AND (h.owner = '' OR h.term = m.term)
    CROSS JOIN LATERAL (
        SELECT e.id, e.message FROM dingtalk_session_events e
        WHERE e.session_key = m.session_key AND e.role = 'user' AND e.message IS NOT NULL
        ORDER BY e.id DESC LIMIT 1) said
    CROSS JOIN LATERAL (
        SELECT n.last_seq, n.gen, least(n.flushed_seq, n.last_seq)::bigint AS flushed_seq, (
            SELECT count(*) FROM dingtalk_session_events e WHERE e.session_key = m.session_key AND e.seq > n.flushed_seq AND e.candidate)::int AS candidates
        FROM (SELECT
            greatest((SELECT max(e.seq) FROM dingtalk_session_events e WHERE e.session_key = m.session_key AND e.seq IS NOT NULL),
                (SELECT max(f.through_seq) FROM memory_flushes f WHERE f.session_key = m.session_key), 0)::bigint AS last_seq,
            coalesce((SELECT max(f.through_seq) FROM memory_flushes f WHERE f.session_key = m.session_key),
                (SELECT d.from_seq FROM flush_debts d WHERE d.session_key = m.session_key), 0)::bigint AS flushed_seq,
            1 + greatest((SELECT max(c.gen) FROM compaction_log c WHERE c.session_key = m.session_key),
                (SELECT max(a.gen) FROM session_summaries a WHERE a.session_key = m.session_key),
                (SELECT max(f.gen) FROM memory_flushes f WHERE f.session_key = m.session_key), -1)::int AS gen
        ) n OFFSET 0) n
    WHERE m.term IS NULL OR h.session_key IS NOT NULL OR m.listed
    ORDER BY m.session_key
    ON CONFLICT (session_key) DO NOTHING
    RETURNING session_key
), closed AS (
    UPDATE session_summaries a SET status = 'closed' FROM made WHERE a.session_key = made.session_key AND a.status = 'active'
)
SELECT m.session_key::text AS session_key FROM missing m
WHERE m.term IS NOT NULL AND NOT EXISTS (SELECT FROM made WHERE made.session_key = m.session_key);

-- name: SessionContinue :exec
-- SessionContinue begins a generation behind the end of a log whose session has fallen behind it.
WITH log_end AS MATERIALIZED (
    SELECT n.last_seq, n.gen, least(n.flushed_seq, n.last_seq)::bigint AS flushed_seq, (
        SELECT count(*) FROM dingtalk_session_events e WHERE e.session_key = @session_key::text AND e.seq > n.flushed_seq AND e.candidate)::int AS candidates
    FROM (SELECT
        greatest((SELECT max(e.seq) FROM dingtalk_session_events e WHERE e.session_key = @session_key::text AND e.seq IS NOT NULL),
            (SELECT max(f.through_seq) FROM memory_flushes f WHERE f.session_key = @session_key::text), 0)::bigint AS last_seq,
        coalesce((SELECT max(f.through_seq) FROM memory_flushes f WHERE f.session_key = @session_key::text),
            (SELECT d.from_seq FROM flush_debts d WHERE d.session_key = @session_key::text), 0)::bigint AS flushed_seq,
        1 + greatest((SELECT max(c.gen) FROM compaction_log c WHERE c.session_key = @session_key::text),
            (SELECT max(a.gen) FROM session_summaries a WHERE a.session_key = @session_key::text),
            (SELECT max(f.gen) FROM memory_flushes f WHERE f.session_key = @session_key::text), -1)::int AS gen
    ) n
), closed AS (
    UPDATE session_summaries a SET status = 'closed' WHERE a.session_key = @session_key AND a.status = 'active'
)
UPDATE dingtalk_sessions s SET
    last_seq = n.last_seq, base_seq = n.last_seq, compacted_seq = n.last_seq, flushed_seq = n.flushed_seq, gen = greatest(n.gen, s.gen + 1),
    candidates = n.candidates, view_version = s.view_version + 1, total_tokens = 0, rearm_tokens = 0, pinned_due = true,
    observed_tokens = 0, observed_seq = 0, flush_epoch = NULL, updated_at = now()
FROM log_end n
WHERE s.session_key = @session_key AND s.last_seq < n.last_seq;

-- name: SessionsWaiting :many
-- SessionsWaiting is the sweep: sessions with a pending message or an open reply, whose lease is free, stale or
-- owner's, with owner's last. Both inner selects read partial indexes of open rows.
SELECT s.session_key
FROM (
    SELECT e.session_key, min(e.created_at) AS since
    FROM dingtalk_session_events e WHERE e.state = 'pending' GROUP BY e.session_key
    UNION ALL
    SELECT o.session_key, min(o.created_at) AS since
    FROM outbox o
    WHERE o.state IN ('sending', 'waiting')
      AND (o.next_at <= now() OR (o.state = 'sending' AND o.sender <> @owner::text))
    GROUP BY o.session_key
) w
JOIN dingtalk_sessions s ON s.session_key = w.session_key
WHERE s.lease_owner IS NULL OR s.lease_owner = @owner::text OR NOT EXISTS (
    SELECT 1 FROM replicas r
    WHERE r.id = s.lease_owner AND r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8)
GROUP BY s.session_key, s.lease_owner
ORDER BY s.lease_owner IS NOT DISTINCT FROM @owner::text, min(w.since), s.session_key
LIMIT @max_sessions::int;
