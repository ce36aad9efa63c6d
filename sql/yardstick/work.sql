-- Bytes of the write-ahead log, pages that it has whole, and the milliseconds in statements of this database. The connection's process is a
-- child of the server's first one. sqlc does not know the view pg_stat_wal.
SELECT pg_backend_pid(), (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint, w.wal_fpi, d.active_time
FROM pg_stat_wal w, pg_stat_database d WHERE d.datname = current_database();
