-- The compactions of each session, one for each step of events, the last part left: each with a summary and a flush that
-- saved one memory of the session, if it has any. The last eighth of a session's attempts failed.
WITH planned AS (
    SELECT s.session_key, n.gen, (n.gen * $1::bigint + 1) AS start_seq, (n.gen + 1) * $1::bigint AS end_seq,
        now() - interval '90 days' * (1 - (n.gen + 1)::float8 / (s.last_seq / $1::bigint + 1)) AS at
    FROM dingtalk_sessions s, generate_series(0, s.last_seq / $1::bigint - 1) AS n (gen)
), written AS (
    INSERT INTO session_summaries (session_key, gen, start_seq, end_seq, start_msg_id, end_msg_id, msg_count, summary, tokens, model, created_at)
    SELECT p.session_key, p.gen, p.start_seq, p.end_seq, 1, 1, $1::int, repeat('decisions, names and open questions of these messages. ', 20), 260, 'main', p.at
    FROM planned p RETURNING session_key, id, gen, start_seq, end_seq, created_at
), flushed AS (
    INSERT INTO memory_flushes (session_key, trigger, from_seq, through_seq, saved, created_at)
    SELECT w.session_key, 'compaction', w.start_seq - 1, w.end_seq, ARRAY[1 + w.id % 20000], w.created_at FROM written w
), logged AS (
    INSERT INTO compaction_log (session_key, trigger, policy, mode, model, tokens_before, tokens_after, start_seq, end_seq, summary_id,
        flush_outcome, audit, duration_ms, cost, outcome, created_at)
    SELECT w.session_key, 'threshold', 'balanced', 'summary_only', 'main', 7600, 2400, w.start_seq, w.end_seq, w.id, 'saved 1, known 0',
        '{"kept": ["PO-1"], "lost": []}'::jsonb, 1800, 0.004, 'committed', w.created_at
    FROM written w
    UNION ALL
    SELECT w.session_key, 'threshold', 'balanced', 'summary_only', 'main', 7600, 7600, w.start_seq, w.end_seq, NULL::bigint, '', NULL::jsonb, 1800, 0.004,
        'failed', w.created_at - interval '1 minute'
    FROM written w WHERE w.gen % 8 = 7
), used AS (
    INSERT INTO model_usage (session_key, day, kind, model, person, prompt_tokens, completion_tokens, cost)
    SELECT DISTINCT w.session_key, w.created_at::date, 'summary', 'main', 'console-u' || (hashtext(w.session_key) & 127) * 4 + p.n, 1900, 65, 0.001
    FROM written w, generate_series(1, 4) AS p (n)
)
UPDATE dingtalk_sessions s SET
    compaction_count = s.last_seq / $1::bigint, compacted_seq = s.last_seq / $1::bigint * $1::bigint,
    flushed_seq = s.last_seq / $1::bigint * $1::bigint, total_tokens = 2400, title = 'group ' || s.conversation_id,
    last_active_at = now() - interval '1 minute' * (hashtext(s.session_key) & 65535);
