-- name: ReadOnly :one
-- ReadOnly reports whether the server accepts no writes: it stands by, was demoted, or its cluster manager made it
-- read-only. clock is the server's.
SELECT (current_setting('transaction_read_only') = 'on')::boolean AS read_only, clock_timestamp()::timestamptz AS clock;

-- name: ServerIdentity :one
-- ServerIdentity returns the answering process, and an identity that all addresses of one database share.
SELECT current_setting('server_version')::text AS version, pg_backend_pid()::int AS pid,
    concat_ws(' ', current_database(), pg_postmaster_start_time())::text AS identity,
    (current_setting('transaction_read_only') = 'on')::boolean AS read_only;

-- name: ReplicasRunning :one
-- ReplicasRunning counts the replicas with a heartbeat in the last seconds.
SELECT count(*)::int AS n FROM replicas r
WHERE r.heartbeat_at BETWEEN now() - interval '1 second' * @seconds::int AND now() + interval '1 second' * @seconds::int;
