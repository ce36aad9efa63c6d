-- name: TurnOpen :batchone
-- TurnOpen reads the session, the server's day, and the number of pending messages up to one more than a turn takes. No row: the
-- lease is not the current one.
--
-- The begin of a turn is a pipeline of TurnOpen, TurnMark, TurnTail and TurnSummaries. The lock of this one orders it before or after
-- a compaction or an erasure, so that the others see all of it or nothing; other writers of the session do not wait.
--
-- A mark has the term of the lease. A mark of a broken term, or of an earlier one, was left by a dead process: it is counted as an
-- attempt when the next turn begins, and nowhere else. The mark must survive the process, not the server: its commit does not wait for the disk.
SELECT sqlc.embed(s), (now() AT TIME ZONE 'UTC')::date::text AS today,
    (SELECT count(*) FROM (
        SELECT 1 FROM dingtalk_session_events p WHERE p.session_key = @session_key AND p.state = 'pending'
        LIMIT 1 + @max_messages::int) w)::int AS waiting,
    EXISTS (SELECT FROM tool_runs r WHERE r.session_key = @session_key) AS has_runs,
    set_config('synchronous_commit', 'off', true)::text AS synchronous_commit
FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
FOR KEY SHARE OF s;

-- name: TurnMark :batchmany
-- TurnMark marks the oldest pending messages, of max_bytes together except for the first. The oldest are the marked ones, then those
-- that were sent first. It marks none when one of them was counted, or has the mark of a dead process: then TurnMarkAgain does.
UPDATE dingtalk_session_events e SET attempt_term = @term::bigint
FROM dingtalk_sessions s, (
    SELECT o.id, row_number() OVER places AS place, sum(o.bytes) OVER places AS bytes, bool_and(o.plain) OVER () AS plain
    FROM (
        SELECT p.id, p.attempt_term IS NULL AS fresh, p.sent_at, octet_length(p.content) AS bytes,
            p.attempts = 0 AND coalesce(p.attempt_term > h.fallen_term, true) AS plain
        FROM dingtalk_session_events p JOIN dingtalk_sessions h ON h.session_key = p.session_key
        WHERE p.session_key = @session_key AND p.state = 'pending' AND h.session_key = @session_key
        ORDER BY fresh, p.sent_at, p.id LIMIT @max_messages::int) o
    WINDOW places AS (ORDER BY o.fresh, o.sent_at, o.id)) w
WHERE e.session_key = @session_key AND e.id = w.id AND e.state = 'pending' AND w.plain AND (w.place = 1 OR w.bytes <= @max_bytes::int)
  AND s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
RETURNING w.place::int AS place, e.id, e.attempts, e.content, e.sender_id, e.sender_nick, e.msg_id, e.message,
    e.created_at, coalesce(e.admitted, false)::boolean AS admitted, e.withheld;

-- name: TurnWaiting :batchmany
-- TurnWaiting lists the marks of the oldest pending messages, event first.
SELECT p.id, p.attempts, p.attempt_term, p.counted_term, p.width, octet_length(p.content)::int AS bytes
FROM dingtalk_session_events p
WHERE p.session_key = @session_key AND p.state = 'pending'
ORDER BY p.id <> @event::bigint, p.attempt_term IS NULL, p.sent_at, p.id LIMIT 1 + @max_messages::int;

-- name: TurnHold :batchone
-- TurnHold is TurnOpen for marks alone.
SELECT s.lease_term, set_config('synchronous_commit', 'off', true)::text AS synchronous_commit FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
FOR KEY SHARE OF s;

-- name: TurnMarkAgain :batchone
-- TurnMarkAgain replaces a mark that TurnWaiting read. No row: it has changed since, or the lease is not the current one.
UPDATE dingtalk_session_events e SET
    attempts = @attempts, attempt_term = sqlc.narg(attempt_term), counted_term = sqlc.narg(counted_term), width = sqlc.narg(width)
FROM dingtalk_sessions s
WHERE e.session_key = @session_key AND e.id = @id AND e.state = 'pending'
  AND e.attempts = @attempts_before::int AND e.attempt_term IS NOT DISTINCT FROM sqlc.narg(term_before)::bigint
  AND s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
