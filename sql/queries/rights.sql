-- name: MemoriesFind :many
-- MemoriesFind lists memories for people and administrators. Each filter is off where its parameter is empty. asking
-- leaves only what concerns an asker: in a private chat what is about the person or was said by them, wherever that was,
-- and in every chat what everybody in it may read. What a person's own memory has from a private chat is never among
-- what a group may read. With all, superseded and expired ones are in it too.
SELECT m.id, m.scope, m.scope_id, m.kind, m.content, m.subject_id, m.source_session, m.start_seq, m.end_seq,
    m.superseded_by, m.created_at, m.fact_key, m.said_by, m.said_at, m.source_group, m.expires_at, m.last_seen_at, m.seen,
    m.superseded_at, m.promoted_by, count(*) OVER () AS total
FROM memories m
WHERE (@id::bigint = 0 OR m.id = @id::bigint)
  AND m.id > @after_id::bigint
  AND (@in_scope::text = '' OR m.scope = @in_scope::text)
  AND (@in_scope_id::text = '' OR m.scope_id = @in_scope_id::text)
  AND (@in_session::text = '' OR m.source_session = @in_session::text)
  AND (@person::text = '' OR m.subject_id = @person::text OR m.said_by = @person::text
    OR (m.scope = 'user' AND m.scope_id = @person::text))
  AND (@every::boolean OR (m.superseded_by IS NULL AND (m.expires_at IS NULL OR m.expires_at > now())))
  AND (NOT @asking::boolean OR (
    (m.scope = 'team' AND m.scope_id = @team_id::text)
    OR (m.scope = 'group' AND m.scope_id = @group_id::text)
    OR (m.scope = 'session' AND m.scope_id = @session_key::text)
    OR (m.scope = 'user' AND m.scope_id = @asker::text AND (@private::boolean OR m.source_group = @group_id::text))
    OR (@private::boolean AND @asker::text <> '' AND (m.subject_id = @asker::text OR m.said_by = @asker::text))))
ORDER BY CASE WHEN @oldest_first::boolean THEN m.id ELSE -m.id END
LIMIT @max_rows::int;

-- name: MemoryChain :many
-- MemoryChain lists the ids of the values of one fact, the oldest first: those that a memory corrected, itself, and those
-- that corrected it.
WITH RECURSIVE older AS (
    SELECT m.id, m.superseded_by FROM memories m WHERE m.id = @id::bigint
    UNION
    SELECT m.id, m.superseded_by FROM memories m JOIN older o ON m.superseded_by = o.id
), newer AS (
    SELECT m.id, m.superseded_by FROM memories m WHERE m.id = @id::bigint
    UNION
    SELECT m.id, m.superseded_by FROM memories m JOIN newer n ON m.id = n.superseded_by
)
SELECT c.id, c.is_older FROM (
    SELECT o.id, true AS is_older FROM older o
    UNION ALL
    SELECT n.id, false AS is_older FROM newer n WHERE n.id <> @id::bigint
) c ORDER BY c.id;

-- name: MemoriesForget :many
-- MemoriesForget deletes memories by their ids.
DELETE FROM memories m WHERE m.id = ANY(@ids::bigint[]) RETURNING m.id, m.content;

-- name: MemoryPromote :one
-- MemoryPromote copies a memory of a group into the team's scope, and has the copy supersede it. Where the team has that
-- fact already, its row is the one. The copy is indexed anew, for its terms are of another scope.
WITH old AS (
    SELECT m.* FROM memories m
    WHERE m.id = @id AND m.scope = 'group' AND m.superseded_by IS NULL AND (m.expires_at IS NULL OR m.expires_at > now())
    FOR UPDATE
), copied AS (
    INSERT INTO memories (scope, scope_id, kind, content, norm_hash, subject_id, source_session, start_seq, end_seq,
        fact_key, said_by, said_at, source_group, expires_at, last_seen_at, seen, promoted_by)
    SELECT 'team', s.robot_code, old.kind, old.content, old.norm_hash, old.subject_id, old.source_session, old.start_seq,
        old.end_seq, old.fact_key, old.said_by, old.said_at, old.source_group, old.expires_at, old.last_seen_at, old.seen, @promoted_by
    FROM old JOIN dingtalk_sessions s ON s.session_key = old.source_session
    ON CONFLICT (scope, scope_id, norm_hash) WHERE superseded_by IS NULL DO UPDATE SET seen = memories.seen + 1
    RETURNING id
), replaced AS (
    UPDATE memories m SET superseded_by = copied.id, superseded_at = now() FROM old, copied
    WHERE m.scope = old.scope AND m.scope_id = old.scope_id AND m.id = old.id
)
SELECT copied.id FROM copied;

