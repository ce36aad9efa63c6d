-- name: SessionLock :one
-- SessionLock locks the session's row until the transaction ends, under any lease.
SELECT s.* FROM dingtalk_sessions s WHERE s.session_key = @session_key FOR UPDATE;

-- name: WorkIsSpared :one
-- WorkIsSpared reports whether erasures ended too many turns of a session, or too much of its upkeep, and the next of these is
-- under way in a live replica under the lease of a term. The turn that asks for an erasure is not ended by it.
SELECT EXISTS (
    SELECT 1 FROM dingtalk_sessions s
    WHERE s.session_key = @session_key AND s.lease_term = @term
      AND s.lease_owner = ANY (ARRAY(
        SELECT r.id FROM replicas r WHERE r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8))
      AND (s.cut_upkeep >= @most_cut::int AND s.upkeep_term = @term AND coalesce(s.upkeep_until > now(), false)
        OR NOT @asks::boolean AND s.cut_turns >= @most_cut::int AND EXISTS (SELECT 1 FROM dingtalk_session_events e
        WHERE e.session_key = s.session_key AND e.state = 'pending' AND e.attempt_term = s.lease_term))) AS spared;

-- name: SendIsOpen :one
-- SendIsOpen reports whether a replica may be sending a reply of a session. Its try may have begun with a former text. The
-- end of a claim gives its age; the sender ends an older try. A replica without a heartbeat may be cut off from the
-- database alone, and still send.
SELECT EXISTS (
    SELECT FROM outbox o
    WHERE o.session_key = @session_key AND o.state = 'sending' AND o.in_flight
      AND o.next_at > now() + interval '1 second' * @left_seconds::float8) AS open;

-- name: AttemptRelease :many
-- AttemptRelease removes the marks of a turn that waits with its erasure: other erasures need not spare it.
UPDATE dingtalk_session_events e SET attempt_term = NULL
WHERE e.session_key = @session_key AND e.state = 'pending' AND e.attempt_term = @term::bigint
RETURNING e.id;

-- name: AttemptRestore :exec
-- AttemptRestore marks the messages of a turn again after its wait, unless the turn lost its lease.
UPDATE dingtalk_session_events e SET attempt_term = @term::bigint
WHERE e.session_key = @session_key AND e.state = 'pending' AND e.id = ANY(@ids::bigint[]) AND e.attempt_term IS NULL
  AND EXISTS (SELECT FROM dingtalk_sessions s
    WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term::bigint);

-- name: ViewVersion :one
-- ViewVersion is the version of a session's view: an erasure and a compaction change it, a turn does not.
SELECT s.view_version FROM dingtalk_sessions s WHERE s.session_key = @session_key;

-- name: EventsMissing :many
-- EventsMissing lists the given places without an event in the log.
SELECT w.seq::bigint AS seq FROM unnest(@seqs::bigint[]) AS w (seq)
WHERE NOT EXISTS (SELECT FROM dingtalk_session_events e WHERE e.session_key = @session_key AND e.seq = w.seq)
ORDER BY w.seq;

-- name: EventPlaces :many
-- EventPlaces finds the places of events by their ids: 0 for waiting messages, dead letters and the marks of
-- compactions, which have none.
SELECT e.id, coalesce(e.seq, 0)::bigint AS seq FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.id = ANY(@ids::bigint[]) AND e.role <> 'summary';

-- name: AsideErase :many
-- AsideErase wipes messages without a place in the view, waiting ones and dead letters, with the calls of their turns,
-- and returns their texts. No turn takes them afterwards.
WITH runs AS (
    DELETE FROM tool_runs r WHERE r.session_key = @session_key AND r.event_id = ANY(@ids::bigint[])
), old AS (
    SELECT e.id, e.content FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.id = ANY(@ids::bigint[]) AND e.seq IS NULL AND e.role = 'user' FOR UPDATE
)
UPDATE dingtalk_session_events e SET
    state = 'dead', content = @erased::text, tokens = @tokens::int, shown = NULL, shown_tokens = NULL, blob_id = NULL,
    message = e.message - 'quote' - 'attachments' - 'webhook' - 'webhook_expires'
FROM old WHERE e.session_key = @session_key AND e.id = old.id
RETURNING old.content;

