-- name: ListenForWakes :exec
-- ListenForWakes subscribes the connection to the notifications of replicas. A payload is "owner|key"; an empty owner
-- means all.
LISTEN ebb;

-- name: MessageAdd :batchone
-- MessageAdd stores a message as pending. No row: it was stored before.
--
-- Accepting a message is a pipeline of this and the statements as far as InboxSession: one transaction, one round trip, one flush of the
-- log. The guards come after it, so that they see the deletion for which it may have waited. What the message needs besides is rare, and
-- a second pipeline: a new session, a free or stale lease, another title or kind, a new pair of ids. A message without it waits for the
-- sweep, so its commit does not wait for the disk.
INSERT INTO dingtalk_session_events
    (session_key, role, state, content, sender_id, sender_nick, msg_id, message, sent_at)
VALUES (@session_key, 'user', 'pending', @content, @sender_id, @sender_nick, @msg_id::text, @message, @sent_at)
ON CONFLICT (session_key, msg_id) WHERE msg_id IS NOT NULL DO NOTHING
RETURNING id;

-- name: MessageKept :batchexec
-- MessageKept ends the pipeline by a division by zero when the message was deleted with its session, and by the root of a negative number
-- when its group has another scope. A mark names the conversation without the member, whose id may differ in the next delivery. Marks of
-- earlier releases name the whole session.
SELECT (1 / CASE WHEN EXISTS (
        SELECT FROM deleted_messages d WHERE d.message IN (@mark::bytea, @session_mark::bytea)) THEN 0 ELSE 1 END)::int AS kept,
    sqrt((CASE WHEN EXISTS (
        SELECT FROM group_scopes g WHERE g.group_key = @group_key::text AND g.scope <> 'group') THEN -1 ELSE 0 END)::float8)::float8 AS here;

-- name: MessageHere :batchexec
-- MessageHere ends the pipeline by a division by zero when another session of the group has the message, its deletion, or a waiting
-- message of its sender.
SELECT (1 / CASE WHEN count(*) = 0 THEN 1 ELSE 0 END)::int AS here
FROM (
    SELECT 1 FROM dingtalk_session_events e WHERE e.session_key = @session_key AND e.msg_id = @msg_id::text
    UNION ALL
    SELECT 1 FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.state = 'pending' AND e.sender_id = ANY(@senders::text[])
    UNION ALL
    SELECT 1 FROM deleted_messages d WHERE d.message = @session_mark::bytea
) found;

-- name: InboxSession :batchone
-- InboxSession reads what accepting a message asks about its session: the lease, the last heartbeat of its owner, and when the pair of
-- the sender's ids was noted last. A turn may be committing on the row, so that nothing locks it. No row: there is no session.
SELECT coalesce(s.lease_owner, '')::text AS owner, s.lease_term AS term, s.title, s.conversation_type,
    r.heartbeat_at, k.seen_at, now()::timestamptz AS clock
FROM dingtalk_sessions s
LEFT JOIN replicas r ON r.id = s.lease_owner
LEFT JOIN sender_ids k ON k.sender_id = @encrypted_id::text AND k.robot_code = @robot_code AND k.staff_id = @staff_id::text
WHERE s.session_key = @session_key;

-- name: SessionAdd :batchexec
-- SessionAdd creates the session of a message under a lease, unless another message did. The first term is the message's id, so that a
-- session created again has another lease than the workers of the deleted one.
INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, title, lease_owner, lease_term)
VALUES (@session_key, @robot_code, @conversation_id, @conversation_type, @title, @owner::text, @event::bigint)
ON CONFLICT (session_key) DO NOTHING;

-- name: SessionIsNew :batchexec
-- SessionIsNew ends the pipeline by a division by zero when the message is deleted, or when the log has more than messages that wait:
-- then the row alone was deleted, see SessionRevive.
SELECT (1 / count(*))::int AS added FROM dingtalk_session_events m
WHERE m.session_key = @session_key AND m.id = @event::bigint AND NOT EXISTS (
    SELECT FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND (e.state <> 'pending' OR e.attempt_term IS NOT NULL));

