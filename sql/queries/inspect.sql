-- Inspector reads a whole database under fault injection. No statement here serves a running bot.

-- name: InspectLog :many
-- InspectLog is the whole log of all sessions in the order of their views; events without a place come last.
SELECT e.session_key, e.id, coalesce(e.seq, 0)::bigint AS seq, e.role, e.state, coalesce(e.msg_id, '')::text AS msg_id, e.content
FROM dingtalk_session_events e WHERE e.role IN ('user', 'assistant')
ORDER BY e.session_key, e.seq NULLS LAST, e.id;

-- name: InspectSessions :many
SELECT s.session_key, s.flushed_seq, s.compacted_seq, s.last_seq, s.compaction_count, s.flush_count FROM dingtalk_sessions s
ORDER BY s.session_key;

-- name: InspectTerms :many
SELECT s.session_key, coalesce(s.lease_owner, '')::text AS owner, s.lease_term FROM dingtalk_sessions s;

-- name: InspectOpen :one
-- InspectOpen counts open work: messages without an answer, unsettled replies and cards, and schedules that are due soon. An erased reply was not given up.
SELECT (SELECT count(*) FROM dingtalk_session_events e WHERE e.state = 'pending')::bigint AS messages,
    (SELECT count(*) FROM outbox o WHERE o.state IN ('sending', 'waiting'))::bigint AS replies,
    (SELECT count(*) FROM cards c WHERE c.state = 'open')::bigint AS cards,
    (SELECT count(*) FROM schedules t WHERE t.state = 'active' AND t.due_at < now() + interval '20 seconds')::bigint AS schedules,
    (SELECT count(*) FROM outbox o WHERE o.state = 'failed' AND o.body <> @erased::text)::bigint AS given_up;

-- name: InspectGaps :many
-- InspectGaps lists active summaries that do not begin where the one before them ends, and sessions whose last one does
-- not end at the cursor.
WITH active AS (
    SELECT m.session_key, m.start_seq, m.end_seq,
        coalesce(lag(m.end_seq) OVER (PARTITION BY m.session_key ORDER BY m.start_seq), 0) AS before
    FROM session_summaries m WHERE m.status = 'active'
)
SELECT a.session_key, format('the summary of %s to %s follows %s', a.start_seq, a.end_seq, a.before)::text AS what
FROM active a WHERE a.start_seq <> a.before + 1
UNION ALL
SELECT s.session_key, format('the summaries end at %s and the cursor stands at %s', coalesce(max(a.end_seq), 0), s.compacted_seq)::text
FROM dingtalk_sessions s LEFT JOIN active a ON a.session_key = s.session_key
GROUP BY s.session_key, s.compacted_seq HAVING coalesce(max(a.end_seq), 0) <> s.compacted_seq;

-- name: InspectFacts :many
-- InspectFacts lists the memories in force.
SELECT m.source_session AS session_key, m.scope, m.content FROM memories m WHERE m.superseded_by IS NULL AND m.kind <> 'digest';

-- name: InspectReplies :many
-- InspectReplies lists all replies of all turns, in the order of their commits.
SELECT o.session_key, o.id, o.nonce, o.state, o.body, o.refusals, coalesce(o.target ->> 'conversation_id', '')::text AS conversation_id
FROM outbox o ORDER BY o.session_key, o.id;

-- name: InspectApprovals :many
-- InspectApprovals lists all calls that needed an approval.
SELECT a.* FROM approvals a
ORDER BY a.session_key, a.id;
