SELECT to_regclass('pg_dist_node') IS NOT NULL AND EXISTS (SELECT FROM pg_extension WHERE extname = 'citus');