-- name: SessionName :batchexec
-- SessionName renews the title and the kind of a session, as far as they are given. A group stays a group, and a private chat's pins
-- are not shown to a group.
UPDATE dingtalk_sessions s SET
    title = CASE WHEN @title::text = '' THEN s.title ELSE @title::text END,
    conversation_type = CASE WHEN s.conversation_type = '2' OR @conversation_type::text = ''
        THEN s.conversation_type ELSE @conversation_type::text END,
    pinned = CASE WHEN s.conversation_type = '1' AND @conversation_type::text = '2' THEN '' ELSE s.pinned END,
    pinned_due = s.pinned_due OR s.conversation_type = '1' AND @conversation_type::text = '2',
    view_version = s.view_version + (s.conversation_type = '1' AND @conversation_type::text = '2')::int,
    updated_at = now()
WHERE s.session_key = @session_key;

-- name: SenderIDAdd :batchone
-- SenderIDAdd stores the staff id of an encrypted id, when the frame had both. A second staff id for one encrypted id is a clash: from
-- then on the encrypted id alone identifies no member of staff. No row: the pair is known.
INSERT INTO sender_ids (sender_id, robot_code, staff_id) VALUES (@encrypted_id::text, @robot_code, @staff_id::text)
ON CONFLICT DO NOTHING
RETURNING staff_id;

-- name: SenderIDsOf :batchone
-- SenderIDsOf counts the staff ids of an encrypted id.
SELECT count(*) FROM sender_ids k WHERE k.sender_id = @encrypted_id::text AND k.robot_code = @robot_code;

-- name: SenderIDSee :batchexec
-- SenderIDSee notes the use of a pair of ids. An erasure locks sessions before pairs, and so does accepting.
UPDATE sender_ids k SET seen_at = now()
WHERE k.sender_id = @encrypted_id::text AND k.robot_code = @robot_code AND k.staff_id = @staff_id::text;

-- name: Notify :exec
-- Notify wakes other replicas; see ListenForWakes. The server puts all commits with notifications into one queue. It reads no table: a
-- cluster would execute it on another node, where no replica listens.
SELECT pg_notify('ebb', @payload::text);

-- name: CommitUnsynced :batchexec
-- CommitUnsynced lets the commit of its pipeline not wait for the disk, with the mode off.
SELECT set_config('synchronous_commit', @mode::text, true)::text AS synchronous_commit;

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

-- name: SenderIDsLinked :many
-- SenderIDsLinked lists the staff ids that were seen with an encrypted id, or the encrypted ids that were seen with a staff id.
SELECT k.staff_id AS id FROM sender_ids k WHERE k.sender_id = @id::text AND k.robot_code = @robot::text
UNION
SELECT k.sender_id FROM sender_ids k WHERE k.staff_id = @id::text AND k.robot_code = @robot::text
ORDER BY id;

-- name: SessionsMissing :many
-- SessionsMissing lists the missing sessions of pending messages, open replies and owed flushes: a message can be stored while its session
-- is deleted, and an outsider can delete a row. term is of the turn that has a message, or 0.
SELECT w.session_key, max(w.term)::bigint AS term
FROM (
    SELECT e.session_key, coalesce(e.attempt_term, 0) AS term FROM dingtalk_session_events e WHERE e.state = 'pending'
    UNION ALL
    SELECT o.session_key, 0 FROM outbox o WHERE o.state IN ('sending', 'waiting')
    UNION ALL
    SELECT d.session_key, 0 FROM flush_debts d
) w LEFT JOIN dingtalk_sessions s ON s.session_key = w.session_key
WHERE s.session_key IS NULL
GROUP BY w.session_key
ORDER BY w.session_key;

-- name: SummariesEnd :batchexec
-- SummariesEnd and SessionRevive are one pipeline, which creates the missing session of a log: free, or under a lease. Its summaries
-- belong to earlier generations.
UPDATE session_summaries a SET status = 'closed'
WHERE a.session_key = @session_key AND a.status = 'active'
  AND NOT EXISTS (SELECT FROM dingtalk_sessions s WHERE s.session_key = @session_key);

