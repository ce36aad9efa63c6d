-- Makes the tables of sessions, their log and memory. Oldest release that can run on it: 0.1.

-- Every table of a session has session_key first in its primary and unique keys, so that an engine that spreads rows
-- over many servers can keep a session together. For the same reason there are no triggers, no exclusion constraints
-- and no extensions. There are no foreign keys to dingtalk_sessions either: each accepted message would lock the
-- session's row, the one row that a turn's commit must have.

-- +goose Up

-- One row per running process. A heartbeat older than the time to live makes all leases of its owner stale.
CREATE TABLE replicas (
    id           text PRIMARY KEY CHECK (id <> ''),
    started_at   timestamptz NOT NULL DEFAULT now(),
    heartbeat_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE dingtalk_sessions (
    session_key       text PRIMARY KEY CHECK (session_key <> ''),
    robot_code        text NOT NULL,
    conversation_id   text NOT NULL,
    conversation_type text NOT NULL,
    title             text NOT NULL DEFAULT '',

    -- Tokens of the context as it would be sent now.
    total_tokens      integer NOT NULL DEFAULT 0 CHECK (total_tokens >= 0),
    compaction_count  integer NOT NULL DEFAULT 0 CHECK (compaction_count >= 0),
    flush_count       integer NOT NULL DEFAULT 0 CHECK (flush_count >= 0),

    -- The lease. A free one has no owner; the term counts owners and never falls.
    lease_owner       text CHECK (lease_owner <> ''),
    lease_term        bigint NOT NULL DEFAULT 0 CHECK (lease_term >= 0),

    last_seq          bigint NOT NULL DEFAULT 0,
    gen               integer NOT NULL DEFAULT 0,
    compacted_seq     bigint NOT NULL DEFAULT 0,
    flushed_seq       bigint NOT NULL DEFAULT 0,
    -- compaction_count at the last flush; NULL before the first.
    flush_epoch       integer,
    flush_failures    integer NOT NULL DEFAULT 0,
    compact_failures  integer NOT NULL DEFAULT 0,
    compact_retry_at  timestamptz,
    rearm_tokens      integer NOT NULL DEFAULT 0,

    -- What the provider said of the last prompt, and the newest event that it covered.
    observed_tokens   integer NOT NULL DEFAULT 0,
    observed_seq      bigint NOT NULL DEFAULT 0,
    calibration       double precision NOT NULL DEFAULT 1 CHECK (calibration > 0),
    pinned            text NOT NULL DEFAULT '',

    -- Usage of all model calls so far, as reported.
    prompt_tokens     bigint NOT NULL DEFAULT 0,
    cached_tokens     bigint NOT NULL DEFAULT 0,
    completion_tokens bigint NOT NULL DEFAULT 0,
    model             text NOT NULL DEFAULT '',

    last_active_at    timestamptz NOT NULL DEFAULT now(),
    created_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now(),

    CONSTRAINT compacted_within_log CHECK (compacted_seq BETWEEN 0 AND last_seq),
    CONSTRAINT flushed_within_log CHECK (flushed_seq BETWEEN 0 AND last_seq),
    CONSTRAINT observed_within_log CHECK (observed_seq BETWEEN 0 AND last_seq)
) WITH (fillfactor = 80); -- rows change with every turn: room for it on the same page


-- The log and the inbox. Nothing that compaction does deletes or changes a body.
CREATE TABLE dingtalk_session_events (
    session_key  text NOT NULL,
    id           bigint GENERATED ALWAYS AS IDENTITY,
    -- Place in the view; NULL while pending, when dead, and for summaries, whose place is their range.
    seq          bigint CHECK (seq > 0),
    role         text NOT NULL CHECK (role IN ('user', 'assistant', 'tool', 'summary')),
    state        text NOT NULL DEFAULT 'done' CHECK (state IN ('pending', 'done', 'dead')),
    attempts     integer NOT NULL DEFAULT 0,
    content      text NOT NULL DEFAULT '',
    sender_id    text NOT NULL DEFAULT '',
    sender_nick  text NOT NULL DEFAULT '',
    msg_id       text,
    tool_calls   jsonb,
    tool_call_id text NOT NULL DEFAULT '',
    tool_name    text NOT NULL DEFAULT '',
    tokens       integer NOT NULL DEFAULT 0 CHECK (tokens >= 0),
    is_archived  boolean NOT NULL DEFAULT false,
    message      jsonb,
    created_at   timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, id),
    CONSTRAINT only_people_wait CHECK (state = 'done' OR role = 'user'),
    CONSTRAINT place_in_view CHECK ((seq IS NOT NULL) = (state = 'done' AND role <> 'summary')),
    CONSTRAINT people_have_message_ids CHECK ((msg_id IS NOT NULL) = (role = 'user')),
    CONSTRAINT only_assistants_call CHECK (tool_calls IS NULL OR role = 'assistant')
) WITH (fillfactor = 90);

