-- name: YardstickCommit :exec
-- YardstickCommit is the smallest durable write.
UPDATE yardstick y SET n = y.n + 1 WHERE y.worker = @worker;

-- name: YardstickDelay :one
-- YardstickDelay passes the delay of a commit to yardstick/slow.sql, which takes no parameters. It ends with the
-- transaction.
SELECT set_config('ebb.commit_delay', @micros::text, true)::text AS micros;

-- name: YardstickFill :exec
-- YardstickFill creates a row for each worker.
INSERT INTO yardstick (worker) SELECT generate_series(0, 999) ON CONFLICT DO NOTHING;

-- name: YardstickServer :one
-- YardstickServer is the version of the server and whether it waits for the disk.
SELECT split_part(current_setting('server_version'), ' ', 1)::text AS version,
    current_setting('fsync')::boolean AS durable;