-- name: SchedulesErase :exec
-- SchedulesErase deletes the schedules that messages set.
DELETE FROM schedules t USING dingtalk_session_events e
WHERE t.session_key = @session_key AND e.session_key = @session_key AND e.role = 'user'
  AND (e.seq = ANY(@seqs::bigint[]) OR e.id = ANY(@aside::bigint[]))
  AND (t.origin = 'message ' || e.msg_id OR starts_with(t.origin, 'message ' || e.msg_id || ', call '));

-- name: FilesDelete :exec
-- FilesDelete deletes the kept files of a session.
DELETE FROM files f WHERE f.session_key = @session_key;

-- name: FilesErase :exec
-- FilesErase deletes the kept files that erased messages brought.
DELETE FROM files f
WHERE f.session_key = @session_key AND f.event_id <> 0 AND (f.event_id = ANY(@aside::bigint[]) OR EXISTS (
    SELECT FROM dingtalk_session_events e WHERE e.session_key = @session_key AND e.id = f.event_id AND e.seq = ANY(@seqs::bigint[])));

-- name: ApprovalsErase :exec
-- ApprovalsErase wipes the calls that turns with erased events asked for. One that waits expires without a word.
UPDATE approvals a SET arguments = '', asked_by = '', webhook = '', webhook_expires = NULL, decided_at = coalesce(a.decided_at, @at::timestamptz),
    state = CASE WHEN a.state = 'waiting' THEN 'expired' ELSE a.state END
WHERE a.session_key = @session_key AND (a.turn_event_id = ANY(@aside::bigint[]) OR EXISTS (
    SELECT FROM dingtalk_session_events f JOIN dingtalk_session_events e ON e.session_key = f.session_key
    WHERE f.session_key = @session_key AND f.id = a.turn_event_id AND e.turn = f.turn AND e.seq = ANY(@seqs::bigint[])));

-- name: ApprovedRunsErase :exec
-- ApprovedRunsErase wipes the input and the result of wiped calls that an uncommitted turn of a decision made. The fact that they ran stays.
UPDATE tool_runs r SET arguments = '{}', result = CASE WHEN r.finished THEN @erased::text ELSE '' END
FROM approvals a
WHERE r.session_key = @session_key AND a.session_key = @session_key AND a.arguments = '' AND a.decided_event = r.event_id
  AND (r.call_id = 'approved-' || a.id::text OR starts_with(r.call_id, 'approved-' || a.id::text || '+'));

-- name: BrokenRunsErase :exec
-- BrokenRunsErase wipes the input and the result of calls that a broken attempt made, where erased events are in the turn that answered its
-- first message. Other messages of the attempt still wait. The fact that the calls ran stays.
UPDATE tool_runs r SET arguments = '{}', result = CASE WHEN r.finished THEN @erased::text ELSE '' END
WHERE r.session_key = @session_key AND EXISTS (
    SELECT FROM dingtalk_session_events f JOIN dingtalk_session_events e ON e.session_key = f.session_key
    WHERE f.session_key = @session_key AND f.id = r.event_id AND e.turn = f.turn AND e.seq = ANY(@seqs::bigint[]));

-- name: ScheduleTexts :many
-- ScheduleTexts lists the texts of the schedules that a message set.
SELECT t.text FROM dingtalk_session_events e
JOIN schedules t ON t.session_key = e.session_key
    AND (t.origin = 'message ' || e.msg_id OR starts_with(t.origin, 'message ' || e.msg_id || ', call '))
WHERE e.session_key = @session_key AND e.id = @event AND e.role = 'user';

-- name: ScheduledBy :many
-- ScheduledBy lists the messages of the schedules that a message set; seq is 0 for one without a place in the view. Each has the origin of
-- its schedule, which expires before it. One that an older release stored has none, and is found while its schedule stays.
SELECT f.id, coalesce(f.seq, 0)::bigint AS seq, f.content FROM dingtalk_session_events e
JOIN dingtalk_session_events f ON f.session_key = e.session_key AND f.id > e.id AND f.role = 'user'
    AND (f.message -> 'scheduled' ->> 'origin' = 'message ' || e.msg_id
        OR starts_with(f.message -> 'scheduled' ->> 'origin', 'message ' || e.msg_id || ', call ')
        OR f.message -> 'scheduled' ->> 'origin' IS NULL AND f.msg_id LIKE 'schedule:%' AND EXISTS (SELECT FROM schedules t
            WHERE t.session_key = @session_key AND starts_with(f.msg_id, 'schedule:' || t.id::text || ':')
              AND (t.origin = 'message ' || e.msg_id OR starts_with(t.origin, 'message ' || e.msg_id || ', call '))))