RETURNING @place::int AS place, e.id, e.attempts, e.content, e.sender_id, e.sender_nick, e.msg_id, e.message,
    e.created_at, coalesce(e.admitted, false)::boolean AS admitted, e.withheld;

-- name: TurnTail :batchmany
-- TurnTail reads the events after the summaries, as the view shows them, and in a version of the view those after a place alone. said is
-- the text of a message that is shown in another way.
SELECT e.id, e.seq, e.role, coalesce(e.shown, e.content)::text AS content, e.sender_id, e.sender_nick, e.msg_id,
    e.tool_calls, e.tool_call_id, e.tool_name, coalesce(e.shown_tokens, e.tokens)::int AS tokens, e.is_archived,
    e.message, e.created_at, e.blob_id, e.withheld, (CASE WHEN e.shown IS NOT NULL AND e.message IS NOT NULL THEN e.content ELSE '' END)::text AS said
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq > (
    SELECT greatest(s.compacted_seq, CASE WHEN s.view_version = @view_version::int THEN @after_seq::bigint ELSE 0 END) FROM dingtalk_sessions s
    WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term)
ORDER BY e.seq;

-- name: TurnSummaries :batchmany
SELECT a.* FROM session_summaries a WHERE a.session_key = @session_key AND a.status = 'active' ORDER BY a.start_seq;

-- name: TurnRuns :many
-- TurnRuns lists the calls of earlier attempts at some messages. broken: one of them was in a broken attempt, whose call is stored for the first
-- of its messages. That one may be answered already, since messages of broken attempts are taken apart.
SELECT r.event_id, r.call_id, r.name, r.arguments, r.finished, r.result FROM tool_runs r
WHERE r.session_key = @session_key AND (r.event_id = ANY(@ids::bigint[]) OR @broken::boolean)
ORDER BY r.event_id, r.started_at, r.call_id;

-- name: SuspectSessions :one
-- SuspectSessions counts the sessions with messages that fell with two processes and are not set aside, also those whose second
-- mark no turn counted yet. Each can have one turn in progress.
SELECT count(DISTINCT e.session_key)::int AS n
FROM dingtalk_session_events e JOIN dingtalk_sessions s ON s.session_key = e.session_key
WHERE e.state = 'pending' AND (e.attempts = 2 OR e.attempts = 1 AND (e.attempt_term <= s.fallen_term
    OR e.attempt_term = s.lease_term AND s.lease_owner IS NOT NULL AND s.lease_owner <> ALL (ARRAY(
        SELECT r.id FROM replicas r WHERE r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8))));

-- name: QuotedMessage :one
-- QuotedMessage reads a person's message by its id.
SELECT e.id, e.role, e.content, e.sender_id, e.sender_nick, e.msg_id, e.created_at, e.message, e.withheld FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.msg_id = @msg_id::text;

-- name: QuotedAnswer :many
-- QuotedAnswer lists at most two replies that may have been sent at a time, each with its answer. A reply is sent after
-- its commit and before it is settled; one that surely did not arrive is left out. A notice has no answer. A turn
-- writes its answer and its reply at one time. Settled replies have an index by time, and few are open. Files are left out, and so are
-- replies with keys where the quote has another key.
SELECT coalesce((
    SELECT e.content FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.created_at = o.created_at AND e.seq IS NOT NULL AND e.role = 'assistant'
    ORDER BY e.seq DESC LIMIT 1), '')::text AS content
FROM (
    SELECT d.created_at FROM outbox d
    WHERE d.session_key = @session_key AND d.created_at BETWEEN @oldest AND @latest AND d.settled_at >= @earliest::timestamptz
      AND (d.state = 'sent' OR d.in_flight OR d.resumed OR d.part > 0) AND NOT d.target ? 'file' AND (@keyed::boolean OR d.carriers = '{}')
    UNION ALL
    SELECT w.created_at FROM outbox w
    WHERE w.session_key = @session_key AND w.created_at BETWEEN @oldest AND @latest AND w.state IN ('sending', 'waiting')
      AND (w.in_flight OR w.resumed OR w.part > 0) AND NOT w.target ? 'file' AND (@keyed::boolean OR w.carriers = '{}')
) o
LIMIT 2;

