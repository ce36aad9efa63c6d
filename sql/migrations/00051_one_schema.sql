-- Makes the tables of a turn cheaper to write, and removes places for older releases. No older release can run on it.

-- +goose Up

-- model_usage has the same usage.
DROP TABLE model_spend;

-- The files of these steps are gone. A release that has them would take the schema for its own: it ends at its start instead.
DELETE FROM goose_db_version WHERE version_id BETWEEN 1 AND 44;

-- Each statement that writes a row reads all of its table's CHECKs first. The stores hold what these said.
ALTER TABLE dingtalk_session_events
    DROP CONSTRAINT blob_is_referred_to, DROP CONSTRAINT dingtalk_session_events_blob_id_check, DROP CONSTRAINT dingtalk_session_events_role_check,
    DROP CONSTRAINT dingtalk_session_events_seq_check, DROP CONSTRAINT dingtalk_session_events_shown_tokens_check,
    DROP CONSTRAINT dingtalk_session_events_state_check, DROP CONSTRAINT dingtalk_session_events_tokens_check, DROP CONSTRAINT only_assistants_call,
    DROP CONSTRAINT only_people_wait, DROP CONSTRAINT people_have_message_ids, DROP CONSTRAINT place_in_view, DROP CONSTRAINT shown_is_counted;
ALTER TABLE dingtalk_sessions
    DROP CONSTRAINT base_within_log, DROP CONSTRAINT compacted_within_log, DROP CONSTRAINT flushed_within_log, DROP CONSTRAINT observed_within_log,
    DROP CONSTRAINT dingtalk_sessions_calibration_check, DROP CONSTRAINT dingtalk_sessions_compaction_count_check,
    DROP CONSTRAINT dingtalk_sessions_flush_count_check, DROP CONSTRAINT dingtalk_sessions_lease_owner_check,
    DROP CONSTRAINT dingtalk_sessions_lease_term_check, DROP CONSTRAINT dingtalk_sessions_session_key_check,
    DROP CONSTRAINT dingtalk_sessions_settings_check, DROP CONSTRAINT dingtalk_sessions_spent_tokens_check,
    DROP CONSTRAINT dingtalk_sessions_total_tokens_check,
    ADD CONSTRAINT cursors_within_log CHECK (0 <= base_seq AND base_seq <= compacted_seq AND compacted_seq <= last_seq
        AND 0 <= flushed_seq AND flushed_seq <= last_seq AND 0 <= observed_seq AND observed_seq <= last_seq);
ALTER TABLE outbox DROP CONSTRAINT outbox_state_check, DROP CONSTRAINT settled_or_open;
ALTER TABLE cards
    DROP CONSTRAINT card_settled_or_open, DROP CONSTRAINT cards_kind_check, DROP CONSTRAINT cards_rating_check, DROP CONSTRAINT cards_state_check;

-- One index for rare rows, in place of three, and one for rows without current terms, in place of two.
CREATE INDEX events_open ON dingtalk_session_events (state, session_key, id) WHERE state <> 'done' OR withheld IS NOT NULL;
DROP INDEX dingtalk_session_events_pending;
DROP INDEX dingtalk_session_events_dead;
DROP INDEX events_withheld;
DROP INDEX events_unindexed;
CREATE INDEX events_unindexed ON dingtalk_session_events (session_key, seq)
    WHERE (terms IS NULL OR terms_version < 2) AND seq IS NOT NULL AND role IN ('user', 'assistant');
DROP INDEX events_outdated_terms;