WHERE e.session_key = @session_key AND e.id = @event AND e.role = 'user';

-- name: SummariesCovering :many
-- SummariesCovering lists the summaries, in any state, whose range has one of the events and whose text is not empty.
SELECT a.id, a.start_seq, a.end_seq, a.status, a.summary, a.tokens FROM session_summaries a
WHERE a.session_key = @session_key AND a.summary <> @erased::text
  AND EXISTS (SELECT FROM unnest(@seqs::bigint[]) AS w (seq) WHERE w.seq BETWEEN a.start_seq AND a.end_seq)
ORDER BY a.start_seq, a.id;

-- name: SummaryHeal :exec
-- SummaryHeal replaces the text of a summary, and of the log's mark of its compaction. A mark has no range, so its text
-- identifies it.
WITH marks AS (
    UPDATE dingtalk_session_events e SET content = @summary::text, tokens = @tokens::int
    WHERE e.session_key = @session_key AND e.role = 'summary' AND e.content = @before::text
)
UPDATE session_summaries a SET summary = @summary::text, tokens = @tokens::int, withheld = NULL
WHERE a.session_key = @session_key AND a.id = @id;

-- name: EventsErased :many
-- EventsErased reads the texts of the events to erase.
SELECT e.seq::bigint AS seq, e.role, e.content, coalesce(e.tool_calls::text, '')::text AS calls, e.sender_id, e.created_at
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq = ANY(@seqs::bigint[]) AND (e.content <> @erased::text OR e.tool_calls IS NOT NULL);

-- name: EventsStaying :many
-- EventsStaying reads the beginnings of the other events of a range, from its end backwards.
SELECT e.seq::bigint AS seq, concat_ws(': ', e.sender_nick, left(e.content, @max_chars::int))::text AS content
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq BETWEEN @start_seq::bigint AND @end_seq::bigint
  AND e.seq <> ALL(@seqs::bigint[]) AND e.content <> @erased::text
ORDER BY e.seq DESC
LIMIT @max_rows::int;

-- name: ViewTokens :one
-- ViewTokens is the size of what a view shows of summaries and events.
SELECT (coalesce((SELECT sum(a.tokens) FROM session_summaries a WHERE a.session_key = @session_key AND a.status = 'active'), 0)
    + coalesce((SELECT sum(coalesce(e.shown_tokens, e.tokens)) FROM dingtalk_session_events e
        WHERE e.session_key = @session_key AND e.seq > @after_seq::bigint), 0))::bigint AS tokens;

-- name: OutboxErase :execrows
-- OutboxErase wipes replies that may repeat the events. Those are replies settled since the first event, and open ones
-- that hold an answer among the events, or are of its commit, which are given up. The name of a file may repeat them too.
UPDATE outbox o SET
    body = @erased::text,
    target = o.target - 'file',
    error = CASE WHEN o.state IN ('sent', 'failed') THEN o.error ELSE 'erased' END,
    state = CASE WHEN o.state = 'sent' THEN 'sent' ELSE 'failed' END,
    settled_at = coalesce(o.settled_at, @at::timestamptz)
WHERE o.session_key = @session_key AND o.body <> @erased::text AND CASE
    WHEN o.state IN ('sent', 'failed') THEN o.created_at >= (
        SELECT min(e.created_at) FROM dingtalk_session_events e
        WHERE e.session_key = @session_key AND e.seq = ANY(@seqs::bigint[]))
    ELSE EXISTS (
        SELECT FROM dingtalk_session_events e
        WHERE e.session_key = @session_key AND e.seq = ANY(@seqs::bigint[]) AND e.role = 'assistant'
          AND e.content <> '' AND (strpos(o.body, e.content) > 0 OR e.created_at = o.created_at))
    END;

-- name: OutboxOpen :many
-- OutboxOpen lists the open replies of a session.
SELECT o.session_key, o.id, o.body, o.nonce, o.created_at FROM outbox o
WHERE o.session_key = @session_key AND o.state IN ('sending', 'waiting') AND o.body <> @erased::text
ORDER BY o.id FOR UPDATE;