-- name: QuotedCard :one
-- QuotedCard finds the first message that the turn of a card answers, by the key of the card's message.
SELECT c.turn_event_id FROM cards c
WHERE c.session_key = @session_key AND c.carrier = @carrier::text AND c.carrier <> ''
ORDER BY c.created_at DESC LIMIT 1;

-- name: QuotedReply :many
-- QuotedReply lists the replies of a message by its key, each with its answer and the name of its file. A joined message has several.
SELECT coalesce((
    SELECT e.content FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.created_at = o.created_at AND e.seq IS NOT NULL AND e.role = 'assistant'
    ORDER BY e.seq DESC LIMIT 1), '')::text AS content,
    coalesce(o.target -> 'file' ->> 'name', '')::text AS file
FROM outbox o
WHERE o.session_key = @session_key AND o.carriers <> '{}' AND @carrier::text = ANY(o.carriers)
ORDER BY o.id;

-- name: TurnAnswer :one
-- TurnAnswer reads the answer of the turn that took a message. The events of a turn are in a row.
SELECT a.content FROM dingtalk_session_events e JOIN dingtalk_session_events a ON a.session_key = e.session_key
WHERE e.session_key = @session_key AND e.id = @id AND a.session_key = @session_key AND a.role = 'assistant'
  AND a.turn = e.turn AND a.seq BETWEEN e.seq AND e.seq + 1000
ORDER BY a.seq DESC LIMIT 1;

-- name: Requote :execrows
-- Requote replaces a pending message's quote, under the lease: an erasure in between takes the lease.
UPDATE dingtalk_session_events e SET
    content = @content::text, message = jsonb_set(e.message, '{quote}', @quote::jsonb)
WHERE e.session_key = @session_key AND e.id = @id AND e.state = 'pending' AND EXISTS (
    SELECT FROM dingtalk_sessions s
    WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term);

-- name: TurnAbandon :exec
-- TurnAbandon ends a turn that did not commit. It removes marks of the term, and counts an attempt for the messages at
-- fault. It ignores the lease: when the turn was taken for dead meanwhile, that count is reverted.
UPDATE dingtalk_session_events e SET
    attempts = greatest(0, e.attempts + CASE
        WHEN e.attempt_term = @term THEN (e.id = ANY(@blamed::bigint[]))::int ELSE -1 END),
    attempt_term = CASE WHEN e.attempt_term = @term THEN NULL ELSE e.attempt_term END,
    counted_term = CASE WHEN e.attempt_term = @term THEN e.counted_term END
WHERE e.session_key = @session_key AND e.state = 'pending'
  AND (e.attempt_term = @term OR e.counted_term = @term AND NOT e.id = ANY(@blamed::bigint[]));

-- name: TurnSession :batchone
-- TurnSession counts a turn in its session, and locks the session's row. The statements after it find the places of the turn's
-- events before last_seq. No row: the lease is not the current one, or the row was deleted, see SessionsRevive.
--
-- The commit of a turn is a pipeline of this and the statements after it as far as TurnNext: one transaction, one round trip, one flush of
-- the log. The takes of commands that ended the turn and PeopleSee come last. Each is sent only when the turn has something for it.
UPDATE dingtalk_sessions s SET
    last_turn = s.last_turn + 1,
    last_seq = s.last_seq + @events::int,
    total_tokens = CASE WHEN s.view_version = @view_version::int
        THEN @total_tokens::int ELSE least(s.total_tokens::bigint + @appended::int, 2147483647) END,
    observed_tokens = CASE WHEN @observed_tokens::int > 0 AND s.view_version = @view_version::int
        THEN @observed_tokens::int ELSE s.observed_tokens END,
    observed_seq = CASE WHEN @observed_tokens::int > 0 AND s.view_version = @view_version::int
        THEN s.last_seq + @observed_events::int ELSE s.observed_seq END,
    calibration = CASE WHEN @calibration::float8 > 0 THEN @calibration::float8 ELSE s.calibration END,
    prompt_tokens = s.prompt_tokens + @prompt_tokens::bigint,
    cached_tokens = s.cached_tokens + @cached_tokens::bigint,
    completion_tokens = s.completion_tokens + @completion_tokens::bigint,
    model = CASE WHEN @model::text = '' THEN s.model ELSE @model::text END,
    candidates = s.candidates + @marked::int,
    cut_turns = 0,
    last_active_at = now(),
    updated_at = now()
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
RETURNING s.last_seq;

