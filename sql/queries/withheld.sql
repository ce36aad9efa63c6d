-- name: Withhold :one
-- Withhold marks events and summaries that a model refuses, and replaces the session's suspicion of a time. A newer one stays. The view of a running turn is
-- another one from then on. No row: the lease is not the current one.
WITH held AS (
    UPDATE dingtalk_sessions s SET
        view_version = s.view_version + 1, suspicion = CASE WHEN s.suspicion ->> 'at' = @settles::text THEN nullif(@suspicion::text, '')::jsonb ELSE s.suspicion END,
        pinned_due = s.pinned_due OR @pin::boolean, updated_at = now()
    WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
    RETURNING s.session_key
), events AS (
    UPDATE dingtalk_session_events e SET withheld = coalesce(e.withheld, '{}') || t.mark::jsonb
    FROM held, (SELECT unnest(@seqs::bigint[]) AS seq, unnest(@marks::text[]) AS mark) t
    WHERE e.session_key = @session_key AND e.seq = t.seq AND e.content <> @erased::text
), summaries AS (
    UPDATE session_summaries a SET withheld = coalesce(a.withheld, '{}') || @mark::jsonb
    FROM held
    WHERE a.session_key = @session_key AND a.id = ANY(@summaries::bigint[]) AND a.summary <> @erased::text
)
SELECT held.session_key FROM held;

-- name: MemoriesWithhold :exec
-- MemoriesWithhold marks facts that a model refuses.
UPDATE memories m SET withheld = coalesce(m.withheld, '{}') || @mark::jsonb WHERE m.id = ANY(@ids::bigint[]);

-- name: EventsWithheld :one
-- EventsWithheld counts the events of a session's generation that a model refuses, whole or in part, and reads the newest one. An empty
-- model stands for any.
SELECT count(*)::int AS events,
    coalesce((array_agg(e.seq ORDER BY e.seq DESC))[1], 0)::bigint AS seq,
    coalesce((array_agg(e.sender_id ORDER BY e.seq DESC))[1], '')::text AS sender_id,
    coalesce((array_agg(e.sender_nick ORDER BY e.seq DESC))[1], '')::text AS sender_nick,
    coalesce((array_agg(e.role ORDER BY e.seq DESC))[1], '')::text AS role,
    coalesce(max(e.created_at), now())::timestamptz AS created_at
FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.state = 'done' AND e.withheld IS NOT NULL AND e.seq IS NOT NULL
  AND (@model::text = '' OR jsonb_exists(e.withheld, @model::text))
  AND e.seq > (SELECT s.base_seq FROM dingtalk_sessions s WHERE s.session_key = @session_key);

-- name: SummariesWithheld :one
-- SummariesWithheld counts the summaries of a session's view that a model refuses. An empty model stands for any.
SELECT count(*)::int FROM session_summaries a
WHERE a.session_key = @session_key AND a.status = 'active' AND a.withheld IS NOT NULL
  AND (@model::text = '' OR jsonb_exists(a.withheld, @model::text));

-- name: MemoriesWithheld :one
-- MemoriesWithheld counts the facts in force from a session that a model refuses. An empty model stands for any.
SELECT count(*)::int FROM memories m
WHERE m.source_session = @session_key::text AND m.superseded_by IS NULL AND m.withheld IS NOT NULL
  AND (@model::text = '' OR jsonb_exists(m.withheld, @model::text));
