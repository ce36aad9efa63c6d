-- name: ConnectionSettings :exec
-- ConnectionSettings configures a connection that is not shared, as far as the server knows the settings. The plan
-- compiler is off: by its cost estimates the server would compile for tens of milliseconds for a search of two. The
-- server drops a client that does not acknowledge data.
SELECT set_config(v.name, v.setting, false)
FROM (VALUES
    ('jit', 'off'), ('tcp_keepalives_idle', '5'), ('tcp_keepalives_interval', '1'), ('tcp_keepalives_count', '3'),
    ('tcp_user_timeout', '3000')) AS v (name, setting)
WHERE current_setting(v.name, true) IS NOT NULL;

-- name: LeaseTake :batchone
-- LeaseTake takes a lease that is free or stale. No row: the caller or another replica holds it.
--
-- The living replicas are an array on purpose. NOT EXISTS would become a join, and when two replicas reach for one lease, the
-- second, having waited for the row, would compare the joined row of before: both would get the lease. A cluster reads the array
-- once on its coordinator, which alone has the heartbeats: they go on while another node is away.
--
-- A term that was not released is broken: its process seems dead.
UPDATE dingtalk_sessions s
SET lease_owner = @owner::text, lease_term = s.lease_term + 1, updated_at = now(),
    fallen_term = CASE WHEN s.lease_owner IS NULL THEN s.fallen_term ELSE s.lease_term END
WHERE s.session_key = @session_key
  AND s.lease_owner IS DISTINCT FROM @owner::text
  AND (s.lease_owner IS NULL OR s.lease_owner <> ALL (ARRAY(
    SELECT r.id FROM replicas r WHERE r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8)))
RETURNING s.lease_term;

-- name: LeaseRead :batchone
SELECT coalesce(s.lease_owner, '')::text AS owner, s.lease_term AS term FROM dingtalk_sessions s WHERE s.session_key = @session_key;

-- name: LeaseLock :one
-- LeaseLock locks the session's row until the transaction ends, if the lease is the current one.
SELECT s.* FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
FOR UPDATE;

-- name: LeaseFree :batchone
-- LeaseFree frees a lease. No row: it is not the current one.
UPDATE dingtalk_sessions s SET lease_owner = NULL, updated_at = now()
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
RETURNING s.session_key;

-- name: LeaseWaits :batchone
-- LeaseWaits reports whether messages wait. Without one the next message takes the lease itself.
SELECT EXISTS (SELECT FROM dingtalk_session_events e WHERE e.session_key = @session_key AND e.state = 'pending') AS waits;

-- name: LeasesIdle :many
-- LeasesIdle lists those of the given sessions that the replica has leased, and which of them can rest: no message waits, no reply is
-- unsent, no compaction is running, and the log is flushed, owed, or too old for a flush.
SELECT h.session_key, h.lease_term AS term, (h.last_active_at <= now() - interval '1 second' * @rest_seconds::float8
    AND (h.flushed_seq >= h.last_seq OR h.last_active_at <= now() - interval '1 second' * @unflushed_seconds::float8
      OR EXISTS (SELECT FROM flush_debts d WHERE d.session_key = h.session_key AND d.through_seq >= h.last_seq))
    AND NOT EXISTS (SELECT FROM dingtalk_session_events e WHERE e.session_key = h.session_key AND e.state = 'pending')
    AND NOT EXISTS (SELECT FROM outbox o WHERE o.session_key = h.session_key AND o.state IN ('sending', 'waiting'))
    AND NOT EXISTS (SELECT FROM compaction_jobs j WHERE j.session_key = h.session_key))::boolean AS rests
FROM dingtalk_sessions h
WHERE h.session_key = ANY(@session_keys::text[]) AND h.lease_owner = @owner::text;

-- name: LeaseSeize :batchexec
-- LeaseSeize locks the session's row. It fails on a locked one, which is in use.
SELECT s.session_key FROM dingtalk_sessions s WHERE s.session_key = @session_key FOR UPDATE NOWAIT;

-- name: LeaseRest :batchone
-- LeaseRest frees a lease that LeasesIdle found, unless a turn or a message came meanwhile.
UPDATE dingtalk_sessions s SET lease_owner = NULL
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
  AND s.last_active_at <= now() - interval '1 second' * @rest_seconds::float8
  AND NOT EXISTS (SELECT FROM dingtalk_session_events e WHERE e.session_key = @session_key AND e.state = 'pending')
  AND NOT EXISTS (SELECT FROM outbox o WHERE o.session_key = @session_key AND o.state IN ('sending', 'waiting'))
  AND NOT EXISTS (SELECT FROM compaction_jobs j WHERE j.session_key = @session_key)
RETURNING s.session_key;

-- name: LeasesFree :execrows
-- LeasesFree frees all leases of a replica.
UPDATE dingtalk_sessions s SET lease_owner = NULL, updated_at = now() WHERE s.lease_owner = @owner::text;

-- name: ReplicaDelete :exec
-- ReplicaDelete deletes the heartbeat of a replica.
DELETE FROM replicas r WHERE r.id = @owner::text;

-- name: ReplicaLeads :one
-- ReplicaLeads finds the leader: among live replicas that do not drain a connected one, and among several the oldest,
-- so that a new one displaces none.
SELECT r.id, r.connected FROM replicas r
WHERE r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8 AND NOT r.draining
ORDER BY r.connected DESC, r.started_at, r.id LIMIT 1;

-- name: ReplicaMark :execrows
-- ReplicaMark stores a replica's status, if it has changed.
UPDATE replicas r SET connected = @connected, draining = @draining
WHERE r.id = @owner AND (r.connected <> @connected OR r.draining <> @draining);

-- name: ReplicaLock :batchexec
-- ReplicaLock locks a replica's row, so that the next statement reads the clock after that: the later of two concurrent heartbeats stays.
SELECT r.id FROM replicas r WHERE r.id = @owner FOR UPDATE;

-- name: ReplicaBeat :batchone
-- ReplicaBeat stores a heartbeat. It does not wait for the disk, since a crash of the server loses only seconds of heartbeats.
INSERT INTO replicas (id, heartbeat_at) VALUES (@owner::text, clock_timestamp())
ON CONFLICT (id) DO UPDATE SET heartbeat_at = EXCLUDED.heartbeat_at
RETURNING heartbeat_at;

-- name: ReplicasExpire :exec
-- ReplicasExpire deletes the heartbeats of replicas that died a day ago.
DELETE FROM replicas r WHERE r.heartbeat_at < now() - interval '1 day';
