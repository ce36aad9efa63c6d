-- name: CompactionFind :one
SELECT c.* FROM compaction_log c WHERE c.id = @id ORDER BY c.session_key LIMIT 1;

-- name: CompactionInsert :exec
-- CompactionInsert stores the row of an attempt.
INSERT INTO compaction_log (session_key, trigger, policy, mode, model, focus, tokens_before, tokens_after, start_seq,
    end_seq, summary_id, flush_outcome, audit, duration_ms, cost, prompt_tokens, cached_tokens, completion_tokens,
    outcome, error)
VALUES (@session_key, @trigger, @policy, @mode, @model, @focus, @tokens_before, @tokens_after, @start_seq,
    @end_seq, @summary_id, @flush_outcome, @audit, @duration_ms, @cost, @prompt_tokens, @cached_tokens,
    @completion_tokens, @outcome, @error);

-- name: CompactionsList :many
-- CompactionsList lists attempts, newest first. An empty key stands for all sessions.
SELECT c.* FROM compaction_log c
WHERE @session_key::text = '' OR c.session_key = @session_key::text
ORDER BY c.created_at DESC, c.id DESC
LIMIT @max_rows::int;

-- name: EventsArchive :exec
-- EventsArchive marks the events of a range as told by a summary. Their bodies stay.
UPDATE dingtalk_session_events e SET is_archived = true
WHERE e.session_key = @session_key AND e.seq BETWEEN @start_seq::bigint AND @end_seq::bigint AND NOT e.is_archived;

-- name: EventSummaryInsert :exec
-- EventSummaryInsert is the log's mark of a compaction.
INSERT INTO dingtalk_session_events (session_key, role, content, tokens)
VALUES (@session_key, 'summary', @content, @tokens);

-- name: SessionCompacted :exec
-- SessionCompacted moves the cursor. The caller holds the row's lock and has compared cursor and generation.
-- What the provider counted was the prompt before: it says nothing of the new one, and is forgotten. A new cycle begins,
-- in which flushes are tried again.
UPDATE dingtalk_sessions s SET
    compacted_seq = @through_seq,
    compaction_count = s.compaction_count + 1,
    total_tokens = greatest(least(s.total_tokens::bigint - @freed::int, 2147483647), 0),
    rearm_tokens = @rearm_tokens,
    pinned = @pinned,
    observed_tokens = 0,
    observed_seq = 0,
    flush_failures = 0,
    compact_failures = 0,
    compact_retry_at = NULL,
    prompt_tokens = s.prompt_tokens + @prompt_tokens::bigint,
    cached_tokens = s.cached_tokens + @cached_tokens::bigint,
    completion_tokens = s.completion_tokens + @completion_tokens::bigint,
    updated_at = now()
WHERE s.session_key = @session_key;

-- name: SessionCompactFailed :exec
-- SessionCompactFailed takes the consequences of a failed attempt to the session.
UPDATE dingtalk_sessions s SET
    compact_failures = @compact_failures,
    compact_retry_at = @compact_retry_at,
    rearm_tokens = CASE WHEN @rearm_tokens::int > 0 THEN @rearm_tokens::int ELSE s.rearm_tokens END,
    prompt_tokens = s.prompt_tokens + @prompt_tokens::bigint,
    cached_tokens = s.cached_tokens + @cached_tokens::bigint,
    completion_tokens = s.completion_tokens + @completion_tokens::bigint,
    updated_at = now()
WHERE s.session_key = @session_key;

-- name: SummariesActive :many
-- SummariesActive lists the summaries in the view, oldest first.
SELECT a.* FROM session_summaries a
WHERE a.session_key = @session_key AND a.status = 'active'
ORDER BY a.start_seq;

-- name: SummariesSupersede :execrows
-- SummariesSupersede takes summaries out of the view. They are kept for an undo.
UPDATE session_summaries a SET status = 'superseded', superseded_by = @by
WHERE a.session_key = @session_key AND a.id = ANY(@ids::bigint[]) AND a.status = 'active';

-- name: SummaryInsert :one
-- SummaryInsert stores a summary of a range, with the ids of its ends and the count of its events. The events from
-- fresh_seq on are counted. Of those before, told by summaries that this one replaces, start_msg_id and told_count are
-- known, and the rows may be gone. No row comes back where the log has no event at fresh_seq or at end_seq.
-- It is stored outside the view until SummaryActivate, for its predecessors must leave the view first, and name it.
INSERT INTO session_summaries (session_key, gen, level, start_seq, end_seq, start_msg_id, end_msg_id, msg_count,
    summary, tokens, model, status, superseded_by)
SELECT a.session_key, @gen, @level, @start_seq, z.seq,
    coalesce(nullif(@start_msg_id::bigint, 0), a.id), z.id,
    (SELECT count(*) FROM dingtalk_session_events e
     WHERE e.session_key = @session_key AND e.seq BETWEEN @fresh_seq::bigint AND @end_seq::bigint)::int + @told_count::int,
    @summary, @tokens, @model, 'superseded', 0
FROM dingtalk_session_events a, dingtalk_session_events z
WHERE a.session_key = @session_key AND a.seq = @fresh_seq::bigint
  AND z.session_key = @session_key AND z.seq = @end_seq::bigint
RETURNING id;

-- name: SummaryActivate :exec
-- SummaryActivate puts a summary into the view.
UPDATE session_summaries a SET status = 'active', superseded_by = NULL
WHERE a.session_key = @session_key AND a.id = @id;
