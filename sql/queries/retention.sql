-- Retention: data past its period is deleted in small batches. A period is a number of seconds until now.

-- name: ExpiredSessions :many
-- ExpiredSessions lists sessions with an event past the period, after a key and in the order of keys.
SELECT s.session_key FROM dingtalk_sessions s
WHERE s.session_key > @after_key::text AND EXISTS (
    SELECT FROM dingtalk_session_events e
    WHERE e.session_key = s.session_key AND e.seq IS NOT NULL AND e.created_at < now() - interval '1 second' * @period_seconds::float8)
ORDER BY s.session_key LIMIT @max_rows::int;

-- name: ExpiredLogs :many
-- ExpiredLogs lists logs whose session is missing: those of people, and those with an index, whose people may be forgotten.
SELECT l.session_key FROM (
    SELECT p.session_key FROM people p
    WHERE NOT EXISTS (SELECT FROM dingtalk_sessions s WHERE s.session_key = p.session_key)
    UNION
    SELECT i.session_key FROM event_index i
    WHERE NOT EXISTS (SELECT FROM dingtalk_sessions s WHERE s.session_key = i.session_key)
) l
ORDER BY l.session_key LIMIT @max_rows::int;

-- name: ExpiryDebt :exec
-- ExpiryDebt makes a flush owed for a session with an unflushed event past the period: it can't be deleted before.
INSERT INTO flush_debts (session_key, from_seq, through_seq, failures, reason)
SELECT s.session_key, s.flushed_seq, s.last_seq, s.flush_failures, @reason::text
FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.flushed_seq < s.last_seq AND EXISTS (
    SELECT FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.seq > s.flushed_seq AND e.created_at < now() - interval '1 second' * @period_seconds::float8)
ON CONFLICT (session_key) DO NOTHING;

-- name: EventsOldest :many
-- EventsOldest lists the first events of a session's log. Those that are past the period may be deleted, unless a flush owes
-- them, a reply of that time or an earlier one is not sent, or upkeep of the session runs.
SELECT e.id, e.seq::bigint AS seq, e.role, e.created_at, (e.created_at < now() - interval '1 second' * @period_seconds::float8 AND e.seq <= s.flushed_seq
    AND (s.lease_owner IS NULL OR s.upkeep_term IS DISTINCT FROM s.lease_term OR coalesce(s.upkeep_until <= now(), true))
    AND NOT EXISTS (SELECT FROM flush_debts d WHERE d.session_key = @session_key AND d.from_seq < e.seq)
    AND NOT EXISTS (SELECT FROM outbox o
        WHERE o.session_key = @session_key AND o.state IN ('sending', 'waiting') AND o.created_at <= e.created_at))::boolean AS expired
FROM dingtalk_session_events e JOIN dingtalk_sessions s ON s.session_key = e.session_key
WHERE e.session_key = @session_key AND e.seq IS NOT NULL
ORDER BY e.seq
LIMIT @max_rows::int;

-- name: EventsExpire :one
-- EventsExpire deletes the events up to a place, with their vectors. Messages of the last day are remembered, since they may be
-- pushed again. Marks of compactions and erased dead letters go with the events after them.
WITH gone AS (
    DELETE FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.seq <= @through_seq::bigint
    RETURNING e.session_key, e.msg_id, e.created_at
), aside AS (
    DELETE FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.id <= @through_id::bigint AND (e.role = 'summary' OR e.state = 'dead' AND e.content = @erased::text)
), vectors AS (
    DELETE FROM embeddings v WHERE v.scope_key = @session_key::text AND v.seq <= @through_seq::bigint
), remembered AS (
    INSERT INTO deleted_messages (message)
    SELECT sha256(convert_to(split_part(gone.session_key, '/', 1) || '/' || split_part(gone.session_key, '/', 2) || ' ' || gone.msg_id, 'UTF8'))
    FROM gone WHERE gone.msg_id IS NOT NULL AND gone.created_at > now() - interval '1 day'
    ON CONFLICT (message) DO NOTHING
)
SELECT count(*) FROM gone;

