-- name: EventsView :many
-- EventsView reads the events for a turn: the tail after the summaries, as the view shows it, and the waiting messages.
-- said is the text of a message that is shown in another way.
SELECT e.session_key, e.id, e.seq, e.role, e.state, e.attempts, coalesce(e.shown, e.content)::text AS content, e.sender_id,
    e.sender_nick, e.msg_id, e.tool_calls, e.tool_call_id, e.tool_name, coalesce(e.shown_tokens, e.tokens)::int AS tokens,
    e.is_archived, e.message, e.created_at, e.blob_id, e.withheld,
    (CASE WHEN e.shown IS NOT NULL AND e.message IS NOT NULL THEN e.content ELSE '' END)::text AS said
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq > @after_seq::bigint AND e.seq <= @through_seq::bigint
UNION ALL
SELECT p.session_key, p.id, p.seq, p.role, p.state, p.attempts, coalesce(p.shown, p.content)::text AS content, p.sender_id,
    p.sender_nick, p.msg_id, p.tool_calls, p.tool_call_id, p.tool_name, coalesce(p.shown_tokens, p.tokens)::int AS tokens,
    p.is_archived, p.message, p.created_at, p.blob_id, p.withheld,
    (CASE WHEN p.shown IS NOT NULL AND p.message IS NOT NULL THEN p.content ELSE '' END)::text AS said
FROM dingtalk_session_events p
WHERE p.session_key = @session_key AND p.state = 'pending' AND p.id = ANY(@pending::bigint[])
ORDER BY seq, id;

-- name: TurnBegin :one
-- TurnBegin marks the oldest pending messages with the term of the lease and returns the session with all that is read
-- at once: one snapshot, so that a concurrent compaction is seen whole or not at all.
--
-- A mark of a broken term, or of an earlier one, was left by a dead process: it is counted as an attempt here, and nowhere else. From the second count on
-- a message is a suspect. Each further death halves its width, and is counted only at the width of 1, where no other message
-- was in progress. Suspects are not marked, nor the messages after them; suspect is the count of the oldest one. lone: the only
-- count is no death, so the message is taken by itself.
--
-- alone marks one message, suspect or not: that of the event, or the oldest for 0; width is the one that its mark has, 0: as it
-- was, -1: others run beside the message after all, so that a death is not counted. more: other messages wait besides the marked ones.
--
-- Together they have no more than max_bytes, but the oldest is always taken.
--
-- The oldest messages are the marked ones, then those that were sent first.
--
-- The mark must survive the process, not the server: it does not wait for the disk. The lock orders it before or after an
-- erasure that takes the lease, which counts the turns that it ends; other writers of the session do not wait.
WITH held AS (
    SELECT h.fallen_term FROM dingtalk_sessions h
    WHERE h.session_key = @session_key AND h.lease_owner = @owner::text AND h.lease_term = @term
    FOR KEY SHARE
), oldest AS (
    SELECT p.id, p.attempt_term IS NULL AS fresh, p.sent_at, octet_length(p.content) AS bytes, f.fell, f.counts,
        p.attempts + f.counts::int AS counted, p.attempts = 1 AND p.counted_term IS NULL AND NOT f.counts AS lone,
        CASE WHEN f.fell AND p.width > 1 THEN (p.width + 1) / 2 ELSE p.width END AS width
    FROM held, dingtalk_session_events p, LATERAL (
        SELECT x.fell, x.fell AND (p.attempts < 2 OR coalesce(p.width, 0) = 1) AS counts
        FROM (SELECT coalesce(p.attempt_term <= held.fallen_term, false) AS fell) x) f
    WHERE p.session_key = @session_key AND p.state = 'pending' ORDER BY p.id <> @event::bigint, fresh, p.sent_at, p.id
    LIMIT CASE WHEN @max_messages::int > 0 THEN 1 + @max_messages::int ELSE 0 END
), waiting AS (
    SELECT o.id, o.counted, o.counts, o.fell, o.width, row_number() OVER places AS place, CASE
        WHEN @alone::boolean THEN row_number() OVER places = 1 AND @event::bigint IN (0, o.id)
        WHEN row_number() OVER places = 1 THEN o.counted < 2
        ELSE row_number() OVER places <= @max_messages::int AND bool_and(o.counted < 2 AND NOT o.lone) OVER places
            AND sum(o.bytes) OVER places <= @max_bytes::int END AS taken
    FROM oldest o WINDOW places AS (ORDER BY o.id <> @event::bigint, o.fresh, o.sent_at, o.id)
), marked AS (
    UPDATE dingtalk_session_events e SET
        attempts = w.counted,
        counted_term = CASE WHEN w.counts THEN e.attempt_term WHEN NOT w.fell THEN e.counted_term END,
        attempt_term = CASE WHEN w.taken THEN @term END,
        width = CASE WHEN w.taken AND @width::int <> 0 THEN @width::int ELSE w.width END
    FROM waiting w
    WHERE e.session_key = @session_key AND e.state = 'pending' AND e.id = w.id AND (w.taken OR w.fell)
    RETURNING e.id, w.taken, w.place, e.admitted
)
SELECT
    sqlc.embed(s),
    (CASE WHEN s.spent_on = (now() AT TIME ZONE 'UTC')::date THEN s.spent_tokens ELSE 0 END)::bigint AS spent_today,
    coalesce((SELECT array_agg(m.id ORDER BY m.place) FROM marked m WHERE m.taken), '{}')::bigint[] AS pending,
    coalesce((SELECT array_agg(m.id) FROM marked m WHERE m.taken AND m.admitted), '{}')::bigint[] AS admitted,
    coalesce((SELECT w.counted FROM waiting w WHERE w.place = 1 AND w.counted > 1), 0)::int AS suspect,
    coalesce((SELECT w.width FROM waiting w WHERE w.place = 1), 0)::int AS width,
    EXISTS (SELECT FROM waiting w WHERE NOT w.taken) AS more,
    coalesce((SELECT jsonb_agg(to_jsonb(a) ORDER BY a.start_seq) FROM session_summaries a
        WHERE a.session_key = @session_key AND a.status = 'active'), '[]')::jsonb AS summaries,
    coalesce((SELECT jsonb_agg(to_jsonb(r) ORDER BY r.event_id, r.started_at, r.call_id) FROM tool_runs r
        WHERE r.session_key = @session_key AND r.event_id IN (SELECT m.id FROM marked m WHERE m.taken)), '[]')::jsonb AS runs,
    set_config('synchronous_commit', 'off', true)::text AS synchronous_commit
FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term;

-- name: SuspectSessions :one
-- SuspectSessions counts the sessions with messages that fell with two processes and are not set aside, also those whose second
-- mark no turn counted yet. Each can have one turn in progress.
SELECT count(DISTINCT e.session_key)::int AS n
FROM dingtalk_session_events e JOIN dingtalk_sessions s ON s.session_key = e.session_key
WHERE e.state = 'pending' AND (e.attempts = 2 OR e.attempts = 1 AND (e.attempt_term <= s.fallen_term
    OR e.attempt_term = s.lease_term AND s.lease_owner IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM replicas r
        WHERE r.id = s.lease_owner AND r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8)));

-- name: QuotedMessage :one
-- QuotedMessage reads a person's message by its id.
SELECT e.role, e.content, e.sender_id, e.sender_nick, e.msg_id, e.message, e.withheld FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.msg_id = @msg_id::text;

-- name: QuotedAnswer :many
-- QuotedAnswer lists at most two replies that may have been sent at a time, each with its answer. A reply is sent after
-- its commit and before it is settled; one that surely did not arrive is left out. A notice has no answer. A turn
-- writes its answer and its reply at one time. Settled replies have an index by time, and few are open.
SELECT coalesce((
    SELECT e.content FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.created_at = o.created_at AND e.seq IS NOT NULL AND e.role = 'assistant'
    ORDER BY e.seq DESC LIMIT 1), '')::text AS content
FROM (
    SELECT d.created_at FROM outbox d
    WHERE d.session_key = @session_key AND d.created_at BETWEEN @oldest AND @latest AND d.settled_at >= @earliest::timestamptz
      AND (d.state = 'sent' OR d.in_flight OR d.resumed OR d.part > 0)
    UNION ALL
    SELECT w.created_at FROM outbox w
    WHERE w.session_key = @session_key AND w.created_at BETWEEN @oldest AND @latest AND w.state IN ('sending', 'waiting')
      AND (w.in_flight OR w.resumed OR w.part > 0)
) o
LIMIT 2;

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

