-- name: CompactionFind :one
SELECT c.* FROM compaction_log c WHERE c.id = @id ORDER BY c.session_key LIMIT 1;

-- name: CompactionInsert :one
-- CompactionInsert stores the row of an attempt. A committed one is linked to the flush of its cycle. SessionSummarized, which
-- follows, begins the next cycle.
INSERT INTO compaction_log (session_key, gen, trigger, policy, mode, model, focus, tokens_before, tokens_after, start_seq,
    end_seq, summary_id, flush_outcome, audit, duration_ms, cost, prompt_tokens, cached_tokens, completion_tokens,
    outcome, error, asked_by, requested_by, view_before, flush_id)
VALUES (@session_key, @gen, @trigger, @policy, @mode, @model, @focus, @tokens_before, @tokens_after, @start_seq,
    @end_seq, @summary_id, @flush_outcome, @audit, @duration_ms, @cost, @prompt_tokens, @cached_tokens,
    @completion_tokens, @outcome, @error, @asked_by, @requested_by, @view_before, sqlc.narg(flush_id))
RETURNING id, created_at;

-- name: CompactionAsker :one
-- CompactionAsker is the sender of the message that asked for an undo.
SELECT e.sender_id FROM dingtalk_session_events e WHERE e.session_key = @session_key AND e.id = @id;

-- name: FlushOfCycle :one
-- FlushOfCycle is the newest flush of a cycle.
SELECT f.id FROM memory_flushes f WHERE f.session_key = @session_key AND f.gen = @gen AND f.epoch = @epoch ORDER BY f.id DESC LIMIT 1;

-- name: CompactionUndoable :one
-- CompactionUndoable is the newest compaction in force of a generation. Undone ones are not, and rows of undos, like
-- those of releases without undo, have no view to restore.
SELECT c.* FROM compaction_log c
WHERE c.session_key = @session_key AND c.gen = @gen AND c.outcome = 'committed' AND c.undone_at IS NULL
  AND c.view_before IS NOT NULL
ORDER BY c.id DESC LIMIT 1;

-- name: CompactionUndoneBy :one
-- CompactionUndoneBy is the undo that a message asked for.
SELECT c.* FROM compaction_log c
WHERE c.session_key = @session_key AND c.trigger = 'undo' AND c.asked_by = @asked_by
ORDER BY c.id DESC LIMIT 1;

-- name: CompactionUndone :exec
UPDATE compaction_log c SET undone_at = now() WHERE c.session_key = @session_key AND c.id = @id;

-- name: CompactionsEnds :many
-- CompactionsEnds is the remaining state of attempts: the summary of each, and whether an erasure removed its undo
-- data. An undo has its own row in the log, of the same transaction.
SELECT c.id, coalesce(c.summary_id, 0)::bigint AS summary_id, (c.undone_at IS NOT NULL AND NOT EXISTS (
    SELECT FROM compaction_log u
    WHERE u.session_key = c.session_key AND u.trigger = 'undo' AND u.created_at = c.undone_at))::boolean AS erased
FROM compaction_log c WHERE c.id = ANY(@ids::bigint[]);

-- name: CompactionsList :many
-- CompactionsList lists attempts, newest first. An empty key stands for all sessions.
SELECT c.* FROM compaction_log c
WHERE @session_key::text = '' OR c.session_key = @session_key::text
ORDER BY c.created_at DESC, c.id DESC
LIMIT @max_rows::int;

-- name: EventsArchive :exec
-- EventsArchive marks the events of a range as summarized. Their bodies stay.
UPDATE dingtalk_session_events e SET is_archived = true
WHERE e.session_key = @session_key AND e.seq BETWEEN @start_seq::bigint AND @end_seq::bigint AND NOT e.is_archived;

-- name: EventSummaryInsert :exec
-- EventSummaryInsert is the log's mark of a compaction.
INSERT INTO dingtalk_session_events (session_key, role, content, tokens)
VALUES (@session_key, 'summary', @content, @tokens);

-- name: EventsUnarchive :exec
-- EventsUnarchive returns the events after a place to the view.
UPDATE dingtalk_session_events e SET is_archived = false
WHERE e.session_key = @session_key AND e.seq > @after_seq::bigint AND e.is_archived;

