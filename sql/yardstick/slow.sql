-- A database's settings take no parameters: the delay comes from YardstickDelay in the same transaction.
DO $$
BEGIN
    EXECUTE format('ALTER DATABASE %I SET commit_siblings = 0', current_database());
    EXECUTE format('ALTER DATABASE %I SET commit_delay = %L', current_database(), current_setting('ebb.commit_delay'));
END
$$;
