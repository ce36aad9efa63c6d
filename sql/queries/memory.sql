-- name: DebtDelete :exec
-- DebtDelete and DebtShorten settle a debt as far as it was flushed.
DELETE FROM flush_debts d WHERE d.session_key = @session_key AND d.through_seq <= @through_seq;

-- name: DebtShorten :exec
UPDATE flush_debts d SET from_seq = @through_seq, updated_at = now()
WHERE d.session_key = @session_key AND d.through_seq > @through_seq;

-- name: DebtUpsert :exec
INSERT INTO flush_debts AS d (session_key, from_seq, through_seq, failures, reason, updated_at)
VALUES (@session_key, @from_seq, @through_seq, @failures, @reason, now())
ON CONFLICT (session_key) DO UPDATE SET
    from_seq = EXCLUDED.from_seq, through_seq = EXCLUDED.through_seq, failures = greatest(d.failures, EXCLUDED.failures),
    reason = EXCLUDED.reason, updated_at = EXCLUDED.updated_at;

-- name: EventsRange :many
-- EventsRange reads the log as it was said, archived events too.
SELECT e.session_key, e.id, e.seq, e.role, e.state, e.attempts, e.content, e.sender_id, e.sender_nick, e.msg_id, e.tool_calls,
    e.tool_call_id, e.tool_name, e.tokens, e.is_archived, e.message, e.created_at, e.withheld
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq > @after_seq::bigint AND e.seq <= @through_seq::bigint
ORDER BY e.seq
LIMIT @max_rows::int;

-- name: SessionFlushFailed :exec
-- SessionFlushFailed keeps the count of failures in a row.
UPDATE dingtalk_sessions s SET flush_failures = @flush_failures, updated_at = now() WHERE s.session_key = @session_key;

-- name: SessionFlushed :exec
-- SessionFlushed moves the flush cursor. The caller holds the row's lock and has compared the cursor. A flush in
-- several parts counts once, and marks its cycle as flushed with the last part. The cycle of a generation that ended
-- meanwhile stays unmarked.
UPDATE dingtalk_sessions s SET
    flushed_seq = @through_seq,
    candidates = (SELECT count(*) FROM dingtalk_session_events e
        WHERE e.session_key = @session_key AND e.seq > @through_seq AND e.candidate),
    flush_epoch = CASE WHEN @last::boolean AND s.gen = @gen::int THEN @flush_epoch::int ELSE s.flush_epoch END,
    flush_count = s.flush_count + CASE WHEN @last::boolean THEN 1 ELSE 0 END,
    flush_failures = 0,
    cut_upkeep = 0,
    updated_at = now()
WHERE s.session_key = @session_key;

-- name: MemoriesHold :many
-- MemoriesHold protects memories from deletion until the transaction ends. It leaves out deleted ones and those that
-- another transaction deletes.
SELECT m.id FROM memories m WHERE m.id = ANY(@ids::bigint[]) FOR KEY SHARE SKIP LOCKED;
