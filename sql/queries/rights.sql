-- name: MemoriesFind :many
-- MemoriesFind lists memories for people and administrators. An empty parameter disables its filter. asking limits it
-- to an asker: in a private chat to memories about or by the person, wherever that was; in every chat to memories that
-- all its members may read; for an administrator in a group also to facts of its members about themselves. A group
-- never reads a person's own memory from a private chat. Force in a chat is as in MemoriesReadable. With every,
-- superseded and expired ones are included. robot_sessions limits it to one robot, since another robot's person of the
-- same id is someone else.
SELECT m.id, m.scope, m.scope_id, m.kind, m.content, m.subject_id, m.source_session, m.start_seq, m.end_seq,
    m.superseded_by, m.created_at, m.fact_key, m.said_by, m.said_at, m.source_group, m.expires_at, m.last_seen_at, m.seen,
    m.superseded_at, m.promoted_by, m.withheld, count(*) OVER () AS total
FROM memories m
WHERE (@id::bigint = 0 OR m.id = @id::bigint)
  AND m.id > @after_id::bigint
  AND (@in_scope::text = '' OR m.scope = @in_scope::text)
  AND (@in_session::text = '' OR m.source_session = @in_session::text)
  AND (cardinality(@people::text[]) = 0 OR m.subject_id = ANY(@people::text[]) OR m.said_by = ANY(@people::text[])
    OR (m.scope = 'user' AND m.scope_id = ANY(@people::text[])))
  AND starts_with(m.source_session, @robot_sessions::text)
  AND (@every::boolean OR ((m.superseded_by IS NULL OR (@asking::boolean AND m.scope = 'user' AND NOT @private::boolean AND EXISTS (
        SELECT FROM memories n
        WHERE n.scope = 'user' AND n.scope_id = m.scope_id AND n.id = m.superseded_by AND n.source_group <> m.source_group)))
    AND (m.expires_at IS NULL OR m.expires_at > now())))
  AND (NOT @asking::boolean OR (
    (m.scope = 'team' AND m.scope_id = @team_id::text AND (m.source_group <> @group_id::text OR EXISTS (SELECT FROM memories o
        WHERE o.scope = 'group' AND o.scope_id = @group_id::text AND o.superseded_by = m.id)))
    OR (m.scope = 'group' AND m.scope_id = @group_id::text)
    OR (m.scope = 'session' AND m.scope_id = @session_key::text)
    OR (m.scope = 'user' AND m.scope_id = ANY(@asker::text[]) AND (@private::boolean OR m.source_group = @group_id::text))
    OR (@admin::boolean AND NOT @private::boolean AND m.scope = 'user' AND m.source_group = @group_id::text)
    OR (@private::boolean AND (m.subject_id = ANY(@asker::text[]) OR m.said_by = ANY(@asker::text[])))))
ORDER BY CASE WHEN @oldest_first::boolean THEN m.id ELSE -m.id END
LIMIT @max_rows::int OFFSET @skip::int;

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
SELECT c.id FROM (
    SELECT o.id FROM older o
    UNION
    SELECT n.id FROM newer n
) c ORDER BY c.id;

-- name: MemoriesForget :many
-- MemoriesForget deletes memories by their ids.
DELETE FROM memories m WHERE m.id = ANY(@ids::bigint[]) RETURNING m.id, m.content;

-- name: MemoryContents :many
-- MemoryContents reads the texts of memories.
SELECT m.content FROM memories m WHERE m.id = ANY(@ids::bigint[]);

-- name: MemoryPromotable :one
-- MemoryPromotable reads a memory in force of a group.
SELECT m.scope_id, m.kind, m.content, m.fact_key, m.subject_id, m.said_by, m.said_at, m.source_group, m.source_session,
    m.start_seq, m.end_seq, m.turn, m.expires_at
FROM memories m
WHERE m.id = @id AND m.scope = 'group' AND m.superseded_by IS NULL AND (m.expires_at IS NULL OR m.expires_at > now());

-- name: MemoriesPromotedBefore :many
-- MemoriesPromotedBefore lists the team's memories in force among the values that a group's memory corrected.
WITH RECURSIVE older AS (
    SELECT m.scope_id, m.id, m.norm_hash FROM memories m WHERE m.scope = 'group' AND m.scope_id = @group_id::text AND m.id = @id::bigint
    UNION
    SELECT m.scope_id, m.id, m.norm_hash FROM memories m
    JOIN older o ON m.scope = 'group' AND m.scope_id = o.scope_id AND m.superseded_by = o.id
)
SELECT t.id FROM memories t
WHERE t.scope = 'team' AND t.scope_id = @team_id::text AND t.source_group = @group_id::text AND t.superseded_by IS NULL
  AND t.norm_hash IN (SELECT o.norm_hash FROM older o WHERE o.id <> @id::bigint);

-- name: MemoryPromoted :exec
-- MemoryPromoted supersedes a group's memory by one of the team: a new one with the same count and its promoter, or an
-- existing one.
WITH old AS (
    UPDATE memories m SET superseded_by = @promoted::bigint, superseded_at = now()
    WHERE m.scope = 'group' AND m.scope_id = @group_id::text AND m.id = @id::bigint
    RETURNING m.seen, m.last_seen_at
)
UPDATE memories t SET
    seen = CASE WHEN @new::boolean THEN old.seen ELSE t.seen + 1 END,
    last_seen_at = CASE WHEN @new::boolean THEN old.last_seen_at ELSE greatest(t.last_seen_at, old.last_seen_at) END,
    promoted_by = CASE WHEN @new::boolean THEN @promoted_by::text ELSE t.promoted_by END
FROM old WHERE t.scope = 'team' AND t.scope_id = @team_id::text AND t.id = @promoted::bigint;

-- name: PersonMessages :many
-- PersonMessages lists a person's messages of a session after an id, in order of arrival.
SELECT e.session_key, e.id, e.seq, e.content, e.sender_id, e.sender_nick, e.msg_id, e.state, e.message, e.created_at,
    s.title, s.conversation_type