-- name: SessionCompacted :exec
-- SessionCompacted moves the cursor. The caller holds the row's lock and has compared cursor and generation. It resets
-- the provider's token count, which was that of the former prompt.
UPDATE dingtalk_sessions s SET
    compacted_seq = @through_seq,
    view_version = s.view_version + 1,
    total_tokens = greatest(least(s.total_tokens::bigint - @freed::int, 2147483647), 0),
    rearm_tokens = @rearm_tokens,
    pinned = CASE WHEN @pin::boolean THEN @pinned::text ELSE s.pinned END,
    pinned_due = s.pinned_due AND NOT @pin::boolean,
    observed_tokens = 0,
    observed_seq = 0,
    compact_failures = 0,
    compact_retry_at = NULL,
    compact_error = '',
    cut_upkeep = 0,
    updated_at = now()
WHERE s.session_key = @session_key;

-- name: SessionSummarized :exec
-- SessionSummarized begins a new cycle after a summary. Flushes are tried again in it.
UPDATE dingtalk_sessions s SET compaction_count = s.compaction_count + 1, compacted_at = now(), flush_failures = 0
WHERE s.session_key = @session_key;

-- name: SessionCompactFailed :exec
-- SessionCompactFailed records a failed attempt in the session.
UPDATE dingtalk_sessions s SET
    compact_failures = @compact_failures,
    compact_retry_at = @compact_retry_at,
    compact_error = CASE WHEN @failed::boolean THEN @error::text ELSE s.compact_error END,
    rearm_tokens = CASE WHEN @rearm_tokens::int > 0 THEN @rearm_tokens::int ELSE s.rearm_tokens END,
    updated_at = now()
WHERE s.session_key = @session_key;

-- name: SessionConfigured :exec
UPDATE dingtalk_sessions s SET settings = nullif(@settings::text, '')::jsonb, updated_at = now() WHERE s.session_key = @session_key;

-- name: SessionRenewed :exec
-- SessionRenewed begins a generation. Unflushed events stay owed to memory.
UPDATE dingtalk_sessions s SET
    gen = s.gen + 1,
    base_seq = s.last_seq,
    compacted_seq = s.last_seq,
    view_version = s.view_version + 1,
    total_tokens = 0,
    rearm_tokens = 0,
    pinned_due = true,
    observed_tokens = 0,
    observed_seq = 0,
    compact_failures = 0,
    compact_retry_at = NULL,
    compact_error = '',
    suspicion = NULL,
    flush_epoch = NULL,
    flush_failures = 0,
    updated_at = now()
WHERE s.session_key = @session_key;

-- name: SessionUndone :one
-- SessionUndone moves the cursor back. The session rests until its context grows by rest tokens. The stored error makes
-- policies that count tokens rest. It returns the size of the context.
UPDATE dingtalk_sessions s SET
    compacted_seq = @compacted_seq,
    view_version = s.view_version + 1,
    pinned = @pinned,
    total_tokens = greatest(least(s.total_tokens::bigint + @freed::bigint, 2147483647), 0),
    rearm_tokens = least(greatest(least(s.total_tokens::bigint + @freed::bigint, 2147483647), 0) + @rest::int, 2147483647),
    observed_tokens = 0,
    observed_seq = 0,
    compact_failures = 0,
    compact_retry_at = NULL,
    compact_error = 'undone',
    updated_at = now()
WHERE s.session_key = @session_key
RETURNING s.total_tokens;

-- name: SummariesActive :many
-- SummariesActive lists the summaries in the view, oldest first.
SELECT a.* FROM session_summaries a
WHERE a.session_key = @session_key AND a.status = 'active'
ORDER BY a.start_seq;

-- name: SummariesClose :exec
-- SummariesClose removes the summaries of an ended generation from the view.
UPDATE session_summaries a SET status = 'closed' WHERE a.session_key = @session_key AND a.status = 'active';

-- name: SummariesRestore :exec
-- SummariesRestore returns replaced summaries to the view.
UPDATE session_summaries a SET status = 'active', superseded_by = NULL
WHERE a.session_key = @session_key AND a.id = ANY(@ids::bigint[]) AND a.status = 'superseded';

-- name: SummariesUndo :exec
-- SummariesUndo removes all summaries but those of a former view from the view.
UPDATE session_summaries a SET status = 'undone'
WHERE a.session_key = @session_key AND a.status = 'active' AND a.id <> ALL(@ids::bigint[]);