-- name: TextsShared :many
-- TextsShared lists the given texts that people other than the given ones said in the log after a place.
SELECT t.said::text AS said FROM unnest(@texts::text[]) AS t (said)
WHERE EXISTS (
    SELECT FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.seq > @after_seq::bigint AND e.role = 'user' AND e.sender_id <> ALL(@people::text[])
      AND strpos(e.content, t.said) > 0);

-- name: OutboxQuoting :batchmany
-- OutboxQuoting lists the open replies of a locked session that quote a fact. Few are open at a time.
SELECT o.session_key, o.id, o.body, o.nonce FROM outbox o
WHERE o.session_key = @session_key AND o.state IN ('sending', 'waiting') AND EXISTS (SELECT FROM unnest(@facts::text[]) AS f (fact) WHERE strpos(o.body, f.fact) > 0)
ORDER BY o.id FOR UPDATE;

-- name: OutboxTrim :exec
-- OutboxTrim replaces the text of an open reply. One without a text is given up at a time, and so is a file: its bytes may repeat the
-- words. Another text has other parts: it is sent from its first part under another key, and a running try's outcome leaves it open.
UPDATE outbox o SET
    nonce = @nonce,
    resumed = o.resumed OR o.in_flight OR o.part > 0,
    part = 0,
    joint = '',
    attempts = o.attempts + 1,
    body = CASE WHEN @body::text = '' OR o.target ? 'file' THEN @erased::text ELSE @body::text END,
    error = CASE WHEN @body::text = '' OR o.target ? 'file' THEN 'erased' ELSE o.error END,
    target = o.target - 'file',
    state = CASE WHEN @body::text = '' OR o.target ? 'file' THEN 'failed' ELSE o.state END,
    settled_at = CASE WHEN @body::text = '' OR o.target ? 'file' THEN @at::timestamptz ELSE o.settled_at END
WHERE o.session_key = @session_key AND o.id = @id AND o.state IN ('sending', 'waiting');

-- name: CompactionsErase :exec
-- CompactionsErase wipes repeats of events in the compaction log. These are identifiers in an audit of ranges that may
-- hold the events, and a focus that one of them gave, compared without blanks and line ends.
UPDATE compaction_log c SET
    audit = CASE WHEN c.end_seq >= @first_seq::bigint THEN c.audit - 'missing' - 'invented' ELSE c.audit END,
    focus = CASE WHEN EXISTS (
        SELECT FROM dingtalk_session_events e
        WHERE e.session_key = @session_key AND e.seq = ANY(@seqs::bigint[]) AND strpos(regexp_replace(e.content, '[\s\u00a0\u3000]', '', 'g'), regexp_replace(c.focus, '[\s\u00a0\u3000]', '', 'g')) > 0)
        THEN '' ELSE c.focus END
WHERE c.session_key = @session_key AND (c.focus <> '' OR c.end_seq >= @first_seq::bigint);

-- name: TurnTimes :many
-- TurnTimes lists the places of a session's log, in order, with their turns and times.
SELECT e.seq::bigint AS seq, e.turn, (e.role = 'user')::boolean AS asked, e.created_at FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq IS NOT NULL
ORDER BY e.seq;

-- name: SessionsReading :many
-- SessionsReading lists the sessions that may read memories of some scopes: those of a team's robot, of a group, of
-- people who spoke there, and single ones. Robots and conversations of groups are parallel arrays.
SELECT s.session_key FROM dingtalk_sessions s WHERE s.robot_code = ANY(@teams::text[])
UNION
SELECT s.session_key FROM (SELECT unnest(@robots::text[]) AS robot, unnest(@conversations::text[]) AS conversation) g
JOIN dingtalk_sessions s ON s.conversation_id = g.conversation AND s.robot_code = g.robot
UNION
SELECT p.session_key FROM people p WHERE p.person = ANY(@users::text[]) AND p.spoke
UNION
SELECT e.session_key FROM dingtalk_session_events e WHERE e.state = 'pending' AND e.sender_id = ANY(@users::text[])
UNION
SELECT s.session_key FROM dingtalk_sessions s WHERE s.session_key = ANY(@session_keys::text[]);