-- name: TurnCommit :one
-- TurnCommit writes a whole turn in one statement: one transaction, one round trip, one flush of the log.
--
-- The webhook of a message goes with the reply, and is not kept with the message; nor is the staff id of a forgotten
-- person.
--
-- No row comes back when the lease is not the current one, and nothing was written. So it is after a deletion of the row: see SessionsRevive. When a message of the turn was no
-- longer pending, the whole statement must be rolled back, and only an error does that: hence the division by zero.
--
-- A turn that read or pins a deleted memory, or one that a running transaction deletes, may repeat forgotten content: no
-- row comes back then either. The memories are locked after the session's row, and without waiting, since an erasure that
-- deletes them may wait for that row.
--
-- The askers of a turn share its usage equally.
WITH reading AS MATERIALIZED (
    SELECT s.session_key FROM dingtalk_sessions s
    WHERE cardinality(@read_rows::bigint[]) > 0
      AND s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term FOR UPDATE
), remembered AS MATERIALIZED (
    SELECT m.id FROM memories m
    WHERE (SELECT count(*) FROM reading) > 0 AND m.id = ANY(@read_rows::bigint[]) FOR KEY SHARE SKIP LOCKED
), held AS (
    UPDATE dingtalk_sessions s SET
        last_seq = s.last_seq + cardinality(@taken::bigint[]) + cardinality(@roles::text[]),
        total_tokens = CASE WHEN s.view_version = @view_version::int
            THEN @total_tokens::int ELSE least(s.total_tokens::bigint + @appended::int, 2147483647) END,
        observed_tokens = CASE WHEN @observed_tokens::int > 0 AND s.view_version = @view_version::int
            THEN @observed_tokens::int ELSE s.observed_tokens END,
        observed_seq = CASE WHEN @observed_tokens::int > 0 AND s.view_version = @view_version::int
            THEN s.last_seq + cardinality(@taken::bigint[]) + @observed_events::int ELSE s.observed_seq END,
        calibration = CASE WHEN @calibration::float8 > 0 THEN @calibration::float8 ELSE s.calibration END,
        prompt_tokens = s.prompt_tokens + @prompt_tokens::bigint,
        cached_tokens = s.cached_tokens + @cached_tokens::bigint,
        completion_tokens = s.completion_tokens + @completion_tokens::bigint,
        model = CASE WHEN @model::text = '' THEN s.model ELSE @model::text END,
        candidates = s.candidates + cardinality(@marked::bigint[]),
        pinned = CASE WHEN @pin::boolean AND s.view_version = @view_version::int THEN @pinned::text ELSE s.pinned END,
        pinned_due = s.pinned_due AND NOT (@pin::boolean AND s.view_version = @view_version::int),
        suspicion = coalesce(nullif(@suspicion::text, '')::jsonb, s.suspicion),
        cut_turns = 0,
        last_active_at = now(),
        updated_at = now()
    WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
      AND (SELECT count(*) FROM remembered) = cardinality(@read_rows::bigint[])
    RETURNING s.session_key, s.last_seq
), taken AS (
    UPDATE dingtalk_session_events e SET
        state = 'done',
        candidate = e.id = ANY(@marked::bigint[]),
        seq = held.last_seq - cardinality(@taken::bigint[]) - cardinality(@roles::text[]) + t.place,
        tokens = t.tokens,
        message = (e.message - 'webhook' - 'webhook_expires' - CASE WHEN e.sender_id = '' THEN 'staff_id' ELSE '' END)
            || CASE WHEN @outcome::text = '' THEN '{}' ELSE jsonb_build_object('outcome', @outcome::text) END,
        searched = NOT @command::boolean,
        withheld = nullif(t.withheld, '')::jsonb
    FROM held, (SELECT unnest(@taken::bigint[]) AS id, unnest(@taken_tokens::int[]) AS tokens,
        unnest(@taken_withheld::text[]) AS withheld,
        generate_subscripts(@taken::bigint[], 1) AS place) t
    WHERE e.session_key = @session_key AND e.id = t.id AND e.id = ANY(@taken::bigint[]) AND e.state = 'pending'
    RETURNING e.id, e.sender_id
), added AS (
    INSERT INTO dingtalk_session_events
        (session_key, seq, role, content, tool_calls, tool_call_id, tool_name, tokens, searched, withheld)
    SELECT held.session_key, held.last_seq - cardinality(@roles::text[]) + n.place, n.role, n.content,
        nullif(n.tool_calls, '')::jsonb, n.tool_call_id, n.tool_name, n.tokens,
        NOT @command::boolean, nullif(n.withheld, '')::jsonb
    FROM held, (SELECT unnest(@roles::text[]) AS role, unnest(@contents::text[]) AS content,
        unnest(@tool_calls::text[]) AS tool_calls, unnest(@tool_call_ids::text[]) AS tool_call_id,
        unnest(@tool_names::text[]) AS tool_name, unnest(@tokens::int[]) AS tokens,
        unnest(@withheld::text[]) AS withheld, generate_subscripts(@roles::text[], 1) AS place) n
    ORDER BY n.place
), dead AS (
    UPDATE dingtalk_session_events e SET state = 'dead',
        message = e.message - 'webhook' - 'webhook_expires' - CASE WHEN e.sender_id = '' THEN 'staff_id' ELSE '' END
    FROM held
    WHERE e.session_key = @session_key AND e.id = ANY(@dead::bigint[]) AND e.state = 'pending'
    RETURNING e.id
), returned AS (
    UPDATE dingtalk_session_events e SET attempt_term = NULL
    FROM held
    WHERE e.session_key = @session_key AND e.state = 'pending' AND e.attempt_term = @term
      AND NOT e.id = ANY(@taken::bigint[]) AND NOT e.id = ANY(@dead::bigint[])
), runs AS (
    DELETE FROM tool_runs r USING held
    WHERE r.session_key = @session_key AND (r.event_id = ANY(@taken::bigint[]) OR r.event_id = ANY(@dead::bigint[]))
), usage AS (
    INSERT INTO model_usage AS u (session_key, day, kind, model, person, turns, prompt_tokens, cached_tokens, completion_tokens, cost)
    SELECT held.session_key, (now() AT TIME ZONE 'UTC')::date, 'turn', @model::text, p.person, CASE WHEN p.place = 1 THEN least(cardinality(@taken::bigint[]), 1) ELSE 0 END, div(count(*) OVER () - p.place + @prompt_tokens::bigint, count(*) OVER ())::bigint,
        div(count(*) OVER () - p.place + @cached_tokens::bigint, count(*) OVER ())::bigint, div(count(*) OVER () - p.place + @completion_tokens::bigint, count(*) OVER ())::bigint,
        (1.0 / count(*) OVER ())::float8 * @cost::float8
    FROM held, unnest(coalesce((SELECT array_agg(DISTINCT taken.sender_id) FROM taken), ARRAY[''])) WITH ORDINALITY AS p (person, place)
    WHERE 0 < greatest(@prompt_tokens::bigint, @cached_tokens::bigint, @completion_tokens::bigint) OR 0 < @cost::float8
    ON CONFLICT (session_key, day, kind, model, person) DO UPDATE SET
        turns = u.turns + EXCLUDED.turns, prompt_tokens = u.prompt_tokens + EXCLUDED.prompt_tokens, cached_tokens = u.cached_tokens + EXCLUDED.cached_tokens,
        completion_tokens = u.completion_tokens + EXCLUDED.completion_tokens, cost = u.cost + EXCLUDED.cost
), reply AS (
    INSERT INTO outbox (session_key, target, body, nonce, state, sender, in_flight, attempts, next_at)
    SELECT held.session_key, @target, @body, @nonce, 'sending', @owner::text, NOT @reply_waits::boolean,
        CASE WHEN @reply_waits::boolean THEN 0 ELSE 1 END, now() + interval '1 second' * @hand_seconds::float8
    FROM held
    WHERE @has_reply::boolean
    RETURNING id, created_at
), card AS (
    INSERT INTO cards (session_key, out_track_id, turn_event_id, prepaid)
    SELECT held.session_key, @card::text, coalesce((@taken::bigint[])[1], 0), false FROM held
    WHERE @has_reply::boolean AND @card::text <> ''
    ON CONFLICT (session_key, out_track_id) DO NOTHING
)
SELECT
    held.last_seq,
    coalesce((SELECT reply.id FROM reply), 0)::bigint AS reply_id,
    coalesce((SELECT reply.created_at FROM reply), now())::timestamptz AS reply_at,
    (1 / CASE WHEN (SELECT count(*) FROM taken) = cardinality(@taken::bigint[])
               AND (SELECT count(*) FROM dead) = cardinality(@dead::bigint[]) THEN 1 ELSE 0 END)::int AS whole
FROM held;

-- name: ToolRunRecord :execrows
-- ToolRunRecord stores a call before it runs and again with its result. No row: the lease is not the current one.
INSERT INTO tool_runs (session_key, event_id, call_id, name, arguments, finished, result)
SELECT held.session_key, @event_id, @call_id, @name, @arguments, @finished, @result
FROM (
    SELECT s.session_key FROM dingtalk_sessions s
    WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term FOR SHARE
) held
ON CONFLICT (session_key, event_id, call_id) DO UPDATE SET finished = EXCLUDED.finished, result = EXCLUDED.result;
