SELECT t.relname, pg_total_relation_size(t.relid), t.n_live_tup, t.n_dead_tup
FROM pg_stat_user_tables t ORDER BY pg_total_relation_size(t.relid) DESC