-- name: ReadersToLock :many
-- ReadersToLock lists, in the order of their keys, those of some sessions in which a deletion of facts may change rows: with a
-- lease, with a fact in the head of the view or in undo data, or with open replies. Others lock a session before its
-- replies and its facts, too.
SELECT h.session_key FROM dingtalk_sessions h
WHERE h.session_key = ANY(@session_keys::text[]) AND (@leased::boolean AND h.lease_owner IS NOT NULL
    OR h.pinned <> '' AND EXISTS (SELECT FROM unnest(@facts::text[]) AS f (fact) WHERE strpos(h.pinned, f.fact) > 0)
    OR @replies::boolean AND EXISTS (SELECT FROM outbox o WHERE o.session_key = h.session_key AND o.state IN ('sending', 'waiting'))
    OR EXISTS (SELECT FROM compaction_log c
        WHERE c.session_key = h.session_key AND c.view_before IS NOT NULL AND c.view_before ->> 'pinned' <> ''
          AND EXISTS (SELECT FROM unnest(@facts::text[]) AS f (fact) WHERE strpos(c.view_before ->> 'pinned', f.fact) > 0)))
ORDER BY h.session_key;

-- name: SessionsLock :batchexec
-- SessionsLock locks a session. Its row may be gone.
SELECT s.session_key FROM dingtalk_sessions s WHERE s.session_key = @session_key FOR UPDATE;

-- name: SessionsShare :batchexec
-- SessionsShare protects a session from erasure and deletion until the transaction ends. It waits for those in progress.
SELECT s.session_key FROM dingtalk_sessions s WHERE s.session_key = @session_key FOR KEY SHARE;

-- name: PinnedErase :exec
-- PinnedErase removes memory from the head of locked views that show a deleted fact. The next turn pins it again.
UPDATE dingtalk_sessions s SET pinned = '', pinned_due = true, updated_at = now()
WHERE s.session_key = ANY(@session_keys::text[]) AND s.pinned <> ''
  AND EXISTS (SELECT FROM unnest(@facts::text[]) AS f (fact) WHERE strpos(s.pinned, f.fact) > 0);

-- name: PinnedBeforeErase :exec
-- PinnedBeforeErase removes such memory from the undo data of locked sessions.
UPDATE compaction_log c SET view_before = jsonb_set(c.view_before, '{pinned}', '""')
WHERE c.session_key = ANY(@session_keys::text[]) AND c.view_before IS NOT NULL AND c.view_before ->> 'pinned' <> ''
  AND EXISTS (SELECT FROM unnest(@facts::text[]) AS f (fact) WHERE strpos(c.view_before ->> 'pinned', f.fact) > 0);

-- name: EventsErase :exec
-- EventsErase wipes the texts of events, the view's texts of them, and their delivery data. Speaker, time and the call
-- of a result stay, so that the log keeps its shape and every request stays valid.
UPDATE dingtalk_session_events e SET
    content = @erased::text,
    tokens = @tokens::int,
    shown = NULL,
    shown_tokens = NULL,
    blob_id = NULL,
    searched = false,
    withheld = NULL,
    candidate = false,
    tool_calls = CASE WHEN e.tool_calls IS NOT NULL THEN (
        SELECT jsonb_agg(t.call || '{"arguments": "{}"}'::jsonb ORDER BY t.place)
        FROM jsonb_array_elements(e.tool_calls) WITH ORDINALITY AS t (call, place)) END,
    message = e.message - 'quote' - 'attachments'
WHERE e.session_key = @session_key AND e.seq = ANY(@seqs::bigint[]);

-- name: CompactionsWithView :many
-- CompactionsWithView lists the rows with a view for an undo.
SELECT c.id, c.gen, c.undone_at, c.view_before FROM compaction_log c
WHERE c.session_key = @session_key AND c.view_before IS NOT NULL
ORDER BY c.id;

-- name: CompactionViewSet :exec
-- CompactionViewSet changes the view for an undo; without one there is no undo.
UPDATE compaction_log c SET view_before = @view_before
WHERE c.session_key = @session_key AND c.id = @id;

-- name: SessionErased :exec
-- SessionErased subtracts the erased text from the size of the context, and makes the next turn pin memory again.
UPDATE dingtalk_sessions s SET
    total_tokens = greatest(least(s.total_tokens - round(s.calibration * @freed::bigint), 2147483647), 0),
    observed_tokens = 0,
    observed_seq = 0,
    pinned = '',
    pinned_due = true,
    updated_at = now()
WHERE s.session_key = @session_key;

-- name: MemoriesDelete :execrows
-- MemoriesDelete deletes a session's own memories. Facts about people and groups stay.
DELETE FROM memories m
WHERE m.scope = 'session' AND (m.scope_id = @session_key::text OR m.source_session = @session_key::text);