-- name: PeopleNamed :many
-- PeopleNamed finds who spoke, by id or by nick.
SELECT e.sender_id, (array_agg(e.sender_nick ORDER BY e.id DESC))[1]::text AS nick, count(*) AS messages,
    max(e.created_at)::timestamptz AS last_at
FROM dingtalk_session_events e JOIN dingtalk_sessions s ON s.session_key = e.session_key
WHERE e.role = 'user' AND e.sender_id <> '' AND (@robot::text = '' OR s.robot_code = @robot::text)
  AND e.sender_id IN (
    SELECT x.sender_id FROM dingtalk_session_events x WHERE x.sender_id = @name::text
    UNION
    SELECT x.sender_id FROM dingtalk_session_events x WHERE x.sender_nick = @name::text)
GROUP BY e.sender_id
ORDER BY last_at DESC, e.sender_id
LIMIT 20;

-- name: PersonNicks :many
-- PersonNicks lists the names that a person went by, their own and those in quotes of them.
SELECT n.nick FROM (
    SELECT e.sender_nick AS nick FROM dingtalk_session_events e WHERE e.sender_id = @person::text
    UNION
    SELECT (e.message #>> '{quote,nick}')::text FROM dingtalk_session_events e
    WHERE e.message #>> '{quote,sender_id}' = @person::text
) n WHERE n.nick <> '';

-- name: PersonMessages :many
-- PersonMessages lists what a person said, anywhere, in order of arrival.
SELECT e.session_key, e.id, e.seq, e.content, e.sender_id, e.sender_nick, e.state, e.message, e.created_at,
    s.title, s.conversation_type
FROM dingtalk_session_events e JOIN dingtalk_sessions s ON s.session_key = e.session_key
WHERE e.sender_id = @person AND e.role = 'user' AND e.id > @after_id::bigint
ORDER BY e.id
LIMIT @max_rows::int;

-- name: PersonSessions :many
-- PersonSessions lists the sessions that have something of a person: messages, quotes, replies to them, memories, or the
-- bot's own words with one of the words that tell them apart. Those come first where the person said nothing, for what
-- tells them apart there goes with the others.
SELECT s.session_key, s.robot_code, s.conversation_id, s.conversation_type, f.spoke
FROM dingtalk_sessions s JOIN (
    SELECT a.session_key, bool_or(a.spoke) AS spoke FROM (
        SELECT e.session_key, true AS spoke FROM dingtalk_session_events e WHERE e.sender_id = @person::text
        UNION ALL
        SELECT e.session_key, false FROM dingtalk_session_events e
        WHERE e.message #>> '{quote,sender_id}' = @person::text
           OR (e.role <> 'user' AND EXISTS (SELECT FROM unnest(@words::text[]) AS w (word)
                WHERE strpos(e.content, w.word) > 0 OR strpos(e.tool_calls::text, w.word) > 0))
        UNION ALL
        SELECT o.session_key, false FROM outbox o
        WHERE o.target ->> 'staff_id' = @person::text
           OR o.target -> 'mentions' @> jsonb_build_array(jsonb_build_object('staff_id', @person::text))
        UNION ALL
        SELECT m.source_session, false FROM memories m
        WHERE m.subject_id = @person::text OR m.said_by = @person::text OR (m.scope = 'user' AND m.scope_id = @person::text)
    ) a GROUP BY a.session_key
) f ON f.session_key = s.session_key
WHERE @robot::text = '' OR s.robot_code = @robot::text
ORDER BY f.spoke, s.session_key;

-- name: LogWalk :many
-- LogWalk reads a session's log for an erasure, in the order of the view.
SELECT e.seq::bigint AS seq, e.role, e.sender_id, e.content, coalesce(e.tool_calls::text, '')::text AS calls
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq > @after_seq::bigint
ORDER BY e.seq
LIMIT @max_rows::int;

-- name: MemoriesDrawn :many
-- MemoriesDrawn lists what memory has from a session.
SELECT m.id, m.content, m.subject_id, m.said_by, (m.scope = 'user' AND m.scope_id = @person::text)::boolean AS theirs
FROM memories m WHERE m.source_session = @session_key;

-- name: MemoriesOfPerson :many
-- MemoriesOfPerson lists the memories about a person and those that the person said, superseded ones too, and those that
-- name the person by their id.
SELECT m.id, m.content FROM memories m
WHERE m.subject_id = @person::text OR m.said_by = @person::text OR (m.scope = 'user' AND m.scope_id = @person::text)
   OR EXISTS (SELECT FROM unnest(@words::text[]) AS w (word) WHERE strpos(m.content, w.word) > 0);

-- name: MemoriesUnpromote :exec
-- MemoriesUnpromote takes a person's name from memories of others that the person promoted.
UPDATE memories m SET promoted_by = '' WHERE m.promoted_by = @person::text;

-- name: PersonWaiting :execrows
-- PersonWaiting wipes a person's messages that have no place in the view, waiting ones and dead letters: nobody answers
-- them any more. The message that asks for it goes on waiting, and later ones are another matter.
UPDATE dingtalk_session_events e SET
    state = 'dead', content = @erased::text, tokens = @tokens::int, shown = NULL, shown_tokens = NULL, blob_id = NULL, terms = NULL
WHERE e.session_key = @session_key AND e.sender_id = @person::text AND e.role = 'user' AND e.seq IS NULL
  AND (@asked::bigint = 0 OR e.id < @asked::bigint) AND e.content <> @erased::text;

-- name: PersonUnname :exec
-- PersonUnname takes the name from a person's messages, and all of how they came but where and when: what is left is that
-- somebody said something.
UPDATE dingtalk_session_events e SET
    sender_id = '', sender_nick = '', candidate = false,
    message = jsonb_build_object('text', @erased::text, 'kind', e.message -> 'kind', 'msg_id', e.message -> 'msg_id',
        'robot_code', e.message -> 'robot_code', 'conversation_id', e.message -> 'conversation_id',
        'conversation_type', e.message -> 'conversation_type', 'sender_id', '', 'sent_at', e.message -> 'sent_at')
WHERE e.session_key = @session_key AND e.sender_id = @person::text
  AND (@asked::bigint = 0 OR e.id < @asked::bigint);

-- name: AskingUnname :exec
-- AskingUnname does the same to the message that asks, which says no more than what was asked.
UPDATE dingtalk_session_events e SET
    content = @content::text, sender_id = '', sender_nick = '', candidate = false, terms = NULL,
    message = jsonb_build_object('text', @content::text, 'kind', 'text', 'msg_id', e.message -> 'msg_id',
        'robot_code', e.message -> 'robot_code', 'conversation_id', e.message -> 'conversation_id',
        'conversation_type', e.message -> 'conversation_type', 'sender_id', '', 'sent_at', e.message -> 'sent_at')
WHERE e.session_key = @session_key AND e.id = @asked AND e.state = 'pending';

-- name: QuotesOf :many
-- QuotesOf lists the messages that quote events, by the message that they reply to or by its words, or that quote a
-- person, where one is given: by id, or by nick where there is no id.
SELECT q.id, q.content, (q.message #>> '{quote,text}')::text AS quoted FROM dingtalk_session_events q
WHERE q.session_key = @session_key AND q.message -> 'quote' IS NOT NULL AND q.message #>> '{quote,text}' <> @erased::text AND (
    (@person::text <> '' AND (q.message #>> '{quote,sender_id}' = @person::text
        OR (coalesce(q.message #>> '{quote,sender_id}', '') = '' AND q.message #>> '{quote,nick}' = ANY(@nicks::text[]))))
    OR EXISTS (
        SELECT FROM dingtalk_session_events e
        WHERE e.session_key = @session_key AND (e.seq = ANY(@seqs::bigint[]) OR (@person::text <> '' AND e.sender_id = @person::text))
          AND (e.msg_id = q.message #>> '{quote,msg_id}'
            OR (q.message #>> '{quote,text}' <> '' AND strpos(e.content, q.message #>> '{quote,text}') > 0))));

-- name: QuoteErase :exec
-- QuoteErase wipes what a message quotes, and keeps its own words.
UPDATE dingtalk_session_events q SET
    content = @content::text, shown = NULL, shown_tokens = NULL, blob_id = NULL, terms = NULL,
    message = q.message || jsonb_build_object('text', @content::text, 'quote', jsonb_build_object('text', @erased::text))
WHERE q.session_key = @session_key AND q.id = @id;

-- name: OutboxUnname :exec
-- OutboxUnname takes a person from replies: all but the place from those that were settled, the mention from those to come.
UPDATE outbox o SET target = CASE
    WHEN o.state IN ('sent', 'failed') THEN o.target - 'webhook' - 'webhook_expires' - 'staff_id' - 'mentions'
    ELSE jsonb_set(o.target - 'staff_id', '{mentions}', coalesce((
        SELECT jsonb_agg(t.mention) FROM jsonb_array_elements(o.target -> 'mentions') AS t (mention)
        WHERE t.mention ->> 'staff_id' IS DISTINCT FROM @person::text
          AND NOT (coalesce(t.mention ->> 'staff_id', '') = '' AND t.mention ->> 'nick' = ANY(@nicks::text[]))), '[]'))
    END
WHERE o.session_key = @session_key AND (o.target ->> 'staff_id' = @person::text OR EXISTS (
    SELECT FROM jsonb_array_elements(coalesce(o.target -> 'mentions', '[]')) AS t (mention)
    WHERE t.mention ->> 'staff_id' = @person::text
       OR (coalesce(t.mention ->> 'staff_id', '') = '' AND t.mention ->> 'nick' = ANY(@nicks::text[]))));

-- name: ToolRunsOf :many
SELECT r.event_id, r.call_id, r.arguments, r.result,
    EXISTS (SELECT FROM dingtalk_session_events e
        WHERE e.session_key = @session_key AND e.sender_id = @person::text AND e.state = 'pending' AND e.attempts > 0)::boolean AS theirs
FROM tool_runs r WHERE r.session_key = @session_key;

-- name: ToolRunErase :exec
-- ToolRunErase wipes what a call of a turn that has not committed was told and found. That it ran stays known.
UPDATE tool_runs r SET arguments = '{}', result = CASE WHEN r.finished THEN @erased::text ELSE '' END
WHERE r.session_key = @session_key AND r.event_id = @event_id AND r.call_id = @call_id;

-- name: SessionTextsErase :exec
-- SessionTextsErase wipes reasons and errors that may repeat what a model was shown.
WITH log AS (
    UPDATE compaction_log c SET error = '' WHERE c.session_key = @session_key AND c.error <> ''
), debts AS (
    UPDATE flush_debts d SET reason = '' WHERE d.session_key = @session_key AND d.reason <> ''
), digests AS (
    UPDATE memory_digests g SET error = '' WHERE g.session_key = @session_key AND g.error <> ''
), replies AS (
    UPDATE outbox o SET error = '' WHERE o.session_key = @session_key AND o.error <> '' AND o.state IN ('sent', 'failed')
)
UPDATE dingtalk_sessions s SET compact_error = '' WHERE s.session_key = @session_key AND s.compact_error NOT IN ('', @undone::text);

-- name: SessionKeep :one
-- SessionKeep gives a session that an erasure freed back to the turn that asked for it, at another term.
UPDATE dingtalk_sessions s SET lease_owner = @owner::text, lease_term = 1 + @term::bigint, view_version = s.view_version + 1
WHERE s.session_key = @session_key RETURNING s.lease_term;

-- name: SessionRemake :exec
-- SessionRemake makes a deleted session anew for the turn that asked for its deletion.
INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, lease_owner, lease_term)
VALUES (@session_key, @robot_code, @conversation_id, @conversation_type, @owner::text, @term);

-- name: SessionsFree :exec
-- SessionsFree takes their leases from sessions that may have read one of the memories of a scope that are no more, but
-- from the one that asks. Every replica is told.
WITH freed AS (
    UPDATE dingtalk_sessions s SET lease_owner = NULL, view_version = s.view_version + 1
    WHERE s.lease_owner IS NOT NULL AND s.session_key <> @asking::text
      AND (s.robot_code = ANY(@teams::text[]) OR s.session_key = ANY(@session_keys::text[])
        OR EXISTS (SELECT FROM unnest(@groups::text[]) AS g (id) WHERE s.session_key = g.id OR starts_with(s.session_key, g.id || '/')))
    RETURNING s.session_key
)
SELECT pg_notify('ebb', '|' || freed.session_key) FROM freed;

-- name: MemoryScopes :many
-- MemoryScopes lists where memories can be read.
SELECT DISTINCT m.scope, m.scope_id FROM memories m WHERE m.id = ANY(@ids::bigint[]);

-- name: FlushesForget :exec
-- FlushesForget takes ids from receipts.
UPDATE memory_flushes f SET
    saved = ARRAY(SELECT x FROM unnest(f.saved) AS x WHERE x <> ALL(@ids::bigint[])),
    duplicate = ARRAY(SELECT x FROM unnest(f.duplicate) AS x WHERE x <> ALL(@ids::bigint[])),
    superseded = ARRAY(SELECT x FROM unnest(f.superseded) AS x WHERE x <> ALL(@ids::bigint[]))
WHERE f.saved && @ids::bigint[] OR f.duplicate && @ids::bigint[] OR f.superseded && @ids::bigint[];

-- name: DigestsReopen :exec
-- DigestsReopen has the days told again whose digest is no more, from what is left of them.
UPDATE memory_digests g SET memory_id = NULL, done = false, attempts = 0, error = '', updated_at = now()
WHERE g.memory_id = ANY(@ids::bigint[]);

-- name: EventsHashes :many
-- EventsHashes lists the hashes that vectors of events are kept by.
SELECT DISTINCT sha256(convert_to(e.content, 'UTF8'))::bytea AS hash FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq = ANY(@seqs::bigint[]) AND e.content NOT IN ('', @erased::text);

-- name: FlushOfMemory :one
SELECT f.id, f.trigger, f.model, f.from_seq, f.through_seq, f.created_at FROM memory_flushes f
WHERE f.session_key = @session_key AND (@memory_id::bigint = ANY(f.saved) OR @memory_id::bigint = ANY(f.duplicate))
ORDER BY f.id LIMIT 1;

-- name: MemorySource :one
-- MemorySource is where a memory was said.
SELECT m.scope, m.kind, m.source_session, m.start_seq, m.end_seq, m.said_by, m.content, m.created_at FROM memories m WHERE m.id = @id;

-- name: TurnAt :one
-- TurnAt is the place of the last message before an instant, 0 for none.
SELECT coalesce(max(e.seq), 0)::bigint AS seq FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.role = 'user' AND e.seq IS NOT NULL AND e.created_at <= @at::timestamptz;

-- name: WaitingOf :many
-- WaitingOf reads a person's messages that have no place in the view.
SELECT e.content FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.sender_id = @person::text AND e.role = 'user' AND e.seq IS NULL;
