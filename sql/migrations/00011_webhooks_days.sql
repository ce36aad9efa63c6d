-- Drops webhooks of messages that are done with, and finds a day's events by an index. Oldest release that can run on it: 0.1.

-- +goose NO TRANSACTION
-- +goose Up

-- What came on one day, for its digest. An index is built while others write; a build that was cut off leaves an invalid
-- index behind.
DROP INDEX CONCURRENTLY IF EXISTS events_by_time;
CREATE INDEX CONCURRENTLY events_by_time ON dingtalk_session_events (session_key, created_at) WHERE seq IS NOT NULL;

-- In small transactions, so that no row is locked for long.
-- +goose StatementBegin
DO $$
DECLARE
    after_key text := '';
    after_id bigint := 0;
    seen integer;
BEGIN
    LOOP
        WITH page AS MATERIALIZED (
            SELECT e.session_key, e.id FROM dingtalk_session_events e
            WHERE (e.session_key, e.id) > (after_key, after_id) ORDER BY e.session_key, e.id LIMIT 1000
        ), cleaned AS (
            UPDATE dingtalk_session_events e SET message = e.message - 'webhook' - 'webhook_expires'
            FROM page WHERE e.session_key = page.session_key AND e.id = page.id AND e.state <> 'pending' AND e.message ? 'webhook'
        )
        SELECT count(*), max(last.session_key), max(last.id) INTO seen, after_key, after_id
        FROM page LEFT JOIN (SELECT p.session_key, p.id FROM page p ORDER BY p.session_key DESC, p.id DESC LIMIT 1) last ON true;
        COMMIT;
        EXIT WHEN seen < 1000;
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down

DROP INDEX CONCURRENTLY IF EXISTS events_by_time;
