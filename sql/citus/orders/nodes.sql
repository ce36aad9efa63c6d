SELECT (SELECT groupid FROM pg_dist_local_group) = 0 AS coordinator,
    EXISTS (SELECT FROM pg_dist_node WHERE groupid = 0) AS registered,
    (SELECT count(*) FROM pg_dist_node WHERE groupid <> 0 AND shouldhaveshards AND noderole = 'primary')::int AS workers;
