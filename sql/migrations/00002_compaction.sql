-- Makes room for generations, views that show bodies shortened, jobs and undo. Oldest release that can run on it: 0.1.

-- +goose Up

ALTER TABLE dingtalk_sessions
    -- Events up to here belong to older generations: they are in no view.
    ADD COLUMN base_seq bigint NOT NULL DEFAULT 0,
    -- Grows with every change of what the view shows of what was said: a size that a turn counted is of one version.
    ADD COLUMN view_version integer NOT NULL DEFAULT 0,
    ADD COLUMN compacted_at timestamptz,
    ADD COLUMN compact_error text NOT NULL DEFAULT '',
    -- What flushes and compactions took on a day, of UTC.
    ADD COLUMN spent_on date,
    ADD COLUMN spent_tokens bigint NOT NULL DEFAULT 0 CHECK (spent_tokens >= 0),
    ADD CONSTRAINT base_within_log CHECK (base_seq BETWEEN 0 AND compacted_seq);

-- What the view shows of an event in place of its content and tokens; NULL where it shows the event as it is. blob_id
-- is the address under which the body is kept for whoever reads the reference in shown. There is no index by it: what
-- looks for an address looks in a view, by places, or, for a body that got lost, through one session's log.
ALTER TABLE dingtalk_session_events
    ADD COLUMN shown text,
    ADD COLUMN shown_tokens integer CHECK (shown_tokens >= 0),
    ADD COLUMN blob_id text CHECK (blob_id <> ''),
    ADD CONSTRAINT shown_is_counted CHECK ((shown IS NOT NULL) = (shown_tokens IS NOT NULL)),
    ADD CONSTRAINT blob_is_referred_to CHECK (blob_id IS NULL OR shown IS NOT NULL);

-- undone: its compaction was taken back. closed: it belongs to an older generation.
ALTER TABLE session_summaries
    DROP CONSTRAINT session_summaries_status_check,
    ADD CONSTRAINT session_summaries_status_check CHECK (status IN ('active', 'superseded', 'undone', 'closed'));

ALTER TABLE compaction_log
    ADD COLUMN gen integer NOT NULL DEFAULT 0,
    ADD COLUMN undone_at timestamptz,
    -- Of an undo: id of the message that asked for it, so that its turn, begun again, takes back nothing more. NULL for
    -- none.
    ADD COLUMN asked_by bigint,
    -- How the view stood before a compaction that committed: cursor, ids of the active summaries, pinned memory, and
    -- what was shown of the events that it shows otherwise.
    ADD COLUMN view_before jsonb,
    -- What only moves results out of the view, or shortens them, has no summary.
    DROP CONSTRAINT committed_has_summary,
    ADD CONSTRAINT summary_is_committed CHECK (summary_id IS NULL OR outcome = 'committed'),
    ADD CONSTRAINT view_before_is_committed CHECK (view_before IS NULL OR outcome = 'committed');

-- Compactions under way, one a session. staged is what came of it, from before it is committed.
CREATE TABLE compaction_jobs (
    session_key text PRIMARY KEY,
    gen         integer NOT NULL,
    from_seq    bigint NOT NULL,
    through_seq bigint NOT NULL,
    source_hash text NOT NULL,
    version     text NOT NULL DEFAULT '',
    attempts    integer NOT NULL DEFAULT 1,
    staged      bytea,
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now(),

    CONSTRAINT job_is_forward CHECK (from_seq <= through_seq)
);

-- Bodies that were moved out of a view, by the hash of what they say. The log has them too, so that nothing is lost
-- with a row of this table.
CREATE TABLE blobs (
    session_key text NOT NULL,
    blob_id     text NOT NULL CHECK (blob_id <> ''),
    body        text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, blob_id)
);

-- +goose Down

DROP TABLE blobs;
DROP TABLE compaction_jobs;

DELETE FROM compaction_log WHERE outcome = 'committed' AND summary_id IS NULL;
ALTER TABLE compaction_log
    DROP CONSTRAINT summary_is_committed,
    DROP CONSTRAINT view_before_is_committed,
    DROP COLUMN gen,
    DROP COLUMN undone_at,
    DROP COLUMN asked_by,
    DROP COLUMN view_before,
    ADD CONSTRAINT committed_has_summary CHECK ((outcome = 'committed') = (summary_id IS NOT NULL));

UPDATE session_summaries SET status = 'superseded', superseded_by = 0 WHERE status IN ('undone', 'closed');
ALTER TABLE session_summaries
    DROP CONSTRAINT session_summaries_status_check,
    ADD CONSTRAINT session_summaries_status_check CHECK (status IN ('active', 'superseded'));

ALTER TABLE dingtalk_session_events
    DROP COLUMN shown,
    DROP COLUMN shown_tokens,
    DROP COLUMN blob_id;

ALTER TABLE dingtalk_sessions
    DROP COLUMN base_seq,
    DROP COLUMN view_version,
    DROP COLUMN compacted_at,
    DROP COLUMN compact_error,
    DROP COLUMN spent_on,
    DROP COLUMN spent_tokens;
