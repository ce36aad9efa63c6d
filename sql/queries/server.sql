-- name: ReadOnly :one
-- ReadOnly reports whether the server takes no writes: it stands by, was demoted, or its keepers closed it to them.
SELECT (current_setting('transaction_read_only') = 'on')::boolean AS read_only;

-- name: ServerIdentity :one
-- ServerIdentity says who answers: the process, and what two addresses of one database have in common.
SELECT current_setting('server_version')::text AS version, pg_backend_pid()::int AS pid,
    concat_ws(' ', current_database(), pg_postmaster_start_time())::text AS identity,
    (current_setting('transaction_read_only') = 'on')::boolean AS read_only;