-- name: CompactionsDropUndo :exec
-- CompactionsDropUndo takes summaries of deleted events alone out of former views: each view has all summaries of its time. A
-- view that begins with a deleted event is dropped, so that its compaction can't be undone. So is one with a deleted summary that
-- is not in the view: a later summary covers its events, so that the start of the view does not move behind them.
UPDATE compaction_log c SET view_before = CASE WHEN coalesce((c.view_before ->> 'cursor')::bigint, 0) >= @through_seq::bigint AND NOT EXISTS (
    SELECT FROM session_summaries a
    WHERE a.session_key = @session_key AND a.end_seq <= @through_seq::bigint AND a.status <> 'active' AND c.view_before -> 'summaries' @> to_jsonb(a.id))
  THEN jsonb_set(c.view_before, '{summaries}', (
    SELECT coalesce(jsonb_agg(i.id ORDER BY i.place), '[]') FROM jsonb_array_elements(c.view_before -> 'summaries') WITH ORDINALITY AS i (id, place)
    WHERE NOT EXISTS (SELECT FROM session_summaries a
        WHERE a.session_key = @session_key AND a.end_seq <= @through_seq::bigint AND to_jsonb(a.id) = i.id))) END
WHERE c.session_key = @session_key AND c.view_before IS NOT NULL AND (
    coalesce((c.view_before ->> 'cursor')::bigint, 0) < @through_seq::bigint
    OR EXISTS (SELECT FROM session_summaries a
        WHERE a.session_key = @session_key AND a.end_seq <= @through_seq::bigint AND c.view_before -> 'summaries' @> to_jsonb(a.id)));

-- name: SummariesExpire :one
-- SummariesExpire deletes summaries of deleted events alone, with their marks in the log. No former view has them after
-- CompactionsDropUndo. It returns the place up to which the view showed them; 0 for none. A mark comes after the last event of its
-- summary, and before the events of an hour later: no others are read. An erased text identifies none; EventsExpire deletes those.
WITH gone AS (
    DELETE FROM session_summaries a
    WHERE a.session_key = @session_key AND a.end_seq <= @through_seq::bigint
    RETURNING a.status, a.end_seq, a.end_msg_id, a.summary, a.created_at
), marks AS (
    DELETE FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.id = ANY(ARRAY(
        SELECT m.id FROM gone g
        CROSS JOIN LATERAL (SELECT coalesce((
            SELECT n.id FROM dingtalk_session_events n
            WHERE n.session_key = @session_key AND n.seq IS NOT NULL AND n.created_at > g.created_at + interval '1 hour'
            ORDER BY n.created_at LIMIT 1), 9223372036854775807) AS before OFFSET 0) b
        CROSS JOIN LATERAL (SELECT k.id FROM dingtalk_session_events k
            WHERE k.session_key = @session_key AND k.id > g.end_msg_id AND k.id < b.before AND k.role = 'summary' AND k.content = g.summary
            OFFSET 0) m
        WHERE g.summary <> @erased::text))
)
SELECT coalesce(max(gone.end_seq) FILTER (WHERE gone.status = 'active'), 0)::bigint AS shown FROM gone;

-- name: SessionExpired :exec
-- SessionExpired moves the start of a view behind deleted events, or behind deleted summaries. Summaries before that place are of
-- deleted events alone. The next turn pins the facts of those who still speak in the view.
UPDATE dingtalk_sessions s SET
    base_seq = @through_seq::bigint,
    compacted_seq = greatest(s.compacted_seq, @through_seq::bigint),
    view_version = s.view_version + 1,
    total_tokens = greatest(least(s.total_tokens - round(s.calibration * @freed::bigint), 2147483647), 0),
    observed_tokens = 0,
    observed_seq = 0,
    pinned = '',
    pinned_due = true,
    updated_at = now()
WHERE s.session_key = @session_key;

-- name: UndoExpired :one
-- UndoExpired reports whether retention deleted the events of a compaction in force, or its row in the log.
SELECT (EXISTS (SELECT FROM session_summaries a WHERE a.session_key = @session_key AND a.status = 'active'
        AND NOT EXISTS (SELECT FROM compaction_log l WHERE l.session_key = @session_key AND l.summary_id = a.id))
    OR EXISTS (SELECT FROM compaction_log c
        WHERE c.session_key = @session_key AND c.gen = @gen AND c.outcome = 'committed' AND c.trigger <> 'undo' AND c.undone_at IS NULL AND c.start_seq > 0
          AND NOT EXISTS (SELECT FROM dingtalk_session_events e WHERE e.session_key = @session_key AND e.seq = c.start_seq)))::boolean AS gone;

