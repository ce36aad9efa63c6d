-- name: ConnectionSettings :exec
-- ConnectionSettings configures a connection that is not shared, as far as the server knows the settings. The plan
-- compiler is off: by its cost estimates the server would compile for tens of milliseconds for a search of two. The
-- server drops a client that does not acknowledge data.
SELECT set_config(p.name, v.setting, false)
FROM pg_catalog.pg_settings p JOIN (VALUES
    ('jit', 'off'), ('tcp_keepalives_idle', '5'), ('tcp_keepalives_interval', '1'), ('tcp_keepalives_count', '3'),
    ('tcp_user_timeout', '3000')) AS v (name, setting) ON v.name = p.name;

-- name: LeaseAcquire :one
-- LeaseAcquire takes a lease that is free or stale. It returns the holder afterwards, the caller or another replica.
--
-- The heartbeat is a scalar on purpose. NOT EXISTS would become a join, and when two replicas reach for one lease, the
-- second, having waited for the row, would compare the joined row of before: both would get the lease.
--
-- A term that was not released is broken: its process seems dead.
WITH taken AS (
    UPDATE dingtalk_sessions s
    SET lease_owner = @owner::text, lease_term = s.lease_term + 1, updated_at = now(),
        fallen_term = CASE WHEN s.lease_owner IS NULL THEN s.fallen_term ELSE s.lease_term END
    WHERE s.session_key = @session_key
      AND s.lease_owner IS DISTINCT FROM @owner::text
      AND coalesce((SELECT r.heartbeat_at FROM replicas r WHERE r.id = s.lease_owner), '-infinity')
        <= now() - interval '1 second' * @ttl_seconds::float8
    RETURNING s.lease_owner, s.lease_term
)
SELECT
    coalesce((SELECT taken.lease_owner FROM taken), s.lease_owner, '')::text AS owner,
    coalesce((SELECT taken.lease_term FROM taken), s.lease_term)::bigint AS term
FROM dingtalk_sessions s
WHERE s.session_key = @session_key;

-- name: LeaseLock :one
-- LeaseLock locks the session's row until the transaction ends, if the lease is the current one.
SELECT s.* FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
FOR UPDATE;

-- name: LeaseRelease :one
-- LeaseRelease frees one lease, if it is the current one; otherwise freed is 0. It notifies every other replica when messages wait. Otherwise
-- the next message takes the lease itself.
WITH freed AS (
    UPDATE dingtalk_sessions s SET lease_owner = NULL, updated_at = now()
    WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
    RETURNING s.session_key
), waiting AS (
    SELECT f.session_key FROM freed f WHERE EXISTS (
        SELECT 1 FROM dingtalk_session_events e WHERE e.session_key = f.session_key AND e.state = 'pending')
)
SELECT (SELECT count(*) FROM freed) AS freed,
    (CASE WHEN w.n > 0 THEN pg_notify('ebb', '|' || @session_key::text)::text END IS NOT NULL)::boolean AS notified
FROM (SELECT count(*) AS n FROM waiting) w;

-- name: LeasesRest :many
-- LeasesRest frees the leases of a replica's idle sessions among those given: no message waits, no reply is unsent, no
-- compaction is running, and the log is flushed, owed, or too old for a flush. A locked row is in use. Sessions that the
-- replica has not leased are listed too, so that it forgets their leases.
WITH resting AS (
    SELECT h.session_key FROM dingtalk_sessions h
    WHERE h.session_key = ANY(@session_keys::text[]) AND h.lease_owner = @owner::text
      AND h.last_active_at <= now() - interval '1 second' * @rest_seconds::float8
      AND (h.flushed_seq >= h.last_seq OR h.last_active_at <= now() - interval '1 second' * @unflushed_seconds::float8
        OR EXISTS (SELECT FROM flush_debts d WHERE d.session_key = h.session_key AND d.through_seq >= h.last_seq))
      AND NOT EXISTS (SELECT FROM dingtalk_session_events e WHERE e.session_key = h.session_key AND e.state = 'pending')
      AND NOT EXISTS (SELECT FROM outbox o WHERE o.session_key = h.session_key AND o.state IN ('sending', 'waiting'))
      AND NOT EXISTS (SELECT FROM compaction_jobs j WHERE j.session_key = h.session_key)
    ORDER BY h.session_key FOR UPDATE SKIP LOCKED
), freed AS (
    UPDATE dingtalk_sessions s SET lease_owner = NULL
    FROM resting WHERE s.session_key = resting.session_key
    RETURNING s.session_key
)
SELECT freed.session_key::text AS session_key FROM freed
UNION ALL
SELECT k.session_key FROM (SELECT unnest(@session_keys::text[]) AS session_key) k
WHERE NOT EXISTS (SELECT FROM dingtalk_sessions s WHERE s.session_key = k.session_key AND s.lease_owner = @owner::text);

-- name: LeasesResign :one
-- LeasesResign frees all leases of a replica, deletes its heartbeat and notifies every other replica.
WITH freed AS (
    UPDATE dingtalk_sessions s SET lease_owner = NULL, updated_at = now()
    WHERE s.lease_owner = @owner::text
    RETURNING s.session_key
), gone AS (
    DELETE FROM replicas r WHERE r.id = @owner::text
)
SELECT f.n, (CASE WHEN f.n > 0 THEN pg_notify('ebb', '|')::text END IS NOT NULL)::boolean AS notified
FROM (SELECT count(*) AS n FROM freed) f;

-- name: ReplicaLeads :one
-- ReplicaLeads finds the leader: among live replicas that do not drain a connected one, and among several the oldest,
-- so that a new one displaces none.
SELECT r.id, r.connected FROM replicas r
WHERE r.heartbeat_at > now() - interval '1 second' * @ttl_seconds::float8 AND NOT r.draining
ORDER BY r.connected DESC, r.started_at, r.id LIMIT 1;

-- name: ReplicaMark :one
-- ReplicaMark stores a replica's status, and notifies every other replica of a change.
WITH marked AS (
    UPDATE replicas r SET connected = @connected, draining = @draining
    WHERE r.id = @owner AND (r.connected <> @connected OR r.draining <> @draining)
    RETURNING r.id
)
SELECT m.n, (CASE WHEN m.n > 0 THEN pg_notify('ebb', '|')::text END IS NOT NULL)::boolean AS notified
FROM (SELECT count(*) AS n FROM marked) m;

-- name: ReplicaBeat :one
-- ReplicaBeat stores a heartbeat, and deletes replicas that died a day ago. It does not wait for the disk, since a
-- crash of the server loses only seconds of heartbeats. The later of two concurrent beats stays.
WITH beat AS (
    INSERT INTO replicas AS r (id, heartbeat_at) VALUES (@owner::text, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET heartbeat_at = greatest(r.heartbeat_at, EXCLUDED.heartbeat_at)
    RETURNING heartbeat_at
), gone AS (
    DELETE FROM replicas r WHERE r.heartbeat_at < now() - interval '1 day' AND r.id <> @owner::text
)
SELECT beat.heartbeat_at, set_config('synchronous_commit', 'off', true)::text AS synchronous_commit FROM beat;