-- name: TurnPin :batchexec
-- TurnPin sets the pinned memory of the view that the turn saw.
UPDATE dingtalk_sessions s SET pinned = @pinned::text, pinned_due = false
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
  AND s.view_version = @view_version::int;

-- name: TurnSuspicion :batchexec
UPDATE dingtalk_sessions s SET suspicion = @suspicion::jsonb
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term;

-- name: TurnRead :batchexec
-- TurnRead locks the memories that a turn read or pins. It fails on one that a running transaction deletes, and does not wait for
-- it: an erasure may wait for the session's row.
SELECT m.id FROM memories m WHERE m.id = ANY(@ids::bigint[]) FOR KEY SHARE NOWAIT;

-- name: TurnReadAll :batchexec
-- TurnReadAll ends the pipeline by a division by zero when one of those memories is deleted: the turn may repeat forgotten content.
SELECT (1 / CASE WHEN count(*) = cardinality(@ids::bigint[]) THEN 1 ELSE 0 END)::int AS whole
FROM memories m WHERE m.id = ANY(@ids::bigint[]);

-- name: TurnTake :batchexec
-- TurnTake gives a message its place: behind is its distance from the last one. The webhook of a message goes with the reply, and is
-- not kept with the message; nor is the staff id of a forgotten person.
UPDATE dingtalk_session_events e SET
    state = 'done',
    turn = s.last_turn,
    seq = s.last_seq - @behind::int,
    tokens = @tokens,
    candidate = @candidate,
    message = (e.message - 'webhook' - 'webhook_expires' - CASE WHEN e.sender_id = '' THEN 'staff_id' ELSE '' END) || @added::jsonb,
    searched = @searched::boolean,
    withheld = nullif(@withheld::text, '')::jsonb
FROM dingtalk_sessions s
WHERE e.session_key = @session_key AND e.id = @id AND e.state = 'pending'
  AND s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term;

-- name: TurnSetAside :batchexec
-- TurnSetAside sets a message aside.
UPDATE dingtalk_session_events e SET
    state = 'dead',
    turn = s.last_turn,
    message = e.message - 'webhook' - 'webhook_expires' - CASE WHEN e.sender_id = '' THEN 'staff_id' ELSE '' END
FROM dingtalk_sessions s
WHERE e.session_key = @session_key AND e.id = @id AND e.state = 'pending'
  AND s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term;

-- name: TurnWhole :batchexec
-- TurnWhole ends the pipeline by a division by zero when a message of the turn was no longer pending. One id at a time: for a list the
-- server would plan each execution, which takes longer than to run it.
SELECT (1 / count(*))::int AS whole
FROM dingtalk_sessions s JOIN dingtalk_session_events e ON e.session_key = s.session_key AND e.turn = s.last_turn
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
  AND e.session_key = @session_key AND e.id = @id;

-- name: TurnAdd :batchexec
-- TurnAdd adds an event of the turn. behind is the distance of its place from the last one.
INSERT INTO dingtalk_session_events
    (session_key, turn, seq, role, content, tool_calls, tool_call_id, tool_name, tokens, searched, withheld)
SELECT s.session_key, s.last_turn, s.last_seq - @behind::int, @role::text, @content::text, nullif(@tool_calls::text, '')::jsonb,
    @tool_call_id::text, @tool_name::text, @tokens::int, @searched::boolean, nullif(@withheld::text, '')::jsonb
FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term;

-- name: TurnReturn :batchexec
-- TurnReturn removes the marks of messages that the turn left.
UPDATE dingtalk_session_events e SET attempt_term = NULL
FROM dingtalk_sessions s
WHERE e.session_key = @session_key AND e.id = ANY(@ids::bigint[]) AND e.state = 'pending' AND e.attempt_term = @term
  AND s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term;