-- name: SessionRevive :batchexec
-- SessionRevive creates a session whose numbers go on behind the end of its log. It begins a generation with an empty view, and is flushed
-- as far as its receipts say, or its debt. The first term is a message's id, as in SessionAdd, and above that of a turn. The version of
-- the view is not one that an open turn has read.
--
-- With an owner the session is under the lease of a turn, so that the turn can commit. fallen is the term of a turn whose process is
-- presumed dead. A lease can't fence a turn whose row is missing, but the marks of its messages do: a later turn marks them again, and
-- an erasure removes them.
INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, title, lease_owner, lease_term, fallen_term,
    last_turn, last_seq, base_seq, compacted_seq, flushed_seq, gen, candidates, view_version)
SELECT n.session_key, coalesce(n.message ->> 'robot_code', ''), coalesce(n.message ->> 'conversation_id', ''),
    coalesce(n.message ->> 'conversation_type', ''), coalesce(n.message ->> 'conversation_title', ''),
    nullif(@owner::text, ''), CASE WHEN @owner::text <> '' THEN @term::bigint ELSE greatest(n.id, n.turn_term + 1) END, @fallen::bigint,
    (SELECT coalesce(max(t.turn), 0) FROM dingtalk_session_events t WHERE t.session_key = @session_key), n.last_seq, n.last_seq, n.last_seq, least(n.flushed_seq, n.last_seq), n.gen,
    (SELECT count(*) FROM dingtalk_session_events e WHERE e.session_key = @session_key AND e.seq > n.flushed_seq AND e.candidate)::int,
    (n.last_seq % 1000000000)::int
FROM (
    SELECT m.session_key, m.id, m.message,
        (SELECT max(e.attempt_term) FROM dingtalk_session_events e WHERE e.session_key = @session_key AND e.state = 'pending') AS turn_term,
        greatest((SELECT max(e.seq) FROM dingtalk_session_events e WHERE e.session_key = @session_key AND e.seq IS NOT NULL),
            (SELECT max(f.through_seq) FROM memory_flushes f WHERE f.session_key = @session_key), 0)::bigint AS last_seq,
        coalesce((SELECT max(f.through_seq) FROM memory_flushes f WHERE f.session_key = @session_key),
            (SELECT d.from_seq FROM flush_debts d WHERE d.session_key = @session_key), 0)::bigint AS flushed_seq,
        1 + greatest((SELECT max(c.gen) FROM compaction_log c WHERE c.session_key = @session_key),
            (SELECT max(a.gen) FROM session_summaries a WHERE a.session_key = @session_key),
            (SELECT max(f.gen) FROM memory_flushes f WHERE f.session_key = @session_key), -1)::int AS gen
    FROM dingtalk_session_events m
    WHERE m.session_key = @session_key AND m.role = 'user' AND m.message IS NOT NULL
      AND NOT EXISTS (SELECT FROM dingtalk_sessions s WHERE s.session_key = @session_key)
    ORDER BY m.id DESC LIMIT 1) n
ON CONFLICT (session_key) DO NOTHING;

-- name: SessionContinue :exec
-- SessionContinue begins a generation behind the end of a log whose session has fallen behind it.
WITH log_end AS MATERIALIZED (
    SELECT n.last_turn, n.last_seq, n.gen, least(n.flushed_seq, n.last_seq)::bigint AS flushed_seq, (
        SELECT count(*) FROM dingtalk_session_events e WHERE e.session_key = @session_key::text AND e.seq > n.flushed_seq AND e.candidate)::int AS candidates
    FROM (SELECT
        coalesce((SELECT max(e.turn) FROM dingtalk_session_events e WHERE e.session_key = @session_key::text), 0)::bigint AS last_turn,
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
    last_turn = greatest(s.last_turn, n.last_turn), last_seq = n.last_seq, base_seq = n.last_seq, compacted_seq = n.last_seq, flushed_seq = n.flushed_seq, gen = greatest(n.gen, s.gen + 1),
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
WHERE s.lease_owner IS NULL OR s.lease_owner = @owner::text OR s.lease_owner <> ALL (ARRAY(
    SELECT r.id FROM replicas r WHERE r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8))
GROUP BY s.session_key, s.lease_owner
ORDER BY s.lease_owner IS NOT DISTINCT FROM @owner::text, min(w.since), s.session_key
LIMIT @max_sessions::int;
