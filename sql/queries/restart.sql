-- name: RestartOpen :exec
-- RestartOpen begins the account of a process. Accounts of a quarter of a year ago go.
WITH gone AS (
    DELETE FROM restarts r WHERE r.started_at < now() - interval '90 days'
)
INSERT INTO restarts (replica) VALUES (@replica) ON CONFLICT (replica) DO NOTHING;

-- name: RestartKeep :exec
-- RestartKeep stores the figures of a process, and its end when ending names it. A process that was taken for dead and
-- lives is running again, and its end is still to be reported.
UPDATE restarts r SET
    told = r.told AND @ending::text <> '',
    ending = @ending::text, stopped_at = CASE WHEN @ending::text = '' THEN NULL ELSE now() END,
    answered = @answered, drained = @drained, flushed = @flushed, debt = @debt, resumed = @resumed, redelivered = @redelivered,
    doubled = @doubled, lost = @lost
WHERE r.replica = @replica;

-- name: ReplicasBeats :many
SELECT r.id, r.heartbeat_at, (r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8)::boolean AS alive FROM replicas r;

-- name: RestartsEnded :many
-- RestartsEnded closes the accounts of processes whose heartbeats stopped, and returns each ended one to one caller. Ids and beats
-- of all replicas are parallel arrays.
WITH dead AS (
    UPDATE restarts r SET ending = 'killed', told = true,
        stopped_at = greatest(r.started_at, coalesce(
            (SELECT p.beat FROM (SELECT unnest(@ids::text[]) AS id, unnest(@beats::timestamptz[]) AS beat) p WHERE p.id = r.replica), now()))
    WHERE r.ending = '' AND r.replica <> ALL(@alive::text[])
      AND r.started_at < now() - interval '1 second' * @ttl_seconds::float8
    RETURNING r.*
), clean AS (
    UPDATE restarts r SET told = true WHERE NOT r.told AND r.ending <> '' RETURNING r.*
)
SELECT * FROM dead UNION ALL SELECT * FROM clean ORDER BY stopped_at, replica;

-- name: RestartsList :many
SELECT r.* FROM restarts r ORDER BY r.started_at DESC, r.replica LIMIT @max_rows::int;

-- name: EventsGone :one
-- EventsGone counts the given messages that are not in the log, though their session is as old as they are. Keys, ids
-- and ages in seconds are parallel arrays.
SELECT count(*)::bigint AS n
FROM (SELECT unnest(@keys::text[]) AS session_key, unnest(@ids::bigint[]) AS id, unnest(@ages::float8[]) AS age) m
JOIN dingtalk_sessions s ON s.session_key = m.session_key AND s.created_at <= now() - interval '1 second' * m.age
WHERE NOT EXISTS (SELECT FROM dingtalk_session_events e WHERE e.session_key = s.session_key AND e.id = m.id);
