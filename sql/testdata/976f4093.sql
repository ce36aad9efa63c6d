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
