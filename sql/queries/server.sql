-- name: ReadOnly :one
-- ReadOnly reports whether the server accepts no writes: it stands by, was demoted, or its cluster manager made it
-- read-only. clock is the server's.
SELECT (current_setting('transaction_read_only') = 'on')::boolean AS read_only, clock_timestamp()::timestamptz AS clock;

-- name: ServerIdentity :one
-- ServerIdentity returns the answering process, and an identity that all addresses of one database share.
SELECT current_setting('server_version')::text AS version, pg_backend_pid()::int AS pid,
    concat_ws(' ', current_database(), pg_postmaster_start_time())::text AS identity, current_setting('server_encoding')::text AS encoding,
    (current_setting('transaction_read_only') = 'on')::boolean AS read_only;

-- name: ReplicasRunning :one
-- ReplicasRunning counts the replicas with a heartbeat in the last seconds.
SELECT count(*)::int AS n FROM replicas r
WHERE r.heartbeat_at BETWEEN now() - interval '1 second' * @seconds::int AND now() + interval '1 second' * @seconds::int;

-- name: StalledEnd :one
-- StalledEnd ends connections of this role whose client is silent in the middle of its statements, while others wait for their locks.
-- The server has no bound for that: idle_in_transaction_session_timeout begins when it awaits a new transaction's part. A dump or a
-- restore of this role may be slow, and is left alone: the one writes, and the other copies.
SELECT count(*) FILTER (WHERE pg_terminate_backend(h.pid))::int AS ended
FROM pg_catalog.pg_stat_activity w JOIN pg_catalog.pg_stat_activity h ON h.pid = ANY(pg_blocking_pids(w.pid))
WHERE w.wait_event_type = 'Lock' AND h.wait_event = 'ClientRead' AND h.state = 'active' AND h.query NOT ILIKE 'copy%'
  AND h.datname = current_database() AND h.usename = current_user
  AND h.query_start < clock_timestamp() - interval '1 second' * @seconds::float8
  AND w.query_start < clock_timestamp() - interval '1 second' * @seconds::float8;

-- name: OnCluster :one
-- OnCluster reports whether the database is of a Citus cluster.
SELECT (to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL)::boolean AS cluster;