-- name: SummariesSupersede :exec
-- SummariesSupersede removes summaries from the view and keeps them for an undo.
UPDATE session_summaries a SET status = 'superseded', superseded_by = @by
WHERE a.session_key = @session_key AND a.id = ANY(@ids::bigint[]) AND a.status = 'active';

-- name: SummaryInsert :one
-- SummaryInsert stores a summary of a range, with the ids of its ends and the count of its events. It counts the events
-- from fresh_seq on. For the earlier ones, in summaries that this one replaces, start_msg_id and told_count are given,
-- and end_msg_id when there are no others: their rows may be gone. No row: the log has no event at fresh_seq or at
-- end_seq. The summary is outside the view until SummaryActivate, since its predecessors must leave the view first, and
-- name it.
INSERT INTO session_summaries (session_key, gen, level, start_seq, end_seq, start_msg_id, end_msg_id, msg_count,
    summary, tokens, model, status, superseded_by)
SELECT @session_key, @gen, @level, @start_seq, @end_seq, ends.first_id, ends.last_id,
    (SELECT count(*) FROM dingtalk_session_events e
     WHERE e.session_key = @session_key AND e.seq BETWEEN @fresh_seq::bigint AND @end_seq::bigint)::int + @told_count::int,
    @summary, @tokens, @model, 'superseded', 0
FROM (SELECT
    coalesce(nullif(@start_msg_id::bigint, 0), (SELECT a.id FROM dingtalk_session_events a
        WHERE a.session_key = @session_key AND a.seq = @fresh_seq::bigint)) AS first_id,
    coalesce(nullif(@end_msg_id::bigint, 0), (SELECT z.id FROM dingtalk_session_events z
        WHERE z.session_key = @session_key AND z.seq = @end_seq::bigint)) AS last_id) ends
WHERE ends.first_id IS NOT NULL AND ends.last_id IS NOT NULL
RETURNING id, start_msg_id, end_msg_id, msg_count;

-- name: SummaryFind :one
SELECT a.* FROM session_summaries a WHERE a.session_key = @session_key AND a.id = @id;

-- name: SummaryActivate :exec
-- SummaryActivate adds a summary to the view.
UPDATE session_summaries a SET status = 'active', superseded_by = NULL
WHERE a.session_key = @session_key AND a.id = @id;

-- name: SessionsBacklog :many
-- SessionsBacklog lists sessions whose context exceeds a number of tokens and that rest neither by size nor by time, and those with
-- rows under suspicion. They are those after a key, with a lease that is free, stale or owner's.
SELECT s.session_key, s.conversation_id, s.total_tokens, s.rearm_tokens, s.suspicion,
    (CASE WHEN s.spent_on = (now() AT TIME ZONE 'UTC')::date THEN s.spent_tokens ELSE 0 END)::bigint AS spent_today
FROM dingtalk_sessions s
WHERE (s.suspicion IS NOT NULL OR s.total_tokens >= @least::int AND s.total_tokens >= s.rearm_tokens
    AND (s.compact_retry_at IS NULL OR s.compact_retry_at <= now()))
  AND s.session_key > @after_key::text
  AND (s.lease_owner IS NULL OR s.lease_owner = @owner::text OR s.lease_owner <> ALL (ARRAY(
    SELECT r.id FROM replicas r WHERE r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8)))
ORDER BY s.session_key
LIMIT @max_rows::int;

-- name: SummaryRewrite :execrows
-- SummaryRewrite stores a text for an active summary that was emptied, or that a model refuses.
UPDATE session_summaries a SET summary = @summary::text, tokens = @tokens::int, model = @model::text, withheld = NULL
WHERE a.session_key = @session_key AND a.id = @id AND a.status = 'active' AND (a.summary = @erased::text OR a.withheld IS NOT NULL);

-- name: SessionRewritten :exec
-- SessionRewritten changes the view after it. The context grows by the given tokens.
UPDATE dingtalk_sessions s SET
    view_version = s.view_version + 1,
    total_tokens = greatest(least(s.total_tokens::bigint + @growth::int, 2147483647), 0),
    observed_tokens = 0,
    observed_seq = 0,
    compact_failures = 0,
    compact_retry_at = NULL,
    compact_error = CASE WHEN s.compact_error = 'undone' THEN s.compact_error ELSE '' END,
    cut_upkeep = 0,
    updated_at = now()
WHERE s.session_key = @session_key;