-- name: TurnRunsDelete :batchexec
-- TurnRunsDelete deletes the tool runs of ended messages, once no message of a broken attempt waits: one of them may have wanted the call.
DELETE FROM tool_runs r USING dingtalk_sessions s
WHERE r.session_key = @session_key AND s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
  AND NOT EXISTS (
    SELECT FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.state = 'pending' AND (e.id = r.event_id OR e.attempts > 0 OR e.attempt_term IS NOT NULL));

-- name: TurnUsage :batchexec
-- TurnUsage counts a person's share of the turn.
INSERT INTO model_usage AS u (session_key, day, kind, model, person, turns, prompt_tokens, cached_tokens, completion_tokens, cost)
SELECT s.session_key, (now() AT TIME ZONE 'UTC')::date, 'turn', @model::text, @person::text, @turns::bigint, @prompt_tokens::bigint,
    @cached_tokens::bigint, @completion_tokens::bigint, @cost::float8
FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
ON CONFLICT (session_key, day, kind, model, person) DO UPDATE SET
    turns = u.turns + EXCLUDED.turns, prompt_tokens = u.prompt_tokens + EXCLUDED.prompt_tokens, cached_tokens = u.cached_tokens + EXCLUDED.cached_tokens,
    completion_tokens = u.completion_tokens + EXCLUDED.completion_tokens, cost = u.cost + EXCLUDED.cost;

-- name: TurnReply :batchone
-- TurnReply stores the reply, claimed for its first try or waiting for a claim.
INSERT INTO outbox (session_key, target, body, nonce, state, sender, in_flight, attempts, next_at)
SELECT s.session_key, @target, @body::text, @nonce::text, 'sending', @owner::text, @claimed::boolean, @attempts::int,
    now() + interval '1 second' * @hand_seconds::float8
FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
RETURNING id, created_at;

-- name: TurnFile :batchone
-- TurnFile stores the reply of a file behind that of the text. It waits for a claim. No row: the bytes are deleted.
INSERT INTO outbox (session_key, target, body, nonce, state, sender, in_flight, next_at)
SELECT s.session_key, @target, @body::text, @nonce::text, 'sending', @owner::text, false, now() + interval '1 second' * @hand_seconds::float8
FROM dingtalk_sessions s JOIN sent_files f ON f.session_key = s.session_key AND f.id = @file_id
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
RETURNING id, created_at;

-- name: TurnCard :batchexec
-- TurnCard stores the card of the reply, where it is not known yet.
INSERT INTO cards (session_key, out_track_id, turn_event_id, prepaid)
SELECT s.session_key, @out_track_id::text, @turn_event_id::bigint, false
FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
ON CONFLICT (session_key, out_track_id) DO NOTHING;

-- name: TurnCardPass :batchexec
-- TurnCardPass gives the open reply cards of messages that the turn ended to one that waits on: its answer goes on there.
UPDATE cards c SET turn_event_id = @turn_event_id::bigint
FROM dingtalk_sessions s
WHERE c.session_key = @session_key AND c.turn_event_id = ANY(@ids::bigint[]) AND c.state = 'open' AND c.kind = 'card'
  AND s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term;

-- name: TurnNext :batchexec
-- TurnNext gives the statements after it the next turn: commands that ended a turn are no part of it, since an erasure of their senders leaves
-- the answer to others.
UPDATE dingtalk_sessions s SET last_turn = s.last_turn + 1
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term;

-- name: ToolRunRecord :execrows
-- ToolRunRecord stores a call before it runs and again with its result. No row: the lease is not the current one.
INSERT INTO tool_runs (session_key, event_id, call_id, name, arguments, finished, result)
SELECT held.session_key, @event_id, @call_id, @name, @arguments, @finished, @result
FROM (
    SELECT s.session_key FROM dingtalk_sessions s
    WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term FOR SHARE
) held
ON CONFLICT (session_key, event_id, call_id) DO UPDATE SET finished = EXCLUDED.finished, result = EXCLUDED.result;