-- Partial, so that each serves the one kind of query that it is for. A plan that was cached while the table was empty
-- takes any index that fits, and reads the whole session through the wrong one until the next ANALYZE. For the same
-- reason dingtalk_sessions has no index but its key: what asks by owner is rare.
CREATE UNIQUE INDEX dingtalk_session_events_msg_id ON dingtalk_session_events (session_key, msg_id) WHERE msg_id IS NOT NULL;
CREATE UNIQUE INDEX dingtalk_session_events_seq ON dingtalk_session_events (session_key, seq) WHERE seq IS NOT NULL;
CREATE INDEX dingtalk_session_events_pending ON dingtalk_session_events (session_key, id) WHERE state = 'pending';
CREATE INDEX dingtalk_session_events_dead ON dingtalk_session_events (session_key, id) WHERE state = 'dead';

CREATE TABLE session_summaries (
    session_key   text NOT NULL,
    id            bigint GENERATED ALWAYS AS IDENTITY,
    gen           integer NOT NULL,
    level         integer NOT NULL DEFAULT 0 CHECK (level >= 0),
    start_seq     bigint NOT NULL CHECK (start_seq > 0),
    end_seq       bigint NOT NULL,
    start_msg_id  bigint NOT NULL,
    end_msg_id    bigint NOT NULL,
    msg_count     integer NOT NULL CHECK (msg_count > 0),
    summary       text NOT NULL CHECK (summary <> ''),
    tokens        integer NOT NULL CHECK (tokens >= 0),
    model         text NOT NULL DEFAULT '',
    status        text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'superseded')),
    superseded_by bigint,
    created_at    timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, id),
    CONSTRAINT range_is_forward CHECK (start_seq <= end_seq),
    CONSTRAINT superseded_by_one CHECK ((superseded_by IS NOT NULL) = (status = 'superseded'))
);

-- Two active summaries never begin, nor end, at the same event. That they lie end to end is the compaction's work.
CREATE UNIQUE INDEX session_summaries_active ON session_summaries (session_key, start_seq) WHERE status = 'active';
CREATE UNIQUE INDEX session_summaries_active_end ON session_summaries (session_key, end_seq) WHERE status = 'active';

CREATE TABLE compaction_log (
    session_key       text NOT NULL,
    id                bigint GENERATED ALWAYS AS IDENTITY,
    trigger           text NOT NULL DEFAULT '',
    policy            text NOT NULL DEFAULT '',
    mode              text NOT NULL DEFAULT '',
    model             text NOT NULL DEFAULT '',
    focus             text NOT NULL DEFAULT '',
    tokens_before     integer NOT NULL DEFAULT 0,
    tokens_after      integer NOT NULL DEFAULT 0,
    start_seq         bigint NOT NULL DEFAULT 0,
    end_seq           bigint NOT NULL DEFAULT 0,
    summary_id        bigint,
    flush_outcome     text NOT NULL DEFAULT '',
    audit             jsonb,
    duration_ms       bigint NOT NULL DEFAULT 0,
    cost              double precision NOT NULL DEFAULT 0,
    prompt_tokens     integer NOT NULL DEFAULT 0,
    cached_tokens     integer NOT NULL DEFAULT 0,
    completion_tokens integer NOT NULL DEFAULT 0,
    outcome           text NOT NULL CHECK (outcome IN ('committed', 'rejected', 'failed', 'nothing')),
    error             text NOT NULL DEFAULT '',
    created_at        timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, id),
    CONSTRAINT committed_has_summary CHECK ((outcome = 'committed') = (summary_id IS NOT NULL))
);