FROM dingtalk_session_events e JOIN dingtalk_sessions s ON s.session_key = e.session_key
WHERE e.session_key = @session_key AND e.id > @after_id::bigint AND e.sender_id = ANY(@people::text[]) AND e.role = 'user' AND e.content <> @erased::text
ORDER BY e.id
LIMIT @max_rows::int;

-- name: MessagesBefore :many
-- MessagesBefore lists a person's messages of a session before a given one, the newest first, with waiting ones and
-- dead letters. The last ones to arrive are read from the end of the log; some more than wanted, since they may have been sent in another order.
SELECT l.session_key, l.id, l.seq, l.content, l.sender_id, l.sender_nick, l.msg_id, l.state, l.message, l.created_at
FROM (
    SELECT e.session_key, e.id, e.seq, e.content, e.sender_id, e.sender_nick, e.msg_id, e.state, e.message, e.created_at, e.sent_at
    FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.sender_id = ANY(@people::text[]) AND e.sender_id <> '' AND e.role = 'user' AND (e.sent_at, e.id) < (
        SELECT a.sent_at, a.id FROM dingtalk_session_events a WHERE a.session_key = @session_key AND a.id = @before_id::bigint)
      AND e.content <> @erased::text
    ORDER BY e.id DESC
    LIMIT 100 + @max_rows::int
) l
ORDER BY l.sent_at DESC, l.id DESC
LIMIT @max_rows::int;

-- name: PersonSessions :many
-- PersonSessions lists the sessions with content of a person: those of messages and quotes, which are given, replies to them, or
-- memories. Each has an index of its own; few replies are open. Sessions where the person spoke come last.
SELECT s.session_key, s.robot_code, s.conversation_id, s.conversation_type, s.title, f.spoke
FROM dingtalk_sessions s JOIN (
    SELECT a.session_key, bool_or(a.spoke)::boolean AS spoke FROM (
        SELECT unnest(@spoken::text[]) AS session_key, true AS spoke
        UNION
        SELECT unnest(@quoted::text[]), false
        UNION
        SELECT o.session_key, false FROM outbox o WHERE o.state IN ('sending', 'waiting') AND o.target ->> 'staff_id' = ANY(@people::text[])
        UNION
        SELECT d.session_key, false FROM outbox d
        WHERE d.state IN ('sent', 'failed') AND d.target ->> 'staff_id' = ANY(@people::text[]) AND d.target ->> 'staff_id' <> ''
        UNION
        SELECT m.source_session, false FROM memories m WHERE m.subject_id = ANY(@people::text[]) AND m.subject_id <> ''
        UNION
        SELECT m.source_session, false FROM memories m WHERE m.said_by = ANY(@people::text[]) AND m.said_by <> ''
        UNION
        SELECT m.source_session, false FROM memories m WHERE m.scope = 'user' AND m.scope_id = ANY(@people::text[])
    ) a GROUP BY a.session_key
) f ON f.session_key = s.session_key
WHERE @robot::text = '' OR s.robot_code = @robot::text
ORDER BY f.spoke, s.session_key;

-- name: LogWalk :many
-- LogWalk reads a session's log for an erasure, in the order of the view.
SELECT e.id, e.seq::bigint AS seq, e.turn, e.role, e.sender_id, e.sender_nick, e.content, coalesce(e.tool_calls::text, '')::text AS calls, e.created_at
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq > @after_seq::bigint
ORDER BY e.seq
LIMIT @max_rows::int;

-- name: MemoriesDrawn :many
-- MemoriesDrawn lists the memories from a session.
SELECT m.id, m.kind, m.content, m.subject_id, m.said_by, (m.scope = 'user' AND m.scope_id = ANY(@people::text[]))::boolean AS theirs,
    m.scope, m.start_seq, m.end_seq, m.turn, m.created_at
FROM memories m WHERE m.source_session = @session_key;

-- name: MemoriesOfPerson :many
-- MemoriesOfPerson lists the memories about or by a person, superseded ones too. A key prefix limits it to one robot,
-- since another robot's person of the same id is someone else. The team's come first, since most conversations may read
-- them. since is the time of the message.
SELECT m.id, m.kind, m.content, least(m.said_at, m.created_at)::timestamptz AS since, m.scope, m.source_session FROM (
    SELECT a.id, a.scope, a.kind, a.content, a.said_at, a.created_at, a.source_session FROM memories a
    WHERE a.subject_id = ANY(@people::text[]) AND a.subject_id <> ''
    UNION
    SELECT b.id, b.scope, b.kind, b.content, b.said_at, b.created_at, b.source_session FROM memories b
    WHERE b.said_by = ANY(@people::text[]) AND b.said_by <> ''
    UNION
    SELECT c.id, c.scope, c.kind, c.content, c.said_at, c.created_at, c.source_session FROM memories c
    WHERE c.scope = 'user' AND c.scope_id = ANY(@people::text[])
) m
WHERE starts_with(m.source_session, @robot_sessions::text)
ORDER BY (m.scope = 'team') DESC, m.id DESC;

-- name: MemoriesUnpromote :exec
-- MemoriesUnpromote takes a person's name from memories of others that the person promoted.
UPDATE memories m SET promoted_by = ''
WHERE m.promoted_by = ANY(@people::text[]) AND m.promoted_by <> '' AND starts_with(m.source_session, @robot_sessions::text);

-- name: SchedulesForget :exec
-- SchedulesForget deletes the schedules that a person set, or those in the sessions of a group.
DELETE FROM schedules t
WHERE t.created_by = ANY(@people::text[]) AND t.created_by <> '' AND starts_with(t.session_key, @robot_sessions::text)
  AND (@group_key::text = '' OR t.session_key = @group_key::text OR starts_with(t.session_key, @group_key::text || '/'));

