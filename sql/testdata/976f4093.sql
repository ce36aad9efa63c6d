-- A database as a release of commit 976f4093 left it, version 45 of the schema, with rows in each table. The schema is that of pg_dump,
-- folded; the rows are made by hand.

CREATE TABLE api_calls (
    month text NOT NULL, api text NOT NULL, count bigint NOT NULL,
    CONSTRAINT api_calls_count_check CHECK ((count >= 0)),
    PRIMARY KEY (month, api)
);
CREATE TABLE api_days (
    day text NOT NULL, api text NOT NULL, count bigint NOT NULL,
    CONSTRAINT api_days_count_check CHECK ((count >= 0)),
    PRIMARY KEY (day, api)
);
CREATE TABLE api_months (
    month text NOT NULL, calls bigint DEFAULT 0 NOT NULL, quota bigint NOT NULL, level integer DEFAULT 0 NOT NULL,
    exhausted_until timestamptz,
    CONSTRAINT api_months_calls_check CHECK ((calls >= 0)),
    PRIMARY KEY (month)
);
CREATE TABLE audit (
    session_key text DEFAULT '' NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY, at timestamptz NOT NULL DEFAULT now(),
    actor text NOT NULL, action text NOT NULL, detail text DEFAULT '' NOT NULL, outcome text DEFAULT '' NOT NULL,
    PRIMARY KEY (session_key, id)
);
CREATE TABLE blobs (
    session_key text NOT NULL, blob_id text NOT NULL, body text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT blobs_blob_id_check CHECK ((blob_id <> '')),
    PRIMARY KEY (session_key, blob_id)
);
CREATE TABLE cards (
    session_key text NOT NULL, out_track_id text NOT NULL, state text DEFAULT 'open'::text NOT NULL, turn_event_id bigint NOT NULL,
    next_at timestamptz NOT NULL DEFAULT now(), prepaid boolean DEFAULT true NOT NULL, rating text DEFAULT '' NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(), settled_at timestamptz, kind text DEFAULT 'card'::text NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    CONSTRAINT card_settled_or_open CHECK (((settled_at IS NOT NULL) = (state <> 'open'::text))),
    CONSTRAINT cards_kind_check CHECK ((kind = ANY (ARRAY['card'::text, 'reaction'::text]))),
    CONSTRAINT cards_rating_check CHECK ((rating = ANY (ARRAY['', 'good'::text, 'bad'::text]))),
    CONSTRAINT cards_state_check CHECK ((state = ANY (ARRAY['open'::text, 'finished'::text, 'failed'::text, 'given_up'::text]))),
    PRIMARY KEY (session_key, out_track_id)
);
CREATE TABLE compaction_jobs (
    session_key text NOT NULL, gen integer NOT NULL, from_seq bigint NOT NULL, through_seq bigint NOT NULL,
    source_hash text NOT NULL, version text DEFAULT '' NOT NULL, attempts integer DEFAULT 1 NOT NULL, staged bytea,
    created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT job_is_forward CHECK ((from_seq <= through_seq)),
    PRIMARY KEY (session_key)
);
CREATE TABLE compaction_log (
    session_key text NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY, trigger text DEFAULT '' NOT NULL,
    policy text DEFAULT '' NOT NULL, mode text DEFAULT '' NOT NULL, model text DEFAULT '' NOT NULL, focus text DEFAULT '' NOT NULL,
    tokens_before integer DEFAULT 0 NOT NULL, tokens_after integer DEFAULT 0 NOT NULL, start_seq bigint DEFAULT 0 NOT NULL,
    end_seq bigint DEFAULT 0 NOT NULL, summary_id bigint, flush_outcome text DEFAULT '' NOT NULL, audit jsonb,
    duration_ms bigint DEFAULT 0 NOT NULL, cost float8 DEFAULT 0 NOT NULL, prompt_tokens integer DEFAULT 0 NOT NULL,
    cached_tokens integer DEFAULT 0 NOT NULL, completion_tokens integer DEFAULT 0 NOT NULL, outcome text NOT NULL,
    error text DEFAULT '' NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), gen integer DEFAULT 0 NOT NULL,
    undone_at timestamptz, asked_by bigint, view_before jsonb, flush_id bigint, requested_by text DEFAULT '' NOT NULL,
    CONSTRAINT compaction_log_outcome_check CHECK ((outcome = ANY (ARRAY['committed'::text, 'rejected'::text, 'failed'::text, 'nothing'::text]))),
    CONSTRAINT summary_is_committed CHECK (((summary_id IS NULL) OR (outcome = 'committed'::text))),
    CONSTRAINT view_before_is_committed CHECK (((view_before IS NULL) OR (outcome = 'committed'::text))),
    PRIMARY KEY (session_key, id)
);
CREATE TABLE compaction_requests (
    session_key text NOT NULL, settings text DEFAULT '' NOT NULL, focus text DEFAULT '' NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now(), started_at timestamptz, attempts integer DEFAULT 0 NOT NULL,
    requested_by text DEFAULT '' NOT NULL, PRIMARY KEY (session_key)
);
CREATE TABLE console_login_states (
    state_hash bytea NOT NULL, next text NOT NULL, expires_at timestamptz NOT NULL, PRIMARY KEY (state_hash)
);
CREATE TABLE console_logins (
    token_hash bytea NOT NULL, role text NOT NULL, actor text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL, nick text DEFAULT '' NOT NULL,
    CONSTRAINT console_logins_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'viewer'::text, 'person'::text]))),
    PRIMARY KEY (token_hash)
);
CREATE TABLE deleted_messages (
    message bytea NOT NULL, deleted_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (message)
);
CREATE TABLE dingtalk_session_events (
    session_key text NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY, seq bigint, role text NOT NULL,
    state text DEFAULT 'done'::text NOT NULL, attempts integer DEFAULT 0 NOT NULL, content text DEFAULT '' NOT NULL,
    sender_id text DEFAULT '' NOT NULL, sender_nick text DEFAULT '' NOT NULL, msg_id text, tool_calls jsonb,
    tool_call_id text DEFAULT '' NOT NULL, tool_name text DEFAULT '' NOT NULL, tokens integer DEFAULT 0 NOT NULL,
    is_archived boolean DEFAULT false NOT NULL, message jsonb, created_at timestamptz NOT NULL DEFAULT now(), shown text,
    shown_tokens integer, blob_id text, terms bigint[], candidate boolean DEFAULT false NOT NULL, attempt_term bigint,
    counted_term bigint, sent_at timestamptz NOT NULL DEFAULT now(), terms_version smallint DEFAULT 1 NOT NULL,
    CONSTRAINT blob_is_referred_to CHECK (((blob_id IS NULL) OR (shown IS NOT NULL))),
    CONSTRAINT dingtalk_session_events_blob_id_check CHECK ((blob_id <> '')),
    CONSTRAINT dingtalk_session_events_role_check CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text, 'tool'::text, 'summary'::text]))),
    CONSTRAINT dingtalk_session_events_seq_check CHECK ((seq > 0)),
    CONSTRAINT dingtalk_session_events_shown_tokens_check CHECK ((shown_tokens >= 0)),
    CONSTRAINT dingtalk_session_events_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'done'::text, 'dead'::text]))),
    CONSTRAINT dingtalk_session_events_tokens_check CHECK ((tokens >= 0)),
    CONSTRAINT only_assistants_call CHECK (((tool_calls IS NULL) OR (role = 'assistant'::text))),
    CONSTRAINT only_people_wait CHECK (((state = 'done'::text) OR (role = 'user'::text))),
    CONSTRAINT people_have_message_ids CHECK (((msg_id IS NOT NULL) = (role = 'user'::text))),
    CONSTRAINT place_in_view CHECK (((seq IS NOT NULL) = ((state = 'done'::text) AND (role <> 'summary'::text)))),
    CONSTRAINT shown_is_counted CHECK (((shown IS NOT NULL) = (shown_tokens IS NOT NULL))),
    PRIMARY KEY (session_key, id)
) WITH (fillfactor=90);
CREATE TABLE dingtalk_sessions (
    session_key text NOT NULL, robot_code text NOT NULL, conversation_id text NOT NULL, conversation_type text NOT NULL,
    title text DEFAULT '' NOT NULL, total_tokens integer DEFAULT 0 NOT NULL, compaction_count integer DEFAULT 0 NOT NULL,
    flush_count integer DEFAULT 0 NOT NULL, lease_owner text, lease_term bigint DEFAULT 0 NOT NULL,
    last_seq bigint DEFAULT 0 NOT NULL, gen integer DEFAULT 0 NOT NULL, compacted_seq bigint DEFAULT 0 NOT NULL,
    flushed_seq bigint DEFAULT 0 NOT NULL, flush_epoch integer, flush_failures integer DEFAULT 0 NOT NULL,
    compact_failures integer DEFAULT 0 NOT NULL, compact_retry_at timestamptz, rearm_tokens integer DEFAULT 0 NOT NULL,
    observed_tokens integer DEFAULT 0 NOT NULL, observed_seq bigint DEFAULT 0 NOT NULL, calibration float8 DEFAULT 1 NOT NULL,
    pinned text DEFAULT '' NOT NULL, prompt_tokens bigint DEFAULT 0 NOT NULL, cached_tokens bigint DEFAULT 0 NOT NULL,
    completion_tokens bigint DEFAULT 0 NOT NULL, model text DEFAULT '' NOT NULL, last_active_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(),
    base_seq bigint DEFAULT 0 NOT NULL, view_version integer DEFAULT 0 NOT NULL, compacted_at timestamptz,
    compact_error text DEFAULT '' NOT NULL, spent_on date, spent_tokens bigint DEFAULT 0 NOT NULL,
    candidates integer DEFAULT 0 NOT NULL, pinned_due boolean DEFAULT true NOT NULL, fallen_term bigint DEFAULT 0 NOT NULL,
    settings jsonb, cut_turns integer DEFAULT 0 NOT NULL, upkeep_term bigint DEFAULT 0 NOT NULL, upkeep_until timestamptz,
    cut_upkeep integer DEFAULT 0 NOT NULL,
    CONSTRAINT base_within_log CHECK (((base_seq >= 0) AND (base_seq <= compacted_seq))),
    CONSTRAINT compacted_within_log CHECK (((compacted_seq >= 0) AND (compacted_seq <= last_seq))),
    CONSTRAINT dingtalk_sessions_calibration_check CHECK ((calibration > (0)::float8)),
    CONSTRAINT dingtalk_sessions_compaction_count_check CHECK ((compaction_count >= 0)),
    CONSTRAINT dingtalk_sessions_flush_count_check CHECK ((flush_count >= 0)),
    CONSTRAINT dingtalk_sessions_lease_owner_check CHECK ((lease_owner <> '')),
    CONSTRAINT dingtalk_sessions_lease_term_check CHECK ((lease_term >= 0)),
    CONSTRAINT dingtalk_sessions_session_key_check CHECK ((session_key <> '')),
    CONSTRAINT dingtalk_sessions_settings_check CHECK ((jsonb_typeof(settings) = 'object'::text)),
    CONSTRAINT dingtalk_sessions_spent_tokens_check CHECK ((spent_tokens >= 0)),
    CONSTRAINT dingtalk_sessions_total_tokens_check CHECK ((total_tokens >= 0)),
    CONSTRAINT flushed_within_log CHECK (((flushed_seq >= 0) AND (flushed_seq <= last_seq))),
    CONSTRAINT observed_within_log CHECK (((observed_seq >= 0) AND (observed_seq <= last_seq))),
    PRIMARY KEY (session_key)
) WITH (fillfactor=80);
CREATE TABLE embedding_cursors (
    session_key text NOT NULL, model text NOT NULL, through_seq bigint NOT NULL, PRIMARY KEY (session_key, model)
);
CREATE TABLE embeddings (
    scope_key text NOT NULL, content_hash bytea NOT NULL, model text NOT NULL, vec real[] NOT NULL, small bytea NOT NULL,
    seq bigint DEFAULT 0 NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (scope_key, model, content_hash)
);
ALTER TABLE embeddings ALTER COLUMN vec SET STORAGE EXTERNAL;
CREATE TABLE flush_debts (
    session_key text NOT NULL, from_seq bigint NOT NULL, through_seq bigint NOT NULL, failures integer DEFAULT 0 NOT NULL,
    reason text DEFAULT '' NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT debt_is_forward CHECK ((from_seq < through_seq)),
    PRIMARY KEY (session_key)
);
CREATE TABLE goose_db_version (
    id integer GENERATED BY DEFAULT AS IDENTITY, version_id bigint NOT NULL, is_applied boolean NOT NULL,
    tstamp timestamp NOT NULL DEFAULT now(), PRIMARY KEY (id)
);
CREATE TABLE group_scopes (
    group_key text NOT NULL, scope text NOT NULL, updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT group_scopes_scope_check CHECK ((scope = ANY (ARRAY['group'::text, 'member'::text]))),
    PRIMARY KEY (group_key)
);
CREATE TABLE limit_windows (
    subject bytea NOT NULL, ends_at timestamptz NOT NULL, used bigint DEFAULT 0 NOT NULL, noticed text DEFAULT '' NOT NULL,
    PRIMARY KEY (subject)
);
CREATE TABLE memories (
    scope text NOT NULL, scope_id text NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY, kind text NOT NULL, content text NOT NULL,
    norm_hash bytea NOT NULL, subject_id text DEFAULT '' NOT NULL, source_session text NOT NULL,
    start_seq bigint DEFAULT 0 NOT NULL, end_seq bigint DEFAULT 0 NOT NULL, superseded_by bigint,
    created_at timestamptz NOT NULL DEFAULT now(), fact_key text DEFAULT '' NOT NULL, said_by text DEFAULT '' NOT NULL,
    said_at timestamptz, source_group text DEFAULT '' NOT NULL, expires_at timestamptz,
    last_seen_at timestamptz NOT NULL DEFAULT now(), seen integer DEFAULT 1 NOT NULL, superseded_at timestamptz,
    promoted_by text DEFAULT '' NOT NULL, consolidated boolean DEFAULT false NOT NULL, terms bigint[],
    terms_version smallint DEFAULT 1 NOT NULL,
    CONSTRAINT memories_content_check CHECK ((content <> '')),
    CONSTRAINT memories_scope_check CHECK ((scope = ANY (ARRAY['user'::text, 'group'::text, 'team'::text, 'session'::text]))),
    CONSTRAINT source_is_forward CHECK ((start_seq <= end_seq)),
    PRIMARY KEY (scope, scope_id, id)
);
CREATE TABLE memory_digests (
    session_key text NOT NULL, day date NOT NULL, memory_id bigint, attempts integer DEFAULT 0 NOT NULL,
    error text DEFAULT '' NOT NULL, done boolean DEFAULT false NOT NULL, updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (session_key, day)
);
CREATE TABLE memory_flushes (
    session_key text NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY, trigger text DEFAULT '' NOT NULL,
    gen integer DEFAULT 0 NOT NULL, epoch integer DEFAULT 0 NOT NULL, from_seq bigint NOT NULL, through_seq bigint NOT NULL,
    saved bigint[] DEFAULT '{}'::bigint[] NOT NULL, duplicate bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    superseded bigint[] DEFAULT '{}'::bigint[] NOT NULL, model text DEFAULT '' NOT NULL, prompt_tokens bigint DEFAULT 0 NOT NULL,
    completion_tokens bigint DEFAULT 0 NOT NULL, created_at timestamptz NOT NULL DEFAULT now(),
    cached_tokens bigint DEFAULT 0 NOT NULL, cost float8 DEFAULT 0 NOT NULL, PRIMARY KEY (session_key, id)
);
CREATE TABLE model_spend (
    session_key text NOT NULL, day date NOT NULL, kind text NOT NULL, prompt_tokens bigint DEFAULT 0 NOT NULL,
    cached_tokens bigint DEFAULT 0 NOT NULL, completion_tokens bigint DEFAULT 0 NOT NULL, cost float8 DEFAULT 0 NOT NULL,
    turns bigint DEFAULT 0 NOT NULL, PRIMARY KEY (session_key, day, kind)
);
ALTER TABLE model_spend ADD CONSTRAINT model_spend_kind_check CHECK ((kind = ANY (ARRAY['turn'::text, 'flush'::text, 'summary'::text, 'digest'::text, 'consolidation'::text]))) NOT VALID;
COMMENT ON TABLE model_spend IS 'Written by older releases only; model_usage has the same usage.';
CREATE TABLE model_usage (
    session_key text NOT NULL, day date NOT NULL, kind text NOT NULL, model text DEFAULT '' NOT NULL,
    person text DEFAULT '' NOT NULL, prompt_tokens bigint DEFAULT 0 NOT NULL, cached_tokens bigint DEFAULT 0 NOT NULL,
    completion_tokens bigint DEFAULT 0 NOT NULL, cost float8 DEFAULT 0 NOT NULL, turns bigint DEFAULT 0 NOT NULL,
    PRIMARY KEY (session_key, day, kind, model, person)
);
CREATE TABLE outbox (
    session_key text NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY, target jsonb NOT NULL, body text NOT NULL,
    nonce text DEFAULT '' NOT NULL, state text NOT NULL, sender text NOT NULL, resumed boolean DEFAULT false NOT NULL,
    attempts integer DEFAULT 0 NOT NULL, part integer DEFAULT 0 NOT NULL, via text DEFAULT '' NOT NULL,
    error text DEFAULT '' NOT NULL, next_at timestamptz NOT NULL DEFAULT now(), created_at timestamptz NOT NULL DEFAULT now(),
    settled_at timestamptz, joint text DEFAULT '' NOT NULL, in_flight boolean DEFAULT true NOT NULL,
    refusals integer DEFAULT 0 NOT NULL,
    CONSTRAINT outbox_state_check CHECK ((state = ANY (ARRAY['sending'::text, 'waiting'::text, 'sent'::text, 'failed'::text]))),
    CONSTRAINT settled_or_open CHECK (((settled_at IS NOT NULL) = (state = ANY (ARRAY['sent'::text, 'failed'::text])))),
    PRIMARY KEY (session_key, id)
) WITH (fillfactor=80);
CREATE TABLE person_erasures (
    person bytea NOT NULL, day date NOT NULL, times integer DEFAULT 1 NOT NULL, PRIMARY KEY (person, day)
);
CREATE TABLE replicas (
    id text NOT NULL, started_at timestamptz NOT NULL DEFAULT now(), heartbeat_at timestamptz NOT NULL DEFAULT now(),
    draining boolean DEFAULT false NOT NULL, connected boolean DEFAULT false NOT NULL,
    CONSTRAINT replicas_id_check CHECK ((id <> '')),
    PRIMARY KEY (id)
);
CREATE TABLE restarts (
    replica text NOT NULL, started_at timestamptz NOT NULL DEFAULT now(), stopped_at timestamptz, ending text DEFAULT '' NOT NULL,
    told boolean DEFAULT false NOT NULL, answered bigint DEFAULT 0 NOT NULL, drained bigint DEFAULT 0 NOT NULL,
    flushed bigint DEFAULT 0 NOT NULL, debt bigint DEFAULT 0 NOT NULL, resumed bigint DEFAULT 0 NOT NULL,
    redelivered bigint DEFAULT 0 NOT NULL, doubled bigint DEFAULT 0 NOT NULL, lost bigint DEFAULT 0 NOT NULL,
    CONSTRAINT ended_or_running CHECK (((ending = '') = (stopped_at IS NULL))),
    CONSTRAINT restarts_ending_check CHECK ((ending = ANY (ARRAY['', 'clean'::text, 'killed'::text]))),
    CONSTRAINT restarts_replica_check CHECK ((replica <> '')),
    PRIMARY KEY (replica)
);
CREATE TABLE schedule_numbers (
    session_key text NOT NULL, last bigint NOT NULL, PRIMARY KEY (session_key)
);
CREATE TABLE schedules (
    session_key text NOT NULL, id bigint NOT NULL, state text DEFAULT 'active'::text NOT NULL, kind text NOT NULL,
    due_at timestamptz NOT NULL, spec text NOT NULL, text text NOT NULL, created_by text NOT NULL, creator jsonb NOT NULL,
    origin text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), settled_at timestamptz,
    CONSTRAINT schedule_settled_or_active CHECK (((settled_at IS NULL) = (state = 'active'::text))),
    CONSTRAINT schedules_kind_check CHECK ((kind = ANY (ARRAY['remind'::text, 'ask'::text]))),
    CONSTRAINT schedules_state_check CHECK ((state = ANY (ARRAY['active'::text, 'done'::text, 'cancelled'::text, 'refused'::text]))),
    PRIMARY KEY (session_key, id)
);
CREATE TABLE sender_ids (
    sender_id text NOT NULL, robot_code text NOT NULL, staff_id text NOT NULL, seen_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (sender_id, robot_code, staff_id)
);
CREATE TABLE session_summaries (
    session_key text NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY, gen integer NOT NULL, level integer DEFAULT 0 NOT NULL,
    start_seq bigint NOT NULL, end_seq bigint NOT NULL, start_msg_id bigint NOT NULL, end_msg_id bigint NOT NULL,
    msg_count integer NOT NULL, summary text NOT NULL, tokens integer NOT NULL, model text DEFAULT '' NOT NULL,
    status text DEFAULT 'active'::text NOT NULL, superseded_by bigint, created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT range_is_forward CHECK ((start_seq <= end_seq)),
    CONSTRAINT session_summaries_level_check CHECK ((level >= 0)),
    CONSTRAINT session_summaries_msg_count_check CHECK ((msg_count > 0)),
    CONSTRAINT session_summaries_start_seq_check CHECK ((start_seq > 0)),
    CONSTRAINT session_summaries_status_check CHECK ((status = ANY (ARRAY['active'::text, 'superseded'::text, 'undone'::text, 'closed'::text]))),
    CONSTRAINT session_summaries_summary_check CHECK ((summary <> '')),
    CONSTRAINT session_summaries_tokens_check CHECK ((tokens >= 0)),
    CONSTRAINT superseded_by_one CHECK (((superseded_by IS NOT NULL) = (status = 'superseded'::text))),
    PRIMARY KEY (session_key, id)
);
CREATE TABLE tool_runs (
    session_key text NOT NULL, event_id bigint NOT NULL, call_id text NOT NULL, name text NOT NULL, arguments text NOT NULL,
    finished boolean DEFAULT false NOT NULL, result text DEFAULT '' NOT NULL, started_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (session_key, event_id, call_id)
);
CREATE INDEX audit_by_actor ON audit (actor, at);
CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX audit_id ON audit (id);
CREATE INDEX audit_of_members ON audit (split_part(session_key, '/'::text, 3)) WHERE (split_part(session_key, '/'::text, 3) <> '');
CREATE INDEX cards_given_up ON cards (settled_at) WHERE (state = 'given_up'::text);
CREATE INDEX cards_open ON cards (session_key, out_track_id) WHERE (state = 'open'::text);
CREATE INDEX cards_settled ON cards (settled_at) WHERE (state <> 'open'::text);
CREATE INDEX cards_track ON cards (out_track_id);
CREATE INDEX compaction_log_by_requester ON compaction_log (requested_by) WHERE (requested_by <> '');
CREATE INDEX compaction_log_by_time ON compaction_log (created_at, id);
CREATE INDEX compaction_log_views ON compaction_log (session_key, id) WHERE (view_before IS NOT NULL);
CREATE INDEX digests_of_memories ON memory_digests (memory_id) WHERE (memory_id IS NOT NULL);
CREATE INDEX dingtalk_session_events_dead ON dingtalk_session_events (session_key, id) WHERE (state = 'dead'::text);
CREATE UNIQUE INDEX dingtalk_session_events_msg_id ON dingtalk_session_events (session_key, msg_id) WHERE (msg_id IS NOT NULL);
CREATE INDEX dingtalk_session_events_pending ON dingtalk_session_events (session_key, id) WHERE (state = 'pending'::text);
CREATE UNIQUE INDEX dingtalk_session_events_seq ON dingtalk_session_events (session_key, seq) WHERE (seq IS NOT NULL);
CREATE INDEX embeddings_hash ON embeddings (content_hash);
CREATE INDEX embeddings_model ON embeddings (model);
CREATE INDEX events_at_time ON dingtalk_session_events (session_key, created_at) WHERE ((seq IS NOT NULL) AND (created_at IS NOT NULL));
CREATE INDEX events_by_nick ON dingtalk_session_events (sender_nick, sender_id) WHERE ((role = 'user'::text) AND (sender_id <> ''));
CREATE INDEX events_of_person_by_id ON dingtalk_session_events (sender_id, id) WHERE (sender_id <> '');
CREATE INDEX events_of_person_by_time ON dingtalk_session_events (sender_id, session_key, sent_at, id) WHERE (sender_id <> '');
CREATE INDEX events_outdated_terms ON dingtalk_session_events (session_key, id) WHERE ((terms_version < 2) AND (terms IS NOT NULL) AND (seq IS NOT NULL) AND (role = ANY (ARRAY['user'::text, 'assistant'::text])));
CREATE INDEX events_quoting_person ON dingtalk_session_events (((message #>> '{quote,sender_id}'::text[])), session_key) WHERE ((message #>> '{quote,sender_id}'::text[]) <> '');
CREATE INDEX events_terms ON dingtalk_session_events USING gin (terms) WITH (fastupdate=off);
CREATE INDEX events_unindexed ON dingtalk_session_events (session_key, seq) WHERE ((terms IS NULL) AND (seq IS NOT NULL) AND (role = ANY (ARRAY['user'::text, 'assistant'::text])));
CREATE INDEX events_with_quotes ON dingtalk_session_events (session_key, id) WHERE ((message -> 'quote'::text) IS NOT NULL);
CREATE INDEX flush_debts_created_at ON flush_debts (created_at);
CREATE INDEX memories_about ON memories (subject_id, id) WHERE (subject_id <> '');
CREATE INDEX memories_by_last_seen ON memories (last_seen_at);
CREATE INDEX memories_consolidated ON memories (scope, scope_id, created_at) WHERE consolidated;
CREATE INDEX memories_expiring ON memories (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX memories_id ON memories (id);
CREATE UNIQUE INDEX memories_in_force ON memories (scope, scope_id, norm_hash) WHERE (superseded_by IS NULL);
CREATE INDEX memories_outdated_terms ON memories (scope, scope_id, id) WHERE ((terms_version < 2) AND (terms IS NOT NULL));
CREATE INDEX memories_promoted_by ON memories (promoted_by, id) WHERE (promoted_by <> '');
CREATE INDEX memories_said ON memories (source_group, id) WHERE ((scope = 'user'::text) AND (source_group <> ''));
CREATE INDEX memories_said_by ON memories (said_by, id) WHERE (said_by <> '');
CREATE INDEX memories_source ON memories (source_session, end_seq);
CREATE INDEX memories_terms ON memories USING gin (terms) WITH (fastupdate=off);
CREATE INDEX memories_unindexed ON memories (scope, scope_id, id) WHERE (terms IS NULL);
CREATE INDEX model_spend_by_day ON model_spend (day);
CREATE INDEX model_usage_by_day ON model_usage (day);
CREATE INDEX model_usage_by_person ON model_usage (person) WHERE (person <> '');
CREATE INDEX outbox_by_settled ON outbox (settled_at) WHERE (settled_at IS NOT NULL);
CREATE INDEX outbox_open ON outbox (session_key, id) WHERE (state = ANY (ARRAY['sending'::text, 'waiting'::text]));
CREATE INDEX outbox_settled_by_time ON outbox (session_key, created_at) WHERE (settled_at IS NOT NULL);
CREATE INDEX outbox_settled_to_person ON outbox (((target ->> 'staff_id'::text)), session_key) WHERE ((state = ANY (ARRAY['sent'::text, 'failed'::text])) AND ((target ->> 'staff_id'::text) <> ''));
CREATE INDEX restarts_started_at ON restarts (started_at);
CREATE INDEX schedules_by_age ON schedules (created_at, session_key, id);
CREATE INDEX schedules_by_creator ON schedules (created_by);
CREATE INDEX schedules_due ON schedules (due_at) WHERE (state = 'active'::text);
CREATE UNIQUE INDEX schedules_origin ON schedules (session_key, origin);
CREATE INDEX schedules_settled ON schedules (settled_at) WHERE (state <> 'active'::text);
CREATE INDEX sender_ids_of_staff ON sender_ids (staff_id);
CREATE UNIQUE INDEX session_summaries_active ON session_summaries (session_key, start_seq) WHERE (status = 'active'::text);
CREATE UNIQUE INDEX session_summaries_active_end ON session_summaries (session_key, end_seq) WHERE (status = 'active'::text);
CREATE INDEX sessions_of_conversation ON dingtalk_sessions (conversation_id, robot_code);

INSERT INTO goose_db_version (version_id, is_applied) SELECT v, true FROM generate_series(0, 45) v ORDER BY v;

-- A group in the middle of its life: summaries of two generations, offloaded results, a tool call, quotes, waiting and dead messages.
-- A member's own session there, a private chat, and a group that only a deleted session left traces of.
INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, title, total_tokens, compaction_count, flush_count, lease_owner, lease_term,
    last_seq, gen, base_seq, compacted_seq, flushed_seq, flush_epoch, observed_tokens, observed_seq, calibration, pinned, pinned_due, prompt_tokens, cached_tokens,
    completion_tokens, model, view_version, compacted_at, spent_on, spent_tokens, candidates, fallen_term, settings, cut_turns, upkeep_term, upkeep_until,
    last_active_at, created_at, updated_at) VALUES
    ('robot/cidOps==', 'robot', 'cidOps==', '2', '支付网关值班', 1240, 3, 2, 'replica-a', 9, 12, 1, 2, 6, 8, 2, 1190, 11, 1.07, '灰度集群的代号是 heron-77。', false, 48211, 1200,
        2210, 'qwen-plus', 4, '2026-11-20 10:00+00', '2026-11-21', 830, 2, 7, '{"auto_compact_threshold": 4000, "policy": "turns"}', 1, 9, '2026-11-21 09:00+00',
        '2026-11-21 08:30+00', '2026-11-01 08:00+00', '2026-11-21 08:30+00'),
    ('robot/cidOps==/staff2', 'robot', 'cidOps==', '2', '支付网关值班', 90, 0, 0, NULL, 2, 2, 0, 0, 0, 0, NULL, 0, 0, 1, '', true, 300, 0, 40, 'qwen-plus', 0, NULL, NULL, 0, 1, 0, NULL,
        0, 0, NULL, '2026-11-20 08:30+00', '2026-11-20 08:00+00', '2026-11-20 08:30+00'),
    ('robot/cidDM==', 'robot', 'cidDM==', '1', '张伟', 60, 0, 1, NULL, 3, 2, 0, 0, 0, 2, 0, 55, 2, 1, '', false, 210, 0, 30, 'qwen-plus', 0, NULL, NULL, 0, 0, 2, NULL, 0, 0, NULL,
        '2026-11-19 02:30+00', '2026-11-19 02:00+00', '2026-11-19 02:30+00');
UPDATE dingtalk_sessions SET compact_failures = 2, compact_retry_at = '2026-11-21 10:00+00', compact_error = 'no gain: gains too little', rearm_tokens = 1500, flush_failures = 1
    WHERE session_key = 'robot/cidOps==';

INSERT INTO dingtalk_session_events (session_key, id, seq, role, state, attempts, content, sender_id, sender_nick, msg_id, tool_calls, tool_call_id, tool_name, tokens,
    is_archived, message, shown, shown_tokens, blob_id, terms, candidate, attempt_term, counted_term, terms_version, created_at, sent_at) OVERRIDING SYSTEM VALUE VALUES
    ('robot/cidOps==', 1, 1, 'user', 'done', 0, '旧的一代：值班表在哪？', 'staff1', '张伟', 'msg01', NULL, '', '', 12, true,
        '{"robot_code": "robot", "conversation_id": "cidOps==", "conversation_type": "2", "conversation_title": "支付网关值班", "msg_id": "msg01", "sender_id": "staff1", "staff_id": "staff1", "encrypted_id": "$:enc1", "sender_nick": "张伟", "kind": "text", "text": "旧的一代：值班表在哪？", "sent_at": "2026-11-18T08:00:00Z"}',
        NULL, NULL, NULL, '{11,12}', false, NULL, NULL, 2, '2026-11-18 08:00+00', '2026-11-18 08:00+00'),
    ('robot/cidOps==', 2, 2, 'assistant', 'done', 0, '在群文件里。', '', '', NULL, NULL, '', '', 8, true, NULL, NULL, NULL, NULL, '{13}', false, NULL, NULL, 1, '2026-11-18 08:00:05+00', '2026-11-18 08:00:05+00'),
    ('robot/cidOps==', 3, 3, 'user', 'done', 0, '查一下昨晚的超时报警', 'staff2', '李娜', 'msg02', NULL, '', '', 14, true,
        '{"robot_code": "robot", "conversation_id": "cidOps==", "conversation_type": "2", "msg_id": "msg02", "sender_id": "staff2", "staff_id": "staff2", "sender_nick": "李娜", "sender_admin": true, "kind": "text", "text": "查一下昨晚的超时报警", "sent_at": "2026-11-20T08:01:00Z", "mentioned": ["staff1"]}',
        NULL, NULL, NULL, '{14,15,16}', true, NULL, NULL, 2, '2026-11-20 08:01+00', '2026-11-20 08:01+00'),
    ('robot/cidOps==', 4, 4, 'assistant', 'done', 0, '', '', '', NULL, '[{"id": "call_1", "name": "query_history", "arguments": "{\"days\": 1}"}]', '', '', 20, true, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, 2,
        '2026-11-20 08:01:09+00', '2026-11-20 08:01:09+00'),
    ('robot/cidOps==', 5, 5, 'tool', 'done', 0, '节点 3 的连接池耗尽，共 48213 次超时。', '', '', NULL, NULL, 'call_1', 'query_history', 900, true, NULL, '[48213 次超时，见 blob 7f3a]', 12, '7f3a', NULL, false, NULL,
        NULL, 2, '2026-11-20 08:01:09+00', '2026-11-20 08:01:09+00'),
    ('robot/cidOps==', 6, 6, 'assistant', 'done', 0, '连接池耗尽，已经扩容。', '', '', NULL, NULL, '', '', 16, true, NULL, NULL, NULL, NULL, '{15,17}', false, NULL, NULL, 2, '2026-11-20 08:01:09+00', '2026-11-20 08:01:09+00'),
    ('robot/cidOps==', 7, NULL, 'summary', 'done', 0, '查了超时，扩容了。', '', '', NULL, NULL, '', '', 12, false, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, 1, '2026-11-20 10:00+00', '2026-11-20 10:00+00'),
    ('robot/cidOps==', 8, 7, 'user', 'done', 1, '[引用 李娜: 查一下昨晚的超时报警]
结论发我一份', 'staff1', '张伟（值班）', 'msg03', NULL, '', '', 22, false,
        '{"robot_code": "robot", "conversation_id": "cidOps==", "conversation_type": "2", "msg_id": "msg03", "sender_id": "staff1", "staff_id": "staff1", "encrypted_id": "$:enc1", "sender_nick": "张伟（值班）", "kind": "text", "text": "[引用 李娜: 查一下昨晚的超时报警]\n结论发我一份", "quote": {"msg_id": "msg02", "sender_id": "staff2", "nick": "李娜", "kind": "text", "text": "查一下昨晚的超时报警"}, "sent_at": "2026-11-21T08:00:00Z"}',
        NULL, NULL, NULL, '{15,16,18}', true, 8, 7, 2, '2026-11-21 08:00+00', '2026-11-21 08:00+00'),
    ('robot/cidOps==', 9, 8, 'assistant', 'done', 0, '好的，已发给你。', '', '', NULL, NULL, '', '', 9, false, NULL, NULL, NULL, NULL, '{18}', false, NULL, NULL, 2, '2026-11-21 08:00:07+00', '2026-11-21 08:00:07+00'),
    ('robot/cidOps==', 10, 9, 'user', 'done', 0, '/status', 'staff2', '李娜', 'msg04', NULL, '', '', 3, false,
        '{"robot_code": "robot", "conversation_id": "cidOps==", "conversation_type": "2", "msg_id": "msg04", "sender_id": "staff2", "staff_id": "staff2", "sender_nick": "李娜", "kind": "text", "text": "/status", "sent_at": "2026-11-21T08:10:00Z", "outcome": "limited"}',
        NULL, NULL, NULL, NULL, false, NULL, NULL, 2, '2026-11-21 08:10+00', '2026-11-21 08:10+00'),
    ('robot/cidOps==', 11, 10, 'assistant', 'done', 0, '会话正常。', '', '', NULL, NULL, '', '', 6, false, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, 2, '2026-11-21 08:10:01+00', '2026-11-21 08:10:01+00'),
    ('robot/cidOps==', 12, 11, 'user', 'done', 0, '看下截图 [图片]', '$:enc9', '外部客户王', 'msg05', NULL, '', '', 9, false,
        '{"robot_code": "robot", "conversation_id": "cidOps==", "conversation_type": "2", "msg_id": "msg05", "sender_id": "$:enc9", "external": true, "sender_nick": "外部客户王", "kind": "picture", "text": "看下截图 [图片]", "attachments": [{"kind": "picture", "code": "abc"}], "sent_at": "2026-11-21T08:20:00Z"}',
        NULL, NULL, NULL, NULL, false, NULL, NULL, 1, '2026-11-21 08:20+00', '2026-11-21 08:20+00'),
    ('robot/cidOps==', 13, 12, 'assistant', 'done', 0, '图片里是 502 页面。', '', '', NULL, NULL, '', '', 11, false, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, 1, '2026-11-21 08:20:04+00', '2026-11-21 08:20:04+00'),
    ('robot/cidOps==', 14, NULL, 'user', 'pending', 0, '现在恢复了吗？', 'staff1', '张伟', 'msg06', NULL, '', '', 0, false,
        '{"robot_code": "robot", "conversation_id": "cidOps==", "conversation_type": "2", "conversation_title": "支付网关值班", "msg_id": "msg06", "sender_id": "staff1", "staff_id": "staff1", "encrypted_id": "$:enc1", "sender_nick": "张伟", "kind": "text", "text": "现在恢复了吗？", "sent_at": "2026-11-21T08:29:00Z", "webhook": "https://oapi.dingtalk.com/robot/sendBySession?session=x", "webhook_expires": "2026-11-21T10:00:00Z"}',
        NULL, NULL, NULL, NULL, false, 9, NULL, 1, '2026-11-21 08:29+00', '2026-11-21 08:29+00'),
    ('robot/cidOps==', 15, NULL, 'user', 'dead', 3, '让进程崩溃的消息', 'staff2', '李娜', 'msg07', NULL, '', '', 0, false,
        '{"robot_code": "robot", "conversation_id": "cidOps==", "conversation_type": "2", "msg_id": "msg07", "sender_id": "staff2", "staff_id": "staff2", "sender_nick": "李娜", "kind": "text", "text": "让进程崩溃的消息", "sent_at": "2026-11-20T09:00:00Z"}',
        NULL, NULL, NULL, NULL, false, NULL, NULL, 1, '2026-11-20 09:00+00', '2026-11-20 09:00+00'),
    ('robot/cidOps==', 16, NULL, 'user', 'dead', 0, '[已删除]', '', '', 'msg08', NULL, '', '', 4, false, '{"kind": "text", "text": "[已删除]", "msg_id": "msg08", "robot_code": "robot", "conversation_id": "cidOps==", "conversation_type": "2", "sent_at": "2026-11-20T09:10:00Z"}',
        NULL, NULL, NULL, NULL, false, NULL, NULL, 1, '2026-11-20 09:10+00', '2026-11-20 09:10+00'),
    ('robot/cidOps==/staff2', 17, 1, 'user', 'done', 0, '我的工位号是 A-217', 'staff2', '李娜', 'msg11', NULL, '', '', 10, false,
        '{"robot_code": "robot", "conversation_id": "cidOps==", "conversation_type": "2", "msg_id": "msg11", "sender_id": "staff2", "staff_id": "staff2", "sender_nick": "李娜", "kind": "text", "text": "我的工位号是 A-217", "sent_at": "2026-11-20T08:30:00Z"}',
        NULL, NULL, NULL, NULL, true, NULL, NULL, 1, '2026-11-20 08:30+00', '2026-11-20 08:30+00'),
    ('robot/cidOps==/staff2', 18, 2, 'assistant', 'done', 0, '记下了。', '', '', NULL, NULL, '', '', 5, false, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, 1, '2026-11-20 08:30:04+00', '2026-11-20 08:30:04+00'),
    ('robot/cidDM==', 19, 1, 'user', 'done', 0, '[定时 2026-11-19 10:00]
提醒我交周报', 'staff1', '张伟', 'schedule-1-1', NULL, '', '', 15, false,
        '{"robot_code": "robot", "conversation_id": "cidDM==", "conversation_type": "1", "msg_id": "schedule-1-1", "sender_id": "staff1", "staff_id": "staff1", "sender_nick": "张伟", "kind": "text", "text": "[定时 2026-11-19 10:00]\n提醒我交周报", "sent_at": "2026-11-19T02:00:00Z", "scheduled": {"id": 1, "kind": "remind", "due_at": "2026-11-19T10:00:00+08:00", "lang": "zh"}}',
        NULL, NULL, NULL, NULL, false, NULL, NULL, 2, '2026-11-19 02:00+00', '2026-11-19 02:00+00'),
    ('robot/cidDM==', 20, 2, 'assistant', 'done', 0, '该交周报了。', '', '', NULL, NULL, '', '', 7, false, NULL, NULL, NULL, NULL, '{19}', false, NULL, NULL, 2, '2026-11-19 02:00:02+00', '2026-11-19 02:00:02+00');

INSERT INTO tool_runs (session_key, event_id, call_id, name, arguments, finished, result, started_at) VALUES
    ('robot/cidOps==', 14, 'call_7', 'memory_search', '{"query": "恢复"}', true, '没有找到', '2026-11-21 08:29:03+00'),
    ('robot/cidOps==', 14, 'call_8', 'memory_save', '{"text": "x"}', false, '', '2026-11-21 08:29:04+00');
INSERT INTO deleted_messages (message, deleted_at) VALUES (sha256(convert_to('robot/cidGone== msg90', 'UTF8')), '2026-11-21 07:00+00');

INSERT INTO session_summaries (session_key, id, gen, level, start_seq, end_seq, start_msg_id, end_msg_id, msg_count, summary, tokens, model, status, superseded_by, created_at)
    OVERRIDING SYSTEM VALUE VALUES
    ('robot/cidOps==', 1, 0, 0, 1, 2, 1, 2, 2, '问了值班表。', 8, 'qwen-plus', 'closed', NULL, '2026-11-19 10:00+00'),
    ('robot/cidOps==', 2, 1, 0, 3, 4, 3, 4, 2, '问了超时。', 7, 'qwen-plus', 'superseded', 4, '2026-11-20 09:30+00'),
    ('robot/cidOps==', 3, 1, 0, 3, 6, 3, 6, 4, '试过的摘要。', 7, 'qwen-plus', 'undone', NULL, '2026-11-20 09:40+00'),
    ('robot/cidOps==', 4, 1, 1, 3, 6, 3, 6, 4, '查了超时：节点 3 的连接池耗尽，48213 次，已扩容。', 24, 'qwen-plus', 'active', NULL, '2026-11-20 10:00+00');
INSERT INTO blobs (session_key, blob_id, body, created_at) VALUES ('robot/cidOps==', '7f3a', '节点 3 的连接池耗尽，共 48213 次超时。', '2026-11-20 09:00+00');
INSERT INTO compaction_jobs (session_key, gen, from_seq, through_seq, source_hash, version, attempts, staged, created_at, updated_at) VALUES
    ('robot/cidOps==', 1, 6, 8, 'h6-8', 'v3', 2, '\x1f8b', '2026-11-21 08:12+00', '2026-11-21 08:13+00');
INSERT INTO compaction_requests (session_key, settings, focus, requested_at, started_at, attempts, requested_by) VALUES
    ('robot/cidOps==', '{"policy": "turns"}', '报警', '2026-11-21 08:11+00', '2026-11-21 08:12+00', 1, 'cli:root');
INSERT INTO compaction_log (session_key, id, trigger, policy, mode, model, focus, tokens_before, tokens_after, start_seq, end_seq, summary_id, flush_outcome, audit, duration_ms, cost,
    prompt_tokens, cached_tokens, completion_tokens, outcome, error, created_at, gen, undone_at, asked_by, view_before, flush_id, requested_by) OVERRIDING SYSTEM VALUE VALUES
    ('robot/cidOps==', 1, 'new', 'token_budget', 'auto', 'qwen-plus', '', 60, 0, 1, 2, 1, 'saved', NULL, 800, 0.01, 300, 0, 40, 'committed', '', '2026-11-19 10:00+00', 0, NULL, NULL, NULL, 1, ''),
    ('robot/cidOps==', 2, 'command', 'turns', 'manual', 'qwen-plus', '', 1500, 900, 3, 6, 3, '', NULL, 700, 0.01, 900, 100, 60, 'committed', '', '2026-11-20 09:40+00', 1, '2026-11-20 09:50+00', NULL,
        '{"cursor": 4, "summaries": [2], "pinned": ""}', NULL, 'staff2'),
    ('robot/cidOps==', 3, 'undo', '', '', '', '', 900, 1500, 0, 0, NULL, '', NULL, 3, 0, 0, 0, 0, 'nothing', '', '2026-11-20 09:50+00', 1, NULL, 10, NULL, NULL, 'staff2'),
    ('robot/cidOps==', 4, 'threshold', 'turns', 'auto', 'qwen-plus', '报警', 4100, 1240, 3, 6, 4, 'saved', '{"missing": []}', 1900, 0.02, 3000, 0, 200, 'committed', '', '2026-11-20 10:00+00', 1, NULL, NULL,
        '{"cursor": 4, "summaries": [2], "pinned": "灰度集群的代号是 heron-77。", "shown": [{"seq": 5, "text": null, "tokens": 0}]}', 2, ''),
    ('robot/cidOps==', 5, 'threshold', 'turns', 'auto', 'qwen-plus', '', 4200, 0, 7, 8, NULL, 'empty', NULL, 500, 0.01, 100, 0, 9, 'failed', 'no gain: gains too little', '2026-11-21 08:00+00', 1, NULL, NULL, NULL, NULL, '');

INSERT INTO memories (scope, scope_id, id, kind, content, norm_hash, subject_id, source_session, start_seq, end_seq, superseded_by, created_at, fact_key, said_by, said_at, source_group,
    expires_at, last_seen_at, seen, superseded_at, promoted_by, consolidated, terms, terms_version) OVERRIDING SYSTEM VALUE VALUES
    ('group', 'robot/cidOps==', 1, 'fact', '灰度集群的代号是 heron-76。', '\x01', '', 'robot/cidOps==', 1, 2, 2, '2026-11-18 09:00+00', '灰度集群代号', 'staff1', '2026-11-18 08:00+00', 'robot/cidOps==', NULL,
        '2026-11-18 09:00+00', 1, '2026-11-20 09:00+00', '', false, '{101,102}', 2),
    ('group', 'robot/cidOps==', 2, 'fact', '灰度集群的代号是 heron-77。', '\x02', '', 'robot/cidOps==', 3, 6, NULL, '2026-11-20 09:00+00', '灰度集群代号', 'staff2', '2026-11-20 08:01+00', 'robot/cidOps==', NULL,
        '2026-11-20 09:00+00', 3, NULL, '', true, '{101,103}', 2),
    ('user', 'staff2', 3, 'profile', '李娜负责支付网关的值班。', '\x03', 'staff2', 'robot/cidOps==', 3, 3, NULL, '2026-11-20 09:00+00', '', 'staff2', '2026-11-20 08:01+00', 'robot/cidOps==', NULL,
        '2026-11-20 09:00+00', 1, NULL, '', false, NULL, 1),
    ('user', 'staff1', 4, 'task', '张伟周五前交周报。', '\x04', 'staff1', 'robot/cidDM==', 1, 2, NULL, '2026-11-19 03:00+00', '', 'staff1', '2026-11-19 02:00+00', '', '2036-11-28 00:00+00', '2026-11-19 03:00+00', 1,
        NULL, '', false, '{104}', 1),
    ('team', 'robot', 5, 'decision', '报警先扩容，再查原因。', '\x05', '', 'robot/cidOps==', 3, 6, NULL, '2026-11-20 09:00+00', '', 'staff2', NULL, 'robot/cidOps==', NULL, '2026-11-20 09:00+00', 1, NULL, 'staff2', false, '{105}', 2),
    ('session', 'robot/cidOps==/staff2', 6, 'fact', '工位号是 A-217。', '\x06', '', 'robot/cidOps==/staff2', 1, 1, NULL, '2026-11-20 09:00+00', '', 'staff2', NULL, 'robot/cidOps==', NULL, '2026-11-20 09:00+00', 1, NULL, '', false,
        NULL, 1),
    ('group', 'robot/cidOps==', 7, 'digest', '11 月 20 日：查了超时报警并扩容。', '\x07', '', 'robot/cidOps==', 3, 6, NULL, '2026-11-21 01:00+00', '', '', NULL, 'robot/cidOps==', NULL, '2026-11-21 01:00+00', 1, NULL, '', false, '{106}', 2);
INSERT INTO memory_flushes (session_key, id, trigger, gen, epoch, from_seq, through_seq, saved, duplicate, superseded, model, prompt_tokens, completion_tokens, created_at, cached_tokens, cost)
    OVERRIDING SYSTEM VALUE VALUES
    ('robot/cidOps==', 1, 'new', 0, 0, 0, 2, '{1}', '{}', '{}', 'qwen-plus', 100, 20, '2026-11-18 09:00+00', 0, 0.001),
    ('robot/cidOps==', 2, 'threshold', 1, 2, 2, 8, '{2,3,5}', '{3}', '{1}', 'qwen-plus', 400, 60, '2026-11-20 09:00+00', 10, 0.004);
INSERT INTO flush_debts (session_key, from_seq, through_seq, failures, reason, created_at, updated_at) VALUES
    ('robot/cidOps==', 8, 12, 2, 'model error: busy', '2026-11-21 08:21+00', '2026-11-21 08:25+00');
INSERT INTO memory_digests (session_key, day, memory_id, attempts, error, done, updated_at) VALUES
    ('robot/cidOps==', '2026-11-20', 7, 1, '', true, '2026-11-21 01:00+00'), ('robot/cidDM==', '2026-11-19', NULL, 1, 'model error: busy', false, '2026-11-20 01:00+00');
INSERT INTO embeddings (scope_key, content_hash, model, vec, small, seq, created_at) VALUES
    ('robot/cidOps==', '\xe1', 'text-embedding-v3', '{0.6,0.8}', '\x00', 3, '2026-11-20 09:00+00'), ('group|robot/cidOps==', '\xe2', 'text-embedding-v3', '{}', '\x', 0, '2026-11-20 09:00+00');
INSERT INTO embedding_cursors (session_key, model, through_seq) VALUES ('robot/cidOps==', 'text-embedding-v3', 6);

INSERT INTO outbox (session_key, id, target, body, nonce, state, sender, resumed, attempts, part, via, error, next_at, created_at, settled_at, joint, in_flight, refusals)
    OVERRIDING SYSTEM VALUE VALUES
    ('robot/cidOps==', 1, '{"robot_code": "robot", "conversation_id": "cidOps==", "conversation_type": "2"}', '连接池耗尽，已经扩容。', 'n1', 'sent', 'replica-a', false, 1, 1, 'webhook', '', '2026-11-20 08:01:20+00',
        '2026-11-20 08:01:09+00', '2026-11-20 08:01:10+00', '', false, 0),
    ('robot/cidOps==', 2, '{"robot_code": "robot", "conversation_id": "cidOps==", "conversation_type": "2", "staff_id": "staff2"}', '[已删除]', 'n2', 'failed', 'replica-a', true, 3, 0, 'api', 'rejected: 400',
        '2026-11-20 09:01:20+00', '2026-11-20 09:00:09+00', '2026-11-20 09:05+00', 'j1', false, 2),
    ('robot/cidOps==', 3, '{"robot_code": "robot", "conversation_id": "cidOps==", "conversation_type": "2", "webhook": "https://oapi.dingtalk.com/robot/sendBySession?session=x", "webhook_expires": "2026-11-21T10:00:00Z", "mentions": [{"staff_id": "staff1", "nick": "张伟"}], "card": "card-2"}',
        '图片里是 502 页面。', 'n3', 'sending', 'replica-a', false, 1, 0, '', '', '2026-11-21 08:20:30+00', '2026-11-21 08:20:04+00', NULL, '', true, 0),
    ('robot/cidDM==', 4, '{"robot_code": "robot", "conversation_id": "cidDM==", "conversation_type": "1", "staff_id": "staff1", "scheduled": true}', '该交周报了。', 'n4', 'waiting', '', false, 2, 0, 'api', 'rate limited',
        '2026-11-19 02:05+00', '2026-11-19 02:00:02+00', NULL, '', false, 1);
INSERT INTO cards (session_key, out_track_id, state, turn_event_id, next_at, prepaid, rating, created_at, settled_at, kind, tries) VALUES
    ('robot/cidOps==', 'card-1', 'finished', 8, '2026-11-21 08:00+00', false, 'good', '2026-11-21 08:00:02+00', '2026-11-21 08:00:09+00', 'card', 1),
    ('robot/cidOps==', 'card-2', 'open', 12, '2026-11-21 08:21+00', true, '', '2026-11-21 08:20:01+00', NULL, 'card', 0),
    ('robot/cidOps==', 'msg06', 'open', 14, '2026-11-21 08:30+00', false, '', '2026-11-21 08:29:01+00', NULL, 'reaction', 0),
    ('robot/cidOps==', 'card-0', 'given_up', 3, '2026-11-20 08:00+00', false, '', '2026-11-20 08:01:02+00', '2026-11-20 09:00+00', 'card', 5);

INSERT INTO schedules (session_key, id, state, kind, due_at, spec, text, created_by, creator, origin, created_at, settled_at) VALUES
    ('robot/cidDM==', 1, 'done', 'remind', '2026-11-19 02:00+00', 'once 2026-11-19T10:00', '提醒我交周报', 'staff1', '{"robot_code": "robot", "conversation_id": "cidDM==", "conversation_type": "1", "sender_id": "staff1", "staff_id": "staff1", "sender_nick": "张伟"}',
        'msg88', '2026-11-18 02:00+00', '2026-11-19 02:00+00'),
    ('robot/cidOps==', 1, 'active', 'ask', '2036-11-28 01:00+00', 'daily 09:00', '昨天有哪些报警？', 'staff2', '{"robot_code": "robot", "conversation_id": "cidOps==", "conversation_type": "2", "sender_id": "staff2", "staff_id": "staff2", "sender_nick": "李娜"}',
        'msg89', '2026-11-18 02:00+00', NULL),
    ('robot/cidOps==', 2, 'refused', 'remind', '2026-11-20 01:00+00', 'daily 09:00', '站会', '$:enc9', '{"robot_code": "robot", "conversation_id": "cidOps==", "conversation_type": "2", "sender_id": "$:enc9", "sender_nick": "外部客户王"}', 'msg91', '2026-11-18 03:00+00',
        '2026-11-20 01:00+00');
INSERT INTO schedule_numbers (session_key, last) VALUES ('robot/cidOps==', 2), ('robot/cidDM==', 1);

INSERT INTO replicas (id, started_at, heartbeat_at, draining, connected) VALUES ('replica-a', '2026-11-21 07:00+00', '2026-11-21 08:30+00', true, true), ('replica-0', '2026-11-20 07:00+00', '2026-11-21 06:59+00', false, false);
INSERT INTO restarts (replica, started_at, stopped_at, ending, told, answered, drained, flushed, debt, resumed, redelivered, doubled, lost) VALUES
    ('replica-0', '2026-11-20 07:00+00', '2026-11-21 06:59+00', 'killed', true, 11, 0, 0, 1, 2, 1, 1, 0), ('replica-a', '2026-11-21 07:00+00', NULL, '', false, 4, 1, 1, 0, 0, 0, 0, 0);
INSERT INTO sender_ids (sender_id, robot_code, staff_id, seen_at) VALUES ('$:enc1', 'robot', 'staff1', '2026-11-18 08:00+00'), ('$:enc7', 'robot', 'staff7', '2026-11-18 08:00+00'), ('$:enc7', 'robot', 'staff8', '2026-11-19 08:00+00');
INSERT INTO person_erasures (person, day, times) VALUES ('\xaa', '2026-11-20', 2);
INSERT INTO limit_windows (subject, ends_at, used, noticed) VALUES ('\xb1', '2026-11-21 09:00+00', 4, ''), ('\xb2', '2026-11-21 09:00+00', 1, 'msg04');
INSERT INTO group_scopes (group_key, scope, updated_at) VALUES ('robot/cidOps==', 'group', '2026-11-20 07:00+00'), ('robot/cidOld==', 'member', '2026-11-02 07:00+00');
INSERT INTO model_spend (session_key, day, kind, prompt_tokens, cached_tokens, completion_tokens, cost, turns) VALUES ('robot/cidOps==', '2026-11-18', 'turn', 300, 0, 40, 0.003, 1);
INSERT INTO model_usage (session_key, day, kind, model, person, prompt_tokens, cached_tokens, completion_tokens, cost, turns) VALUES
    ('robot/cidOps==', '2026-11-18', 'turn', '', '', 300, 0, 40, 0.003, 1), ('robot/cidOps==', '2026-11-21', 'turn', 'qwen-plus', 'staff1', 900, 100, 80, 0.01, 1),
    ('robot/cidOps==', '2026-11-20', 'flush', 'qwen-plus', '', 400, 10, 60, 0.004, 0), ('robot/cidGone==', '2026-11-02', 'turn', 'qwen-plus', 'staff2', 50, 0, 8, 0.001, 1);
INSERT INTO api_calls (month, api, count) VALUES ('2026-11', 'sendGroup', 41), ('2026-11', 'card', 12);
INSERT INTO api_days (day, api, count) VALUES ('2026-11-20', 'sendGroup', 30), ('2026-11-21', 'card', 12);
INSERT INTO api_months (month, calls, quota, level, exhausted_until) VALUES ('2026-11', 53, 10000, 1, '2026-11-21 09:00+00');
INSERT INTO console_logins (token_hash, role, actor, created_at, expires_at, nick) VALUES ('\xc1', 'admin', 'admin', '2026-11-21 08:00+00', '2036-11-22 08:00+00', ''), ('\xc2', 'person', 'staff2', '2026-11-21 08:00+00', '2036-11-22 08:00+00', '李娜');
INSERT INTO console_login_states (state_hash, next, expires_at) VALUES ('\xd1', '/memory', '2036-11-21 08:10+00');
INSERT INTO audit (session_key, id, at, actor, action, detail, outcome) OVERRIDING SYSTEM VALUE VALUES
    ('robot/cidOps==', 1, '2026-11-20 09:50+00', 'staff2', 'undo', 'compaction 2', 'done'), ('', 2, '2026-11-21 08:00+00', 'cli:root', 'export', '', ''), ('robot/cidOps==/staff2', 3, '2026-11-21 08:01+00', 'admin', 'view_private', '', 'done');

SELECT setval('audit_id_seq', 3), setval('compaction_log_id_seq', 5), setval('dingtalk_session_events_id_seq', 20), setval('memories_id_seq', 7), setval('memory_flushes_id_seq', 2),
    setval('outbox_id_seq', 4), setval('session_summaries_id_seq', 4);