-- name: MemoriesUnseen :many
-- MemoriesUnseen lists memories that were last said before the period.
SELECT m.id FROM memories m
WHERE m.last_seen_at < now() - interval '1 second' * @period_seconds::float8
ORDER BY m.last_seen_at LIMIT @max_rows::int;



-- name: MemoriesExpireUnseen :many
-- MemoriesExpireUnseen deletes those of some memories that are past the period, and returns their places and texts.
DELETE FROM memories m WHERE m.id = ANY(@ids::bigint[]) AND m.last_seen_at < now() - interval '1 second' * @period_seconds::float8
RETURNING m.scope, m.scope_id, m.content;

-- name: CompactionsExpire :execrows
-- CompactionsExpire deletes rows that were written before the period.
DELETE FROM compaction_log c USING (
    SELECT o.session_key, o.id FROM compaction_log o
    WHERE o.created_at < now() - interval '1 second' * @period_seconds::float8
    ORDER BY o.created_at, o.id LIMIT @max_rows::int
) old
WHERE c.session_key = old.session_key AND c.id = old.id;

-- name: RepliesExpire :execrows
-- RepliesExpire deletes replies that were settled before the period. Open ones are never settled.
DELETE FROM outbox o USING (
    SELECT r.session_key, r.id FROM outbox r
    WHERE r.settled_at < now() - interval '1 second' * @period_seconds::float8
    ORDER BY r.settled_at LIMIT @max_rows::int
) old
WHERE o.session_key = old.session_key AND o.id = old.id;

-- name: ActionsExpire :execrows
DELETE FROM audit a USING (
    SELECT o.session_key, o.id FROM audit o
    WHERE o.at < now() - interval '1 second' * @period_seconds::float8
    ORDER BY o.at LIMIT @max_rows::int
) old
WHERE a.session_key = old.session_key AND a.id = old.id;

-- name: PageExpiring :many
-- PageExpiring counts the events of sessions that are past a period, or will be within some seconds, by the rules of
-- EventsOldest. held counts those past the period that stay, as something owes them.
SELECT s.session_key, s.title, s.conversation_type, x.due, x.soon, x.held, x.oldest
FROM dingtalk_sessions s LEFT JOIN flush_debts d ON d.session_key = s.session_key
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE e.created_at < now() - interval '1 second' * @period_seconds::float8 AND e.seq <= least(s.flushed_seq, d.from_seq))::bigint AS due,
        count(*) FILTER (WHERE e.created_at >= now() - interval '1 second' * @period_seconds::float8)::bigint AS soon,
        count(*) FILTER (WHERE e.created_at < now() - interval '1 second' * @period_seconds::float8 AND e.seq > least(s.flushed_seq, d.from_seq))::bigint AS held,
        coalesce(min(e.created_at), now())::timestamptz AS oldest
    FROM dingtalk_session_events e
    WHERE e.session_key = s.session_key AND e.seq IS NOT NULL
      AND e.created_at < now() - interval '1 second' * @near_seconds::float8
) x
WHERE s.session_key > @after_key::text AND x.due + x.soon + x.held > 0
ORDER BY s.session_key
LIMIT @max_rows::int;

-- name: PageExpiringRows :one
-- PageExpiringRows counts rows without places in a log that are past their periods. A period of 0 counts nothing.
SELECT
    (SELECT count(*) FROM memories m WHERE 0 < @memories_seconds::float8
        AND m.last_seen_at < now() - interval '1 second' * @memories_seconds::float8)::bigint AS memories,
    (SELECT count(*) FROM compaction_log c WHERE 0 < @compactions_seconds::float8
        AND c.created_at < now() - interval '1 second' * @compactions_seconds::float8)::bigint AS compactions,
    (SELECT count(*) FROM outbox o WHERE 0 < @replies_seconds::float8
        AND o.settled_at < now() - interval '1 second' * @replies_seconds::float8)::bigint AS replies,
    (SELECT count(*) FROM audit a WHERE 0 < @actions_seconds::float8
        AND a.at < now() - interval '1 second' * @actions_seconds::float8)::bigint AS actions;
