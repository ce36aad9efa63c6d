SELECT count(pg_terminate_backend(a.pid)) FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