CREATE INDEX compaction_log_created_at ON compaction_log (created_at);

-- Replies between the commit of their turn and DingTalk's word that they arrived.
CREATE TABLE outbox (
    session_key text NOT NULL,
    id          bigint GENERATED ALWAYS AS IDENTITY,
    target      jsonb NOT NULL,
    body        text NOT NULL,
    nonce       text NOT NULL DEFAULT '',
    -- sending: sender has it in hand; a row that another sender left so may have arrived. waiting: tried, and to be
    -- tried again at next_at.
    state       text NOT NULL CHECK (state IN ('sending', 'waiting', 'sent', 'failed')),
    sender      text NOT NULL,
    resumed     boolean NOT NULL DEFAULT false,
    attempts    integer NOT NULL DEFAULT 0,
    part        integer NOT NULL DEFAULT 0,
    via         text NOT NULL DEFAULT '',
    error       text NOT NULL DEFAULT '',
    next_at     timestamptz NOT NULL DEFAULT now(),
    created_at  timestamptz NOT NULL DEFAULT now(),
    settled_at  timestamptz,

    PRIMARY KEY (session_key, id),
    CONSTRAINT settled_or_open CHECK ((settled_at IS NOT NULL) = (state IN ('sent', 'failed')))
) WITH (fillfactor = 80);

CREATE INDEX outbox_open ON outbox (session_key, id) WHERE state IN ('sending', 'waiting');

-- Tool calls of turns that have not committed: written before a call runs, gone with the turn's commit.
CREATE TABLE tool_runs (
    session_key text NOT NULL,
    event_id    bigint NOT NULL,
    call_id     text NOT NULL,
    name        text NOT NULL,
    arguments   text NOT NULL,
    finished    boolean NOT NULL DEFAULT false,
    result      text NOT NULL DEFAULT '',
    started_at  timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, event_id, call_id)
);

-- Ranges that should have been flushed into memory and were not: at most one a session, ending where the next flush must reach.
CREATE TABLE flush_debts (
    session_key text PRIMARY KEY,
    from_seq    bigint NOT NULL,
    through_seq bigint NOT NULL,
    failures    integer NOT NULL DEFAULT 0,
    reason      text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now(),

    CONSTRAINT debt_is_forward CHECK (from_seq < through_seq)
);

CREATE INDEX flush_debts_created_at ON flush_debts (created_at);

-- Memories belong to a scope, not to a session, so the scope comes first in their keys.
CREATE TABLE memories (
    scope          text NOT NULL CHECK (scope IN ('user', 'group', 'team', 'session')),
    scope_id       text NOT NULL,
    id             bigint GENERATED ALWAYS AS IDENTITY,
    kind           text NOT NULL,
    content        text NOT NULL CHECK (content <> ''),
    -- Hash of the normalised content: what makes two memories the same fact.
    norm_hash      bytea NOT NULL,
    subject_id     text NOT NULL DEFAULT '',
    source_session text NOT NULL,
    start_seq      bigint NOT NULL DEFAULT 0,
    end_seq        bigint NOT NULL DEFAULT 0,
    superseded_by  bigint,
    created_at     timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (scope, scope_id, id),
    CONSTRAINT source_is_forward CHECK (start_seq <= end_seq)
);

CREATE UNIQUE INDEX memories_in_force ON memories (scope, scope_id, norm_hash) WHERE superseded_by IS NULL;

-- +goose Down

DROP TABLE memories;
DROP TABLE flush_debts;
DROP TABLE tool_runs;
DROP TABLE outbox;
DROP TABLE compaction_log;
DROP TABLE session_summaries;
DROP TABLE dingtalk_session_events;
DROP TABLE dingtalk_sessions;
DROP TABLE replicas;