-- name: FilesForget :many
-- FilesForget deletes the kept files that a person sent, and those that the person kept and whose sender is not known.
DELETE FROM files f
WHERE (f.sent_by = ANY(@people::text[]) AND f.sent_by <> '' OR f.sent_by = '' AND f.kept_by = ANY(@people::text[]) AND f.kept_by <> '')
  AND starts_with(f.session_key, @robot_sessions::text)
  AND (@group_key::text = '' OR f.session_key = @group_key::text OR starts_with(f.session_key, @group_key::text || '/'))
RETURNING f.session_key;

-- name: FilesUnname :exec
-- FilesUnname takes a person's name from the kept files of others.
UPDATE files f SET kept_by = ''
WHERE f.kept_by = ANY(@people::text[]) AND f.kept_by <> '' AND starts_with(f.session_key, @robot_sessions::text)
  AND (@group_key::text = '' OR f.session_key = @group_key::text OR starts_with(f.session_key, @group_key::text || '/'));

-- name: ApprovalsForget :exec
-- ApprovalsForget wipes the calls that a person asked for, and takes the person's name from decisions on those of others.
UPDATE approvals a SET
    arguments = CASE WHEN a.asked_by = ANY(@people::text[]) THEN '' ELSE a.arguments END,
    decided_at = CASE WHEN a.asked_by = ANY(@people::text[]) AND a.decided_at IS NULL THEN @at::timestamptz ELSE a.decided_at END,
    state = CASE WHEN a.asked_by = ANY(@people::text[]) AND a.state = 'waiting' THEN 'expired' ELSE a.state END,
    webhook = CASE WHEN a.asked_by = ANY(@people::text[]) THEN '' ELSE a.webhook END,
    asked_by = CASE WHEN a.asked_by = ANY(@people::text[]) THEN '' ELSE a.asked_by END,
    decided_by = CASE WHEN a.decided_by = ANY(@people::text[]) THEN '' ELSE a.decided_by END
WHERE (a.asked_by = ANY(@people::text[]) AND a.asked_by <> '' OR a.decided_by = ANY(@people::text[]) AND a.decided_by <> '')
  AND starts_with(a.session_key, @robot_sessions::text)
  AND (@group_key::text = '' OR a.session_key = @group_key::text OR starts_with(a.session_key, @group_key::text || '/'));

-- name: DecidedFor :many
-- DecidedFor lists the messages that decided on calls of turns which answered a person's messages, or one message. Their own turns made the
-- calls, and may have asked for more.
WITH RECURSIVE decided AS (
    SELECT a.decided_event::bigint AS id FROM approvals a
    JOIN dingtalk_session_events f ON f.session_key = a.session_key AND f.id = a.turn_event_id
    JOIN dingtalk_session_events e ON e.session_key = a.session_key AND e.role = 'user' AND e.turn = f.turn
        AND e.seq BETWEEN f.seq - 100 AND f.seq + 100 -- a turn takes at most 100 messages, one behind the other
    WHERE a.session_key = @session_key AND a.decided_event IS NOT NULL
      AND (e.sender_id = ANY(@people::text[]) AND e.sender_id <> '' OR e.id = @event::bigint)
    UNION
    SELECT n.decided_event::bigint FROM decided d
    JOIN approvals n ON n.session_key = @session_key AND n.turn_event_id = d.id AND n.decided_event IS NOT NULL
)
SELECT d.id FROM decided d;

-- name: PersonWaiting :execrows
-- PersonWaiting wipes a person's messages without a place in the view, waiting ones and dead letters, which then get no
-- answer. The asking message and later ones stay, but for those of schedules, which were all set before.
UPDATE dingtalk_session_events e SET
    state = 'dead', content = @erased::text, tokens = @tokens::int, shown = NULL, shown_tokens = NULL, blob_id = NULL
WHERE e.session_key = @session_key AND (e.state = 'pending' OR e.state = 'dead') AND e.sender_id = ANY(@people::text[])
  AND (@asked::bigint = 0 OR starts_with(e.msg_id, 'schedule:') OR (e.sent_at, e.id) < (
    SELECT a.sent_at, a.id FROM dingtalk_session_events a WHERE a.session_key = @session_key AND a.id = @asked::bigint)) AND e.content <> @erased::text;

-- name: PersonUnname :exec
-- PersonUnname removes the name from a person's messages, and all delivery data but place and time. The rows then only
-- say that someone wrote. A cluster takes no function that builds objects from columns.
UPDATE dingtalk_session_events e SET
    sender_id = '', sender_nick = '', candidate = false,
    message = jsonb_set(jsonb_set(jsonb_set(jsonb_set(jsonb_set(jsonb_set('{}',
        '{organization}', coalesce(e.message -> 'organization', 'null')), '{kind}', coalesce(e.message -> 'kind', 'null')), '{robot_code}', coalesce(e.message -> 'robot_code', 'null')),
        '{conversation_id}', coalesce(e.message -> 'conversation_id', 'null')), '{conversation_type}', coalesce(e.message -> 'conversation_type', 'null')),
        '{sent_at}', coalesce(e.message -> 'sent_at', 'null'))
WHERE e.session_key = @session_key AND e.sender_id = ANY(@people::text[])
  AND (@asked::bigint = 0 OR starts_with(e.msg_id, 'schedule:') OR (e.sent_at, e.id) < (
    SELECT a.sent_at, a.id FROM dingtalk_session_events a WHERE a.session_key = @session_key AND a.id = @asked::bigint));

