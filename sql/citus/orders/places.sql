SELECT p.logicalrelid::regclass::text AS name, p.partmethod = 'n' AS reference,
    coalesce(column_to_column_name(p.logicalrelid, p.partkey), '') AS key,
    (SELECT count(*) FROM pg_dist_shard s WHERE s.logicalrelid = p.logicalrelid)::int AS shards
FROM pg_dist_partition p
WHERE p.partmethod = 'h' OR p.partmethod = 'n' AND p.repmodel = 't';