-- name: EventsDelete :one
-- EventsDelete deletes a log. When a message asks for it, messages of people from that one on stay, with the listed answers to
-- them. It remembers the deleted messages for a day, since they may be pushed again. A mark names the conversation without the
-- member: the sender may have another id then.
WITH gone AS (
    DELETE FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND (@asked::bigint = 0 OR e.id <> ALL(@answers::bigint[]) AND (e.role <> 'user' OR starts_with(e.msg_id, 'schedule:') OR (e.sent_at, e.id) < (
        SELECT a.sent_at, a.id FROM dingtalk_session_events a WHERE a.session_key = @session_key AND a.id = @asked::bigint)))
    RETURNING e.session_key, e.msg_id
), remembered AS (
    INSERT INTO deleted_messages (message)
    SELECT sha256(convert_to(split_part(gone.session_key, '/', 1) || '/' || split_part(gone.session_key, '/', 2) || ' ' || gone.msg_id, 'UTF8')) FROM gone WHERE gone.msg_id IS NOT NULL
    ON CONFLICT (message) DO NOTHING
)
SELECT count(*) FROM gone;

-- name: DeletedMessagesExpire :exec
-- DeletedMessagesExpire deletes marks of deletions older than a day: DingTalk no longer pushes those messages.
DELETE FROM deleted_messages WHERE deleted_at < now() - interval '1 day';

-- name: MessagesAfter :many
-- MessagesAfter lists the answered messages of people after another message, without those of schedules.
SELECT e.id FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.role = 'user' AND e.seq IS NOT NULL AND starts_with(e.msg_id, 'schedule:') IS NOT TRUE AND (e.sent_at, e.id) > (
    SELECT a.sent_at, a.id FROM dingtalk_session_events a WHERE a.session_key = @session_key AND a.id = @asked::bigint);

-- name: EventsRenumber :execrows
-- EventsRenumber numbers the places of a log consecutively after a place. No old number is among the new ones.
WITH places AS (
    SELECT o.id, row_number() OVER (ORDER BY o.seq) AS place FROM dingtalk_session_events o
    WHERE o.session_key = @session_key AND o.seq IS NOT NULL
)
UPDATE dingtalk_session_events e SET seq = n.place + @base::bigint
FROM places n
WHERE e.session_key = @session_key AND e.id = n.id;

-- name: SummariesDelete :execrows
DELETE FROM session_summaries a WHERE a.session_key = @session_key;

-- name: CompactionsDelete :execrows
DELETE FROM compaction_log c WHERE c.session_key = @session_key;

-- name: OutboxDelete :execrows
-- OutboxDelete deletes replies whose answers are not in the log. A turn writes its answer and its reply at one time.
DELETE FROM outbox o WHERE o.session_key = @session_key AND NOT EXISTS (
    SELECT FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.seq IS NOT NULL AND e.role <> 'user' AND e.created_at = o.created_at);

-- name: SessionDelete :exec
-- SessionDelete deletes a session with the rows that are not counted. Open cards stay until they are closed. The usage was added to
-- that of deleted sessions before.
WITH runs AS (DELETE FROM tool_runs r WHERE r.session_key = @session_key),
    debts AS (DELETE FROM flush_debts d WHERE d.session_key = @session_key),
    digests AS (DELETE FROM memory_digests g WHERE g.session_key = @session_key),
    flushes AS (DELETE FROM memory_flushes f WHERE f.session_key = @session_key),
    requests AS (DELETE FROM compaction_requests q WHERE q.session_key = @session_key),
    usage AS (DELETE FROM model_usage u WHERE u.session_key = @session_key),
    times AS (DELETE FROM schedules t WHERE t.session_key = @session_key),
    asked AS (DELETE FROM approvals a WHERE a.session_key = @session_key),
    sent AS (DELETE FROM sent_files h WHERE h.session_key = @session_key),
    numbers AS (DELETE FROM schedule_numbers n WHERE n.session_key = @session_key),
    jobs AS (DELETE FROM compaction_jobs j WHERE j.session_key = @session_key),
    settled AS (DELETE FROM cards c WHERE c.session_key = @session_key AND c.state <> 'open')
DELETE FROM dingtalk_sessions s WHERE s.session_key = @session_key;