-- name: MentionsUnname :exec
-- MentionsUnname removes a person from the mentions of others' messages, and of the quotes in them.
UPDATE dingtalk_session_events e SET
    message = jsonb_set(jsonb_set(e.message, '{quote,mentioned}', coalesce((e.message #> '{quote,mentioned}') - @people::text[], '[]'), false),
        '{mentioned}', coalesce((e.message -> 'mentioned') - @people::text[], '[]'), false)
WHERE e.session_key = @session_key
  AND (e.message -> 'mentioned' IS NOT NULL AND jsonb_exists_any(e.message -> 'mentioned', @people::text[])
    OR e.message #> '{quote,mentioned}' IS NOT NULL AND jsonb_exists_any(e.message #> '{quote,mentioned}', @people::text[]));

-- name: AskingMessage :one
-- AskingMessage is what AskingUnname stores in place of the asking message. Its reply address stays until it is answered, since a
-- repeated turn needs it.
SELECT jsonb_strip_nulls(jsonb_build_object('kind', 'text', 'outcome', @outcome::text,
    'robot_code', e.message -> 'robot_code', 'conversation_id', e.message -> 'conversation_id',
    'conversation_type', e.message -> 'conversation_type', 'sent_at', e.message -> 'sent_at',
    'webhook', e.message -> 'webhook', 'webhook_expires', e.message -> 'webhook_expires',
    'staff_id', CASE WHEN e.message ->> 'conversation_type' = '1' THEN
        CASE WHEN e.message -> 'is_staff' IS NULL THEN e.message -> 'staff_id' ELSE to_jsonb(e.sender_id) END END))::jsonb AS message
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.id = @asked AND e.state = 'pending';

-- name: AskingUnname :exec
-- AskingUnname does the same to the asking message, which holds only the request.
UPDATE dingtalk_session_events e SET
    content = @content::text, sender_id = '', sender_nick = '', candidate = false, message = @message::jsonb
WHERE e.session_key = @session_key AND e.id = @asked AND e.state = 'pending';

-- name: AskingMark :exec
-- AskingMark replaces the text of the asking message. A turn that is repeated after the erasure finds the outcome.
UPDATE dingtalk_session_events e SET
    content = @content::text,
    message = (e.message - 'quote' - 'attachments') || jsonb_build_object('outcome', @outcome::text)
WHERE e.session_key = @session_key AND e.id = @asked AND e.state = 'pending';

-- name: QuotesOf :many
-- QuotesOf lists the messages that quote events, by the quoted message or its words, or that quote a person, when one
-- is given: by id, or by nick for a quote without a known id. A quote of someone else never counts. A quote of fewer
-- than four characters must be the whole message, since many people write those. Names can be borrowed. So a quote
-- without an id is another's who goes by its nick, if they said its words or if the erased speaker never used the nick.
WITH said AS MATERIALIZED (
    SELECT e.id, e.msg_id, e.sender_id, e.content FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.seq = ANY(@seqs::bigint[])
    UNION
    SELECT e.id, e.msg_id, e.sender_id, e.content FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.id = ANY(@aside::bigint[])
    UNION
    SELECT e.id, e.msg_id, e.sender_id, e.content FROM dingtalk_session_events e
    WHERE cardinality(@people::text[]) > 0 AND e.session_key = @session_key AND e.sender_id = ANY(@people::text[]) AND e.sender_id <> ''
), quotes AS MATERIALIZED (
    SELECT q.id, q.content, q.message #>> '{quote,text}' AS quoted,
        coalesce(q.message #>> '{quote,shown}', q.message #>> '{quote,text}') AS shown, q.message #>> '{quote,msg_id}' AS of_message,
        q.message #>> '{quote,nick}' AS nick, coalesce(q.message #>> '{quote,sender_id}', '') AS sender,
        coalesce(q.message #>> '{quote,sender_id}', '') = '' OR starts_with(q.message #>> '{quote,sender_id}', '$:') AS unknown
    FROM dingtalk_session_events q
    WHERE q.session_key = @session_key AND q.message -> 'quote' IS NOT NULL
), named AS MATERIALIZED (
    SELECT p.person, p.nick FROM people p WHERE p.session_key = @session_key AND p.spoke
    UNION
    SELECT e.sender_id, e.sender_nick FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND (e.state = 'pending' OR e.state = 'dead') AND e.sender_id <> ''
)
SELECT q.id, q.content, coalesce(q.shown, '')::text AS quoted FROM quotes q
WHERE coalesce(q.quoted, '') <> @erased::text AND (
    (cardinality(@people::text[]) > 0 AND (q.sender = ANY(@people::text[]) OR (q.unknown AND q.nick = ANY(@nicks::text[]) AND NOT EXISTS (
        SELECT FROM named n JOIN dingtalk_session_events o ON o.session_key = @session_key AND o.sender_id = n.person AND o.sender_nick = n.nick
        WHERE n.nick = q.nick AND n.person <> ALL(@people::text[]) AND q.quoted <> '' AND strpos(o.content, q.quoted) > 0))))
    OR EXISTS (
        SELECT FROM said WHERE said.msg_id = q.of_message
        OR (q.quoted <> '' AND (q.unknown OR said.sender_id IN ('', q.sender))
            AND (said.content = q.quoted OR (char_length(q.quoted) >= 4 AND strpos(said.content, q.quoted) > 0))
            AND NOT (q.unknown AND said.sender_id <> '' AND EXISTS (
                SELECT FROM named n
                WHERE n.nick = q.nick AND n.person <> said.sender_id AND (
                    NOT EXISTS (SELECT FROM named h WHERE h.nick = q.nick AND h.person = said.sender_id)
                    OR EXISTS (SELECT FROM dingtalk_session_events o
                        WHERE o.session_key = @session_key AND o.sender_id = n.person AND o.sender_nick = n.nick AND strpos(o.content, q.quoted) > 0)))))));

-- name: QuoteErase :one
-- QuoteErase wipes a message's quote with its files, and keeps its own words. It returns the message's place, 0 for one that has none.
UPDATE dingtalk_session_events q SET
    content = @content::text, shown = NULL, shown_tokens = NULL, blob_id = NULL,
    message = jsonb_set(jsonb_set(q.message, '{quote}', jsonb_build_object('text', @erased::text)), '{attachments}', coalesce((
        SELECT jsonb_agg(t.one ORDER BY t.place) FROM jsonb_array_elements(q.message -> 'attachments') WITH ORDINALITY AS t (one, place)
        WHERE (t.one -> 'quoted')::boolean IS NOT TRUE), '[]'), false)
WHERE q.session_key = @session_key AND q.id = @id
RETURNING coalesce(q.seq, 0)::bigint AS seq;

-- name: OutboxUnname :exec
-- OutboxUnname removes a person from replies: all but the place from settled ones, the mention from open ones.
UPDATE outbox o SET target = CASE
    WHEN o.state IN ('sent', 'failed') THEN o.target - 'webhook' - 'webhook_expires' - 'staff_id' - 'mentions'
    ELSE jsonb_set(o.target - 'staff_id', '{mentions}', coalesce((
        SELECT jsonb_agg(t.mention) FROM jsonb_array_elements(o.target -> 'mentions') AS t (mention)
        WHERE coalesce(t.mention ->> 'staff_id', '') <> ALL(@people::text[])
          AND NOT (coalesce(t.mention ->> 'staff_id', '') = '' AND t.mention ->> 'nick' = ANY(@nicks::text[]))), '[]'))
    END
WHERE o.session_key = @session_key AND (o.target ->> 'staff_id' = ANY(@people::text[]) OR EXISTS (
    SELECT FROM jsonb_array_elements(coalesce(o.target -> 'mentions', '[]')) AS t (mention)
    WHERE t.mention ->> 'staff_id' = ANY(@people::text[])
       OR (coalesce(t.mention ->> 'staff_id', '') = '' AND t.mention ->> 'nick' = ANY(@nicks::text[]))));

-- name: ToolRunsOf :many
-- ToolRunsOf lists the calls of uncommitted turns. theirs: the turn has a message of the people, or the call was approved for them.
SELECT r.event_id, r.call_id, r.arguments, r.result,
    (EXISTS (SELECT FROM approvals a
        WHERE a.session_key = @session_key AND a.decided_event = r.event_id AND (a.asked_by = ANY(@people::text[]) AND a.asked_by <> '' OR a.arguments = '')
          AND (r.call_id = 'approved-' || a.id::text OR starts_with(r.call_id, 'approved-' || a.id::text || '+')))
    OR EXISTS (SELECT FROM dingtalk_session_events e
        WHERE e.session_key = @session_key AND e.sender_id = ANY(@people::text[]) AND e.state = 'pending'
            AND (e.attempts > 0 OR e.attempt_term IS NOT NULL)))::boolean AS theirs
FROM tool_runs r WHERE r.session_key = @session_key;

-- name: ToolRunErase :exec
-- ToolRunErase wipes the input and the result of a call in an uncommitted turn. The fact that it ran stays.
UPDATE tool_runs r SET arguments = '{}', result = CASE WHEN r.finished THEN @erased::text ELSE '' END
WHERE r.session_key = @session_key AND r.event_id = @event_id AND r.call_id = @call_id;

-- name: SessionTextsErase :exec
-- SessionTextsErase wipes reasons and errors that may repeat text shown to a model, and the focus of a requested compaction.
WITH log AS (
    UPDATE compaction_log c SET error = '' WHERE c.session_key = @session_key AND c.error <> ''
), debts AS (
    UPDATE flush_debts d SET reason = '' WHERE d.session_key = @session_key AND d.reason <> ''
), digests AS (
    UPDATE memory_digests g SET error = '' WHERE g.session_key = @session_key AND g.error <> ''
), replies AS (
    UPDATE outbox o SET error = '' WHERE o.session_key = @session_key AND o.error <> '' AND o.state IN ('sent', 'failed')
), requests AS (
    UPDATE compaction_requests q SET focus = '' WHERE q.session_key = @session_key AND q.focus <> ''
)
UPDATE dingtalk_sessions s SET compact_error = '' WHERE s.session_key = @session_key AND s.compact_error NOT IN ('', @undone::text);

-- name: SessionKeep :one
-- SessionKeep gives a session, whose term an erasure ended, to the asking turn at another term.
UPDATE dingtalk_sessions s SET lease_owner = @owner::text, lease_term = 1 + @term::bigint, view_version = s.view_version + 1
WHERE s.session_key = @session_key RETURNING s.lease_term;

-- name: SessionRemake :exec
-- SessionRemake creates a deleted session again for the turn that asked for its deletion.
INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, lease_owner, lease_term, last_seq)
VALUES (@session_key, @robot_code, @conversation_id, @conversation_type, @owner::text, @term, @last_seq);

-- name: SessionsReadScope :many
-- SessionsReadScope lists, to be locked, the leased sessions that may have read a memory of a scope, except the asking one. People's
-- facts about themselves are read in their private chats, and in the source group.
SELECT h.session_key FROM dingtalk_sessions h
WHERE h.lease_owner IS NOT NULL AND h.session_key <> @asking::text
  AND (h.robot_code = ANY(@teams::text[]) OR h.session_key = ANY(@session_keys::text[])
    OR EXISTS (SELECT FROM unnest(@groups::text[]) AS g (id) WHERE h.session_key = g.id OR starts_with(h.session_key, g.id || '/'))
    OR h.conversation_type = '1' AND (
        EXISTS (SELECT FROM people u WHERE u.session_key = h.session_key AND u.person = ANY(@users::text[]) AND u.spoke)
        OR EXISTS (SELECT FROM dingtalk_session_events e
            WHERE e.session_key = h.session_key AND e.state = 'pending' AND e.sender_id = ANY(@users::text[]))))
ORDER BY h.session_key;

-- name: SessionsWork :batchone
-- SessionsWork reads the work of a locked session: an open turn, open upkeep, whether their replica lives, and whether messages
-- or replies wait.
SELECT h.session_key, h.lease_term, h.cut_turns, h.cut_upkeep,
    (h.lease_owner IS NOT NULL AND EXISTS (SELECT FROM dingtalk_session_events e
        WHERE e.session_key = @session_key AND e.state = 'pending' AND e.attempt_term = h.lease_term))::boolean AS turn,
    (h.lease_owner IS NOT NULL AND h.upkeep_term = h.lease_term AND h.upkeep_until IS NOT NULL AND h.upkeep_until > now())::boolean AS upkeep,
    coalesce(h.lease_owner = ANY (ARRAY(
        SELECT r.id FROM replicas r WHERE r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8)), false)::boolean AS alive,
    EXISTS (SELECT FROM dingtalk_session_events e WHERE e.session_key = @session_key AND e.state = 'pending') AS messages,
    EXISTS (SELECT FROM outbox o WHERE o.session_key = @session_key AND o.state IN ('sending', 'waiting')) AS replies
FROM dingtalk_sessions h
WHERE h.session_key = @session_key;

-- name: SessionsCut :batchexec
-- SessionsCut ends the term of a session's lease: its owner must not write after reading erased words. The owner stays, so
-- that its stop and its upkeep still find the session. It counts an open turn and open upkeep as cut.
UPDATE dingtalk_sessions s SET lease_term = s.lease_term + 1, view_version = s.view_version + 1,
    cut_turns = s.cut_turns + (@turn::boolean)::int, cut_upkeep = s.cut_upkeep + (@upkeep::boolean)::int
WHERE s.session_key = @session_key;

-- name: TurnsUnmark :batchexec
-- TurnsUnmark removes the marks of a session's turns: without them no turn of an earlier term commits, even if the row is deleted.
UPDATE dingtalk_session_events e SET attempt_term = NULL
WHERE e.session_key = @session_key AND e.state = 'pending' AND e.attempt_term IS NOT NULL;

-- name: MemoryScopes :many
-- MemoryScopes lists the scopes of memories.
SELECT DISTINCT m.scope, m.scope_id, m.source_group, m.source_session FROM memories m WHERE m.id = ANY(@ids::bigint[]);

-- name: FlushesForget :exec
-- FlushesForget removes ids from receipts of some sessions.
UPDATE memory_flushes f SET
    saved = ARRAY(SELECT x FROM unnest(f.saved) AS x WHERE x <> ALL(@ids::bigint[])),
    duplicate = ARRAY(SELECT x FROM unnest(f.duplicate) AS x WHERE x <> ALL(@ids::bigint[])),
    superseded = ARRAY(SELECT x FROM unnest(f.superseded) AS x WHERE x <> ALL(@ids::bigint[]))
WHERE f.session_key = ANY(@session_keys::text[])
  AND (f.saved && @ids::bigint[] OR f.duplicate && @ids::bigint[] OR f.superseded && @ids::bigint[]);

-- name: DigestsReopen :exec
-- DigestsReopen queues the days of deleted digests to be summarized again from the remaining log.
UPDATE memory_digests g SET memory_id = NULL, done = false, attempts = 0, error = '', updated_at = now()
WHERE g.memory_id = ANY(@ids::bigint[]);

-- name: EventsHashes :many
-- EventsHashes lists the hashes of events' vectors.
SELECT DISTINCT sha256(convert_to(e.content, 'UTF8'))::bytea AS hash FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq = ANY(@seqs::bigint[]) AND e.content NOT IN ('', @erased::text);

-- name: FlushOfMemory :one
SELECT f.id, f.trigger, f.model, f.from_seq, f.through_seq, f.created_at FROM memory_flushes f
WHERE f.session_key = @session_key AND (@memory_id::bigint = ANY(f.saved) OR @memory_id::bigint = ANY(f.duplicate))
ORDER BY f.id LIMIT 1;

-- name: MemorySource :one
-- MemorySource is the source of a memory.
SELECT m.id, m.scope, m.scope_id, m.kind, m.source_session, m.start_seq, m.end_seq, m.turn, m.said_by, m.content, m.created_at,
    m.consolidated
FROM memories m WHERE m.id = @id;

-- name: MemoriesBeside :many
-- MemoriesBeside lists the other facts from a session, without digests.
SELECT m.id, m.scope, m.scope_id, m.kind, m.source_session, m.start_seq, m.end_seq, m.turn, m.said_by, m.content, m.created_at,
    m.consolidated
FROM memories m WHERE m.source_session = @session_key AND m.kind <> 'digest' AND m.id <> ALL(@ids::bigint[]);

-- name: MessageSaid :one
-- MessageSaid reads a person's message; seq is 0 for one without a place in the view.
SELECT coalesce(e.seq, 0)::bigint AS seq, e.sender_id, e.content FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.id = @id AND e.role = 'user' AND e.content <> @erased::text;

-- name: EventsSaid :many
-- EventsSaid reads people's messages in a range of a log, also those that are erased.
SELECT e.sender_id, e.content FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq BETWEEN @start_seq::bigint AND @end_seq::bigint AND e.role = 'user'
ORDER BY e.seq;

-- name: SessionsTelling :many
-- SessionsTelling lists sessions after a key where a memory may be read and where the bot, or one of its authors,
-- repeated one of some lower-case pieces of text.
SELECT s.session_key FROM dingtalk_sessions s
WHERE s.session_key > @after_key::text AND s.session_key <> ALL(@besides::text[])
  AND (s.robot_code = ANY(@teams::text[]) OR s.session_key = ANY(@session_keys::text[])
    OR EXISTS (SELECT FROM unnest(@groups::text[]) AS g (id) WHERE s.session_key = g.id OR starts_with(s.session_key, g.id || '/'))
    OR EXISTS (SELECT FROM people u WHERE u.session_key = s.session_key AND u.person = ANY(@users::text[]) AND u.spoke))
  AND EXISTS (
    SELECT FROM dingtalk_session_events e
    WHERE e.session_key = s.session_key AND (e.role <> 'user' OR e.sender_id = ANY(@speakers::text[]))
      AND EXISTS (SELECT FROM unnest(@pieces::text[]) AS p (piece) WHERE strpos(lower(concat(e.content, e.tool_calls::text)), p.piece) > 0))
ORDER BY s.session_key
LIMIT @max_rows::int;

-- name: SessionMessages :one
-- SessionMessages counts the messages of people and the bot in a session to be deleted.
SELECT count(*) FILTER (WHERE e.role = 'user') AS messages, count(*) FILTER (WHERE e.role = 'assistant') AS answers
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.role IN ('user', 'assistant') AND e.content NOT IN ('', @erased::text)
  AND (@asked::bigint = 0 OR e.id <> ALL(@answers::bigint[]) AND (e.role <> 'user' OR starts_with(e.msg_id, 'schedule:') OR (e.sent_at, e.id) < (
    SELECT a.sent_at, a.id FROM dingtalk_session_events a WHERE a.session_key = @session_key AND a.id = @asked::bigint)));

-- name: SaidBy :many
-- SaidBy reads a person's messages in a session, also those without a place in the view.
SELECT e.content, e.created_at, (e.seq IS NULL)::boolean AS aside FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.sender_id = ANY(@people::text[]) AND e.sender_id <> '' AND e.role = 'user'
  AND e.content <> @erased::text AND (@asked::bigint = 0 OR starts_with(e.msg_id, 'schedule:') OR (e.sent_at, e.id) < (
    SELECT a.sent_at, a.id FROM dingtalk_session_events a WHERE a.session_key = @session_key AND a.id = @asked::bigint));

-- name: PersonErasures :one
-- PersonErasures counts the erasures of a day of a person with some ids.
SELECT coalesce(max(p.times), 0)::int AS times FROM person_erasures p
WHERE p.person = ANY(@people::bytea[]) AND p.day = @day::date;

-- name: PersonErasureCount :exec
-- PersonErasureCount counts one more for each id of a person.
INSERT INTO person_erasures AS c (person, day, times)
SELECT u.person, @day::date, 1 + coalesce((
    SELECT max(p.times) FROM person_erasures p
    WHERE p.person = ANY(@people::bytea[]) AND p.day = @day::date), 0)
FROM (SELECT DISTINCT unnest(@people::bytea[]) AS person) u
ON CONFLICT (person, day) DO UPDATE SET times = greatest(c.times + 1, EXCLUDED.times);

-- name: PersonErasuresTrim :exec
DELETE FROM person_erasures p WHERE p.day < @day::date;

-- name: PersonIDs :many
-- PersonIDs lists all ids of some people: the given ones, the staff ids of these, and the encrypted ids of the staff
-- ids. An encrypted id that was seen with several staff ids belongs to none of them.
WITH staff AS (
    SELECT g.id FROM unnest(@people::text[]) AS g (id)
    UNION
    SELECT min(k.staff_id) FROM sender_ids k
    WHERE k.sender_id = ANY(@people::text[]) AND (@robot::text = '' OR k.robot_code = @robot::text)
    GROUP BY k.sender_id, k.robot_code HAVING count(*) = 1
)
SELECT staff.id::text AS id FROM staff
UNION
SELECT k.sender_id FROM staff JOIN sender_ids k ON k.staff_id = staff.id
WHERE (@robot::text = '' OR k.robot_code = @robot::text) AND NOT EXISTS (
    SELECT FROM sender_ids o WHERE o.sender_id = k.sender_id AND o.robot_code = k.robot_code AND o.staff_id <> k.staff_id);

-- name: SenderIDsOver :many
-- SenderIDsOver lists the encrypted ids of each person except the newest. One that had two staff ids stays: without the other it would
-- count as the second person's.
SELECT DISTINCT ranked.sender_id FROM (
    SELECT n.sender_id, n.robot_code, n.staff_id,
        row_number() OVER (PARTITION BY n.robot_code, n.staff_id ORDER BY n.seen_at DESC, n.sender_id) AS place
    FROM sender_ids n
) ranked
WHERE ranked.place > @most::bigint AND NOT EXISTS (
    SELECT FROM sender_ids o WHERE o.sender_id = ranked.sender_id AND o.robot_code = ranked.robot_code AND o.staff_id <> ranked.staff_id);

-- name: SenderIDsTrim :exec
-- SenderIDsTrim deletes those of some encrypted ids that are still not among the newest of their person.
DELETE FROM sender_ids k USING (
    SELECT n.sender_id, n.robot_code, n.staff_id,
        row_number() OVER (PARTITION BY n.robot_code, n.staff_id ORDER BY n.seen_at DESC, n.sender_id) AS place
    FROM sender_ids n
) ranked
WHERE k.sender_id = ranked.sender_id AND k.robot_code = ranked.robot_code AND k.staff_id = ranked.staff_id AND ranked.place > @most::bigint
  AND k.sender_id = ANY(@sender_ids::text[])
  AND NOT EXISTS (
    SELECT FROM sender_ids o WHERE o.sender_id = k.sender_id AND o.robot_code = k.robot_code AND o.staff_id <> k.staff_id);

-- name: SenderIDsForget :exec
-- SenderIDsForget deletes the encrypted ids of a person.
DELETE FROM sender_ids k WHERE k.staff_id = ANY(@people::text[]) AND (@robot::text = '' OR k.robot_code = @robot::text);

-- name: PersonRecords :many
-- PersonRecords lists the rows that name a person besides memories and messages: usage by day and model, encrypted ids,
-- promotions, reminders that the person set, files that they sent or kept, compactions and undos that the person asked for, logins of the console, which belong to
-- no robot, and actions in the console by day: at a robot those on its sessions and on none.
SELECT r.kind, r.at::timestamptz AS at, r.name, r.rows, r.prompt_tokens, r.cached_tokens, r.completion_tokens, r.cost,
    r.due_at, r.spec, r.way FROM (
    SELECT 'usage'::text AS kind, u.day::timestamp AT TIME ZONE 'UTC' AS at, u.model AS name, count(*) AS rows, sum(u.prompt_tokens)::bigint AS prompt_tokens,
        sum(u.cached_tokens)::bigint AS cached_tokens, sum(u.completion_tokens)::bigint AS completion_tokens, sum(u.cost)::float8 AS cost,
        NULL::timestamptz AS due_at, ''::text AS spec, ''::text AS way
    FROM model_usage u
    WHERE u.person = ANY(@people::text[]) AND u.person <> '' AND starts_with(u.session_key, @robot_sessions::text)
    GROUP BY u.day, u.model
    UNION ALL
    SELECT 'id', k.seen_at, k.sender_id, 1, 0, 0, 0, 0, NULL, '', '' FROM sender_ids k
    WHERE k.staff_id = ANY(@people::text[]) AND (@robot::text = '' OR k.robot_code = @robot::text)
    UNION ALL
    SELECT 'promotion', m.created_at, m.content, 1, 0, 0, 0, 0, NULL, '', '' FROM memories m
    WHERE m.promoted_by = ANY(@people::text[]) AND m.promoted_by <> '' AND starts_with(m.source_session, @robot_sessions::text)
    UNION ALL
    SELECT 'schedule', t.created_at, t.text, 1, 0, 0, 0, 0, t.due_at, t.spec, t.kind FROM schedules t
    WHERE t.created_by = ANY(@people::text[]) AND t.created_by <> '' AND starts_with(t.session_key, @robot_sessions::text)
    UNION ALL
    SELECT 'file', f.created_at, f.name, 1, 0, 0, 0, 0, NULL, '', '' FROM files f
    WHERE (f.sent_by = ANY(@people::text[]) AND f.sent_by <> '' OR f.kept_by = ANY(@people::text[]) AND f.kept_by <> '')
      AND starts_with(f.session_key, @robot_sessions::text)
    UNION ALL
    SELECT 'compaction', min(c.created_at), c.trigger, count(*), 0, 0, 0, 0, NULL, '', '' FROM compaction_log c
    WHERE c.requested_by = ANY(@people::text[]) AND c.requested_by <> '' AND starts_with(c.session_key, @robot_sessions::text)
    GROUP BY c.trigger, (c.created_at AT TIME ZONE 'UTC')::date
    UNION ALL
    SELECT 'compaction', q.requested_at, 'manual', 1, 0, 0, 0, 0, NULL, '', '' FROM compaction_requests q
    WHERE q.requested_by = ANY(@people::text[]) AND q.requested_by <> '' AND starts_with(q.session_key, @robot_sessions::text)
    UNION ALL
    SELECT 'login', l.created_at, l.nick, 1, 0, 0, 0, 0, NULL, '', '' FROM console_logins l
    WHERE l.role = 'person' AND l.actor = ANY(@people::text[])
    UNION ALL
    SELECT 'action', min(a.at), a.action, count(*), 0, 0, 0, 0, NULL, '', '' FROM audit a
    WHERE a.actor = ANY(@people::text[]) AND (a.session_key = '' OR starts_with(a.session_key, @robot_sessions::text))
    GROUP BY a.action, (a.at AT TIME ZONE 'UTC')::date
) r
ORDER BY r.kind, r.at, r.name;

-- name: CompactionsUnname :exec
-- CompactionsUnname takes a person's name from the compactions and undos that the person asked for.
WITH requests AS (
    UPDATE compaction_requests q SET requested_by = ''
    WHERE q.requested_by = ANY(@people::text[]) AND q.requested_by <> '' AND starts_with(q.session_key, @robot_sessions::text)
)
UPDATE compaction_log c SET requested_by = ''
WHERE c.requested_by = ANY(@people::text[]) AND c.requested_by <> '' AND starts_with(c.session_key, @robot_sessions::text);

-- name: LoginsForget :exec
-- LoginsForget ends the logins of a person, whose rows have the person's name.
DELETE FROM console_logins l WHERE l.role = 'person' AND l.actor = ANY(@people::text[]);

-- name: AuditOfMembers :many
-- AuditOfMembers lists the sessions of some members that the audit names, at a robot or at all of them: the session of one member has
-- the key of the group and the member's id, as escaped there.
SELECT DISTINCT a.session_key::text AS session_key FROM audit a
WHERE split_part(a.session_key, '/', 3) = ANY(@people::text[]) AND split_part(a.session_key, '/', 3) <> '' AND starts_with(a.session_key, @robot_sessions::text);

-- name: AuditMembers :many
-- AuditMembers lists a page of the sessions of members that the audit names, by key.
SELECT DISTINCT a.session_key FROM audit a
WHERE a.session_key > @after_key::text AND split_part(a.session_key, '/', 3) <> ''
ORDER BY a.session_key LIMIT @max_rows::int;

-- name: SessionsSpoken :many
-- SessionsSpoken lists those of some sessions that have a message with a name.
SELECT p.session_key FROM people p WHERE p.session_key = ANY(@session_keys::text[]) AND p.spoke
UNION
SELECT e.session_key FROM dingtalk_session_events e
WHERE e.session_key = ANY(@session_keys::text[]) AND (e.state = 'pending' OR e.state = 'dead') AND e.sender_id <> '';

-- name: AuditUnname :exec
-- AuditUnname moves the actions on sessions of members to the group, or those on private chats to no conversation of the robot, under
-- the same ids. It replaces the rows, since engines that spread them by session_key refuse to change it.
WITH moved AS (
    DELETE FROM audit a WHERE a.session_key = ANY(@session_keys::text[])
    RETURNING a.session_key, a.id, a.at, a.actor, a.action, a.detail, a.outcome, a.person
)
INSERT INTO audit (session_key, id, at, actor, action, detail, outcome, person) OVERRIDING SYSTEM VALUE
SELECT split_part(m.session_key, '/', 1) || '/' || CASE WHEN @chats::boolean THEN '' ELSE split_part(m.session_key, '/', 2) END,
    m.id, m.at, m.actor, m.action, m.detail, m.outcome, m.person
FROM moved m;

-- name: AuditUnact :exec
-- AuditUnact puts a stand-in for the actor of a person's actions, at a robot those on its sessions and on none.
UPDATE audit a SET actor = @stand_in::text
WHERE a.actor = ANY(@people::text[]) AND (a.session_key = '' OR starts_with(a.session_key, @robot_sessions::text));

-- name: AuditForget :exec
-- AuditForget takes a person's id from the actions that concerned them, at a robot those on its sessions and on none.
UPDATE audit a SET person = ''
WHERE a.person = ANY(@people::text[]) AND a.person <> '' AND (a.session_key = '' OR starts_with(a.session_key, @robot_sessions::text));
