-- The schema of a new database, in the order of a message's way: sessions, their log, summaries, memory, replies, reminders, the
-- replicas that do the work, people, usage, DingTalk's calls, the console. A change of it is a migration as well, for databases that exist: see migrations.
--
-- Every table of a session has session_key first in its primary and unique keys, so that an engine that spreads rows over many
-- servers can keep a session together. For the same reason there are no triggers, no exclusion constraints and no extensions.
-- There are no foreign keys to dingtalk_sessions either: each accepted message would lock the session's row, the one row that a
-- turn's commit must have.
--
-- seq is a place in a session's log. Tokens are our own count, unless a provider reported them. A cost is in the unit of the
-- configured prices.


-- A conversation, or one member's part of it.
CREATE TABLE dingtalk_sessions (
    session_key       text PRIMARY KEY,
    robot_code        text NOT NULL,
    conversation_id   text NOT NULL,
    conversation_type text NOT NULL,
    title             text NOT NULL DEFAULT '',
    settings          jsonb, -- keys of agent.compaction that replace the file's
    created_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now(),
    last_active_at    timestamptz NOT NULL DEFAULT now(),

    -- The lease. A free one has no owner; the term counts owners and never falls. fallen_term is the term of the last lease that
    -- was taken from a replica without a heartbeat. Marks of other terms ended on purpose.
    lease_owner       text,
    lease_term        bigint NOT NULL DEFAULT 0,
    fallen_term       bigint NOT NULL DEFAULT 0,

    -- The view: summaries, and the events after compacted_seq. Events up to base_seq belong to older generations and are in no
    -- view. view_version grows with every change of shown texts: a size that a turn counted is of one version.
    last_seq          bigint NOT NULL DEFAULT 0,
    last_turn         bigint NOT NULL DEFAULT 0,      -- turns are numbered from 1 on
    gen               integer NOT NULL DEFAULT 0,
    base_seq          bigint NOT NULL DEFAULT 0,
    compacted_seq     bigint NOT NULL DEFAULT 0,
    view_version      integer NOT NULL DEFAULT 0,
    total_tokens      integer NOT NULL DEFAULT 0,     -- of the context as it would be sent now
    pinned            text NOT NULL DEFAULT '',       -- memory that every request shows
    pinned_due        boolean NOT NULL DEFAULT true,  -- the next turn reads pinned again
    suspicion         jsonb,                          -- rows of a refused request until those at fault are found

    -- The provider's count of the last prompt, and the newest event in it; calibration corrects our own count by it.
    observed_tokens   integer NOT NULL DEFAULT 0,
    observed_seq      bigint NOT NULL DEFAULT 0,
    calibration       double precision NOT NULL DEFAULT 1,

    -- Usage of all model calls, as reported.
    model             text NOT NULL DEFAULT '',
    prompt_tokens     bigint NOT NULL DEFAULT 0,
    cached_tokens     bigint NOT NULL DEFAULT 0,
    completion_tokens bigint NOT NULL DEFAULT 0,

    -- Flushes and compactions. candidates are the events after flushed_seq that may be worth remembering; flush_epoch is
    -- compaction_count at the last flush. After a failure compaction waits for compact_retry_at and for rearm_tokens.
    flushed_seq       bigint NOT NULL DEFAULT 0,
    candidates        integer NOT NULL DEFAULT 0,
    flush_epoch       integer,
    flush_count       integer NOT NULL DEFAULT 0,
    flush_failures    integer NOT NULL DEFAULT 0,
    compaction_count  integer NOT NULL DEFAULT 0,
    compacted_at      timestamptz,
    compact_failures  integer NOT NULL DEFAULT 0,
    compact_retry_at  timestamptz,
    compact_error     text NOT NULL DEFAULT '',
    rearm_tokens      integer NOT NULL DEFAULT 0,
    spent_on          date,                           -- day of UTC of spent_tokens: usage of flushes and compactions
    spent_tokens      bigint NOT NULL DEFAULT 0,

    -- An erasure ends the work that has read the words before. A flush or a compaction is in progress under the lease of
    -- upkeep_term until upkeep_until at most. cut_turns and cut_upkeep count work that erasures ended since the last that was stored.
    upkeep_term       bigint NOT NULL DEFAULT 0,
    upkeep_until      timestamptz,
    cut_turns         integer NOT NULL DEFAULT 0,
    cut_upkeep        integer NOT NULL DEFAULT 0,

    files             integer NOT NULL DEFAULT 0,     -- kept files, whose pages are searched for each question

    -- Each statement that writes a row reads all of its table's CHECKs first, which takes longer than the row. Tables of a turn have
    -- this one alone: a cursor outside the log would lose words.
    CONSTRAINT cursors_within_log CHECK (0 <= base_seq AND base_seq <= compacted_seq AND compacted_seq <= last_seq
        AND 0 <= flushed_seq AND flushed_seq <= last_seq AND 0 <= observed_seq AND observed_seq <= last_seq)
) WITH (fillfactor = 80); -- rows change with every turn: room for it on the same page

CREATE INDEX sessions_of_conversation ON dingtalk_sessions (conversation_id, robot_code);


-- The log and the inbox. A compaction deletes or changes no body. Columns that a turn changes come after the text: the server's log of
-- an update has the bytes from the first change to the last.
CREATE TABLE dingtalk_session_events (
    session_key   text NOT NULL,
    id            bigint GENERATED ALWAYS AS IDENTITY,
    created_at    timestamptz NOT NULL DEFAULT now(),
    role          text NOT NULL, -- user, assistant, tool, summary
    content       text NOT NULL DEFAULT '',

    -- Of a message. sent_at is by DingTalk's clock, or the arrival: turns take messages in this order. message has the rest as JSON;
    -- is_staff there says that sender_id is the staff id.
    sent_at       timestamptz NOT NULL DEFAULT now(),
    msg_id        text,
    sender_id     text NOT NULL DEFAULT '',
    sender_nick   text NOT NULL DEFAULT '',
    message       jsonb,

    tool_calls    jsonb,
    tool_call_id  text NOT NULL DEFAULT '',
    tool_name     text NOT NULL DEFAULT '',

    seq           bigint, -- NULL while pending, when dead, and for summaries, whose place is their range
    turn          bigint, -- number of the turn that took or wrote it; NULL: none did, or a turn before there were numbers
    state         text NOT NULL DEFAULT 'done', -- pending, done, dead: set aside
    is_archived   boolean NOT NULL DEFAULT false, -- a summary covers it
    candidate     boolean NOT NULL DEFAULT false, -- may be worth remembering, by a cheap look
    tokens        integer NOT NULL DEFAULT 0,

    -- Attempts at a message. attempt_term is the lease's term under which a turn has it. counted_term is the term whose turn was
    -- counted last, because its process seemed dead: one that comes back finds its turn by it. width bounds the suspects that a
    -- process has in progress together with this one; NULL: not narrowed down yet. admitted: the limits counted the turn.
    attempts      integer NOT NULL DEFAULT 0,
    attempt_term  bigint,
    counted_term  bigint,
    width         integer,
    admitted      boolean,

    -- The view shows this in place of content and tokens; NULL: the event as it is. The body is kept under blob_id for readers of
    -- the reference. There is no index by it: an address is looked for in a view, or in one session's log.
    shown         text,
    shown_tokens  integer,
    blob_id       text,
    -- Refusals by model and endpoint, without text: {"qwen-plus@host/v1": {"parts": ["body"], "class": "refused", "at": "…"}}.
    withheld      jsonb,

    -- A search leaves out commands and reminders, their answers, and erased texts.
    searched      boolean NOT NULL DEFAULT true,

    PRIMARY KEY (session_key, id)
) WITH (fillfactor = 90);

-- Partial, so that each serves one kind of query. A plan that was cached while the table was empty takes any index that fits, and
-- reads the whole session through the wrong one until the next ANALYZE.
CREATE UNIQUE INDEX dingtalk_session_events_msg_id ON dingtalk_session_events (session_key, msg_id) WHERE msg_id IS NOT NULL;
CREATE UNIQUE INDEX dingtalk_session_events_seq ON dingtalk_session_events (session_key, seq) WHERE seq IS NOT NULL;
-- Rare events: pending and dead messages, and those withheld from a model. By their state, since a look at the waiting messages of
-- all sessions reads no others.
CREATE INDEX events_open ON dingtalk_session_events (state, session_key, id) WHERE state <> 'done' OR withheld IS NOT NULL;
-- A condition on the time implies the second predicate, and one on the session alone does not.
CREATE INDEX events_at_time ON dingtalk_session_events (session_key, created_at) WHERE seq IS NOT NULL AND created_at IS NOT NULL;
CREATE INDEX events_with_quotes ON dingtalk_session_events (session_key, id) WHERE message -> 'quote' IS NOT NULL;

-- The names of people in a session's log: spoke says whether of messages or of quotes. Only the commit of a turn adds rows. An open
-- message has none yet, and is found by the indexes of its state.
CREATE TABLE people (
    session_key text        NOT NULL,
    person      text        NOT NULL CHECK (person <> ''), -- a sender_id
    nick        text        NOT NULL, -- empty: a message without a name
    spoke       boolean     NOT NULL,
    seen_at     timestamptz NOT NULL, -- when the turn of the newest message or quote committed, to within an hour

    PRIMARY KEY (session_key, person, nick, spoke)
) WITH (fillfactor = 90);

-- With all columns that lists of people read: a person may be in hundreds of sessions.
CREATE INDEX people_of_person ON people (person, nick, spoke, seen_at);
CREATE INDEX people_by_nick ON people (nick, person) WHERE spoke;

-- The search index of a session's log. Its places up to through_seq are indexed, except those of again, whose text changed.
-- version: of the rules of terms.
CREATE TABLE event_index (
    session_key  text     NOT NULL PRIMARY KEY,
    through_seq  bigint   NOT NULL DEFAULT 0,
    again        bigint[] NOT NULL DEFAULT '{}',
    next_segment integer  NOT NULL DEFAULT 1,
    version      integer  NOT NULL DEFAULT 0
);

-- Terms of an indexed event: a hash of 4 bytes for each, as often as the text has it, and one of its flags.
CREATE TABLE event_terms (
    session_key text   NOT NULL,
    seq         bigint NOT NULL,
    terms       bytea  NOT NULL,
    PRIMARY KEY (session_key, seq)
);

-- Segments of the index: an inverted index of some events each. sizes: a byte for each place from first_seq on, the class of the
-- text's size. bits: of a hash that select its block.
CREATE TABLE event_segments (
    session_key text     NOT NULL,
    segment     integer  NOT NULL,
    first_seq   bigint   NOT NULL,
    texts       integer  NOT NULL,
    bits        integer  NOT NULL,
    sizes       bytea    NOT NULL,
    PRIMARY KEY (session_key, segment)
);

-- Blocks of a segment: terms with the places of their events.
CREATE TABLE event_postings (
    session_key text    NOT NULL,
    segment     integer NOT NULL,
    block       integer NOT NULL,
    postings    bytea   NOT NULL,
    PRIMARY KEY (session_key, segment, block)
);
-- Terms and blocks are packed: the server's compression would find nothing.
ALTER TABLE event_terms ALTER COLUMN terms SET STORAGE EXTERNAL;
ALTER TABLE event_postings ALTER COLUMN postings SET STORAGE EXTERNAL;

-- Attachments of messages as they were fetched, by the message and the place in its list. A row has a fault or a content. kind is that of
-- the bytes: picture, text, pdf, docx, xlsx, pptx; empty: not known. tokens: of a request that shows the whole of it.
CREATE TABLE attachments (
    session_key text NOT NULL,
    event_id    bigint NOT NULL,
    place       integer NOT NULL,           -- from 0
    kind        text NOT NULL DEFAULT '',
    name        text NOT NULL DEFAULT '',
    fault       text NOT NULL DEFAULT '',   -- the reason why there is no content
    media_id    text NOT NULL DEFAULT '',   -- hash of the bytes: one that is sent twice is stored once
    bytes       bigint NOT NULL DEFAULT 0,
    pages       integer NOT NULL DEFAULT 0,
    tokens      integer NOT NULL DEFAULT 0,
    created_at  timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, event_id, place)
);

-- Pictures, scaled for models. Retention deletes them before their messages.
CREATE TABLE pictures (
    session_key text NOT NULL,
    media_id    text NOT NULL CHECK (media_id <> ''),
    type        text NOT NULL, -- image/png or image/jpeg
    body        bytea NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(), -- when it was sent last

    PRIMARY KEY (session_key, media_id)
);

CREATE INDEX pictures_by_time ON pictures (created_at);

-- The texts of documents.
CREATE TABLE document_pages (
    session_key text NOT NULL,
    media_id    text NOT NULL CHECK (media_id <> ''),
    page        integer NOT NULL, -- from 1; an empty one has no row
    title       text NOT NULL DEFAULT '', -- name of a sheet
    body        text NOT NULL,
    terms       bigint[], -- of a page of a kept file, as those of memories, with its name and title; NULL: not kept
    withheld   jsonb,    -- as in events

    PRIMARY KEY (session_key, media_id, page)
);

CREATE INDEX document_pages_terms ON document_pages USING gin (terms) WITH (fastupdate = off) WHERE terms IS NOT NULL;

-- Files that the people of a session asked to keep. They outlive their messages. Their texts are in document_pages.
CREATE TABLE files (
    session_key text NOT NULL,
    id          bigint GENERATED ALWAYS AS IDENTITY,
    name        text NOT NULL CHECK (name <> ''),
    version     integer NOT NULL DEFAULT 1, -- a file of the same name and another content is the next one, and replaces it
    kind        text NOT NULL,
    media_id    text NOT NULL CHECK (media_id <> ''),
    bytes       bigint NOT NULL,
    pages       integer NOT NULL,
    sent_by     text NOT NULL DEFAULT '', -- empty: not known
    kept_by     text NOT NULL DEFAULT '',
    event_id    bigint NOT NULL, -- the message of the sender that brought it; 0: another person's quote brought it
    kept_event  bigint NOT NULL, -- the message that asked for it
    created_at  timestamptz NOT NULL DEFAULT now(), -- when this version was kept

    PRIMARY KEY (session_key, id)
);

CREATE INDEX files_of_sender ON files (sent_by) WHERE sent_by <> '';
CREATE INDEX files_of_keeper ON files (kept_by) WHERE kept_by <> '';
ALTER TABLE pictures ALTER COLUMN body SET STORAGE EXTERNAL; -- compressed already

-- Tool calls of turns that have not committed: written before a call runs, deleted by the turn's commit.
CREATE TABLE tool_runs (
    session_key text NOT NULL,
    event_id    bigint NOT NULL, -- first message of the turn
    call_id     text NOT NULL,
    name        text NOT NULL,
    arguments   text NOT NULL,
    finished    boolean NOT NULL DEFAULT false,
    result      text NOT NULL DEFAULT '',
    started_at  timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, event_id, call_id)
);

-- Messages that were deleted with their session, for a day: a redelivery brings none of them back. message is a hash of session and
-- message id, so that nothing of the session is left behind.
CREATE TABLE deleted_messages (
    message    bytea PRIMARY KEY,
    deleted_at timestamptz NOT NULL DEFAULT now()
);


-- undone: its compaction was taken back. closed: it belongs to an older generation.
CREATE TABLE session_summaries (
    session_key   text NOT NULL,
    id            bigint GENERATED ALWAYS AS IDENTITY,
    gen           integer NOT NULL,
    level         integer NOT NULL DEFAULT 0 CHECK (level >= 0), -- 0: of events; above: of summaries
    start_seq     bigint NOT NULL CHECK (start_seq > 0),
    end_seq       bigint NOT NULL,
    start_msg_id  bigint NOT NULL,
    end_msg_id    bigint NOT NULL,
    msg_count     integer NOT NULL CHECK (msg_count > 0),
    summary       text NOT NULL CHECK (summary <> ''),
    tokens        integer NOT NULL CHECK (tokens >= 0),
    model         text NOT NULL DEFAULT '',
    status        text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'superseded', 'undone', 'closed')),
    superseded_by bigint,
    withheld      jsonb, -- as in events
    created_at    timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, id),
    CONSTRAINT range_is_forward CHECK (start_seq <= end_seq),
    CONSTRAINT superseded_by_one CHECK ((superseded_by IS NOT NULL) = (status = 'superseded'))
);

-- Two active summaries never begin, nor end, at the same event. A compaction keeps them end to end.
CREATE UNIQUE INDEX session_summaries_active ON session_summaries (session_key, start_seq) WHERE status = 'active';
CREATE UNIQUE INDEX session_summaries_active_end ON session_summaries (session_key, end_seq) WHERE status = 'active';

CREATE INDEX session_summaries_withheld ON session_summaries (session_key) WHERE withheld IS NOT NULL;

-- Bodies that were moved out of a view, by the hash of their text. The log has them too: nothing is lost with a row.
CREATE TABLE blobs (
    session_key text NOT NULL,
    blob_id     text NOT NULL CHECK (blob_id <> ''),
    body        text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, blob_id)
);

-- Compactions in progress, one a session. staged is the result before it is committed.
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

-- Compactions that an administrator asked for, from the request to the end of the attempt. The replica that has the session's
-- lease executes it, or any one where the lease is free. started_at is of the last attempt.
CREATE TABLE compaction_requests (
    session_key  text PRIMARY KEY,
    settings     text NOT NULL DEFAULT '', -- the session's settings with those of the request, as JSON; empty: none
    focus        text NOT NULL DEFAULT '',
    requested_by text NOT NULL DEFAULT '',
    requested_at timestamptz NOT NULL DEFAULT now(),
    started_at   timestamptz,
    attempts     integer NOT NULL DEFAULT 0
);

-- Attempts at compactions. A committed one without a summary moved results out of the view, or shortened them.
CREATE TABLE compaction_log (
    session_key       text NOT NULL,
    id                bigint GENERATED ALWAYS AS IDENTITY,
    trigger           text NOT NULL DEFAULT '',
    policy            text NOT NULL DEFAULT '',
    mode              text NOT NULL DEFAULT '',
    model             text NOT NULL DEFAULT '',
    focus             text NOT NULL DEFAULT '',
    requested_by      text NOT NULL DEFAULT '', -- id of a person, or an operator's name as in audit; empty: automatic
    asked_by          bigint,                   -- of an undo: the message that asked for it, so that its repeated turn undoes nothing more
    gen               integer NOT NULL DEFAULT 0,
    start_seq         bigint NOT NULL DEFAULT 0,
    end_seq           bigint NOT NULL DEFAULT 0,
    tokens_before     integer NOT NULL DEFAULT 0,
    tokens_after      integer NOT NULL DEFAULT 0,
    flush_outcome     text NOT NULL DEFAULT '',
    flush_id          bigint, -- the flush before it
    summary_id        bigint,
    view_before       jsonb,  -- for an undo: cursor, ids of active summaries, pinned memory, shown texts
    undone_at         timestamptz,
    audit             jsonb,  -- check of the summary
    duration_ms       bigint NOT NULL DEFAULT 0,
    prompt_tokens     integer NOT NULL DEFAULT 0,
    cached_tokens     integer NOT NULL DEFAULT 0,
    completion_tokens integer NOT NULL DEFAULT 0,
    cost              double precision NOT NULL DEFAULT 0,
    outcome           text NOT NULL CHECK (outcome IN ('committed', 'rejected', 'failed', 'nothing')),
    error             text NOT NULL DEFAULT '',
    created_at        timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, id),
    CONSTRAINT summary_is_committed CHECK (summary_id IS NULL OR outcome = 'committed'),
    CONSTRAINT view_before_is_committed CHECK (view_before IS NULL OR outcome = 'committed')
);

CREATE INDEX compaction_log_by_time ON compaction_log (created_at, id);
CREATE INDEX compaction_log_views ON compaction_log (session_key, id) WHERE view_before IS NOT NULL;
CREATE INDEX compaction_log_by_requester ON compaction_log (requested_by) WHERE requested_by <> '';


-- Facts. They belong to a scope and not to a session, so the scope comes first in their keys.
CREATE TABLE memories (
    scope          text NOT NULL CHECK (scope IN ('user', 'group', 'team', 'session')),
    scope_id       text NOT NULL,
    id             bigint GENERATED ALWAYS AS IDENTITY,
    kind           text NOT NULL,
    content        text NOT NULL CHECK (content <> ''),
    norm_hash      bytea NOT NULL,           -- of the normalised content: equal for the same fact
    fact_key       text NOT NULL DEFAULT '', -- such as "release date": a newer value in the same scope supersedes it
    subject_id     text NOT NULL DEFAULT '', -- the person whom it is about
    said_by        text NOT NULL DEFAULT '',
    said_at        timestamptz,
    source_session text NOT NULL,
    source_group   text NOT NULL DEFAULT '', -- the conversation; empty: a private chat, which no group reads
    start_seq      bigint NOT NULL DEFAULT 0,
    end_seq        bigint NOT NULL DEFAULT 0,
    turn           bigint,                   -- of the source, where a turn saved it before its commit: start_seq and end_seq are 0
    promoted_by    text NOT NULL DEFAULT '', -- made it a fact of the team
    consolidated   boolean NOT NULL DEFAULT false, -- says the content of superseded facts, with the other rows of its transaction
    superseded_by  bigint,
    superseded_at  timestamptz,
    created_at     timestamptz NOT NULL DEFAULT now(),
    last_seen_at   timestamptz NOT NULL DEFAULT now(),
    seen           integer NOT NULL DEFAULT 1,
    expires_at     timestamptz,              -- not read after it; NULL: it stays
    withheld       jsonb,                    -- as in events
    terms          bigint[],                 -- each a hash of scope and term, as often as the text has it; NULL: not indexed yet
    terms_version  smallint NOT NULL DEFAULT 1,

    PRIMARY KEY (scope, scope_id, id),
    CONSTRAINT source_is_forward CHECK (start_seq <= end_seq)
);

CREATE UNIQUE INDEX memories_in_force ON memories (scope, scope_id, norm_hash) WHERE superseded_by IS NULL;
CREATE INDEX memories_id ON memories (id);
CREATE INDEX memories_source ON memories (source_session, end_seq);
CREATE INDEX memories_about ON memories (subject_id, id) WHERE subject_id <> '';
CREATE INDEX memories_said_by ON memories (said_by, id) WHERE said_by <> '';
-- Facts of people about themselves, said in a group, for that group.
CREATE INDEX memories_said ON memories (source_group, id) WHERE scope = 'user' AND source_group <> '';
CREATE INDEX memories_promoted_by ON memories (promoted_by, id) WHERE promoted_by <> '';
CREATE INDEX memories_consolidated ON memories (scope, scope_id, created_at) WHERE consolidated;
CREATE INDEX memories_expiring ON memories (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memories_by_last_seen ON memories (last_seen_at);
CREATE INDEX memories_withheld ON memories (source_session) WHERE withheld IS NOT NULL;
CREATE INDEX memories_terms ON memories USING gin (terms) WITH (fastupdate = off);
CREATE INDEX memories_unindexed ON memories (scope, scope_id, id) WHERE terms IS NULL;
CREATE INDEX memories_outdated_terms ON memories (scope, scope_id, id) WHERE terms_version < 2 AND terms IS NOT NULL;

-- Receipts: a row for each successful flush, or each part of one. saved, duplicate and superseded are ids of facts.
CREATE TABLE memory_flushes (
    session_key       text NOT NULL,
    id                bigint GENERATED ALWAYS AS IDENTITY,
    trigger           text NOT NULL DEFAULT '',
    gen               integer NOT NULL DEFAULT 0,
    epoch             integer NOT NULL DEFAULT 0, -- compaction_count of the session
    from_seq          bigint NOT NULL,
    through_seq       bigint NOT NULL,
    saved             bigint[] NOT NULL DEFAULT '{}',
    duplicate         bigint[] NOT NULL DEFAULT '{}',
    superseded        bigint[] NOT NULL DEFAULT '{}',
    model             text NOT NULL DEFAULT '',
    prompt_tokens     bigint NOT NULL DEFAULT 0,
    cached_tokens     bigint NOT NULL DEFAULT 0,
    completion_tokens bigint NOT NULL DEFAULT 0,
    cost              double precision NOT NULL DEFAULT 0,
    created_at        timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, id)
);

-- Owed flushes: at most one range a session, which ends where the next flush must reach.
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

-- A row for each conversation and day with a digest, or with nothing to say.
CREATE TABLE memory_digests (
    session_key text NOT NULL,
    day         date NOT NULL,
    memory_id   bigint,
    attempts    integer NOT NULL DEFAULT 0,
    error       text NOT NULL DEFAULT '',
    done        boolean NOT NULL DEFAULT false,
    updated_at  timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, day)
);

CREATE INDEX digests_of_memories ON memory_digests (memory_id) WHERE memory_id IS NOT NULL;

-- Vectors by the hash of their text, so that a text is embedded once. scope_key is the session of events, and scope and id of
-- facts. seq is the place of the first event with the text; facts have 0. small has the vector in a byte a number, behind their
-- common factor, for a first look: a server sends bytes faster than numbers. An empty vector is of a text that the endpoint refuses.
CREATE TABLE embeddings (
    scope_key    text NOT NULL,
    content_hash bytea NOT NULL,
    model        text NOT NULL,
    vec          real[] NOT NULL,
    small        bytea NOT NULL,
    seq          bigint NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (scope_key, model, content_hash)
);

ALTER TABLE embeddings ALTER COLUMN vec SET STORAGE EXTERNAL; -- such numbers do not get smaller
CREATE INDEX embeddings_hash ON embeddings (content_hash);
CREATE INDEX embeddings_model ON embeddings (model);

-- The events of a session up to through_seq have vectors of a model.
CREATE TABLE embedding_cursors (
    session_key text NOT NULL,
    model       text NOT NULL,
    through_seq bigint NOT NULL,

    PRIMARY KEY (session_key, model)
);


-- Replies, from the commit of their turn on. sending: sender delivers it; a row that another sender left so may have arrived.
-- waiting: tried, and tried again at next_at. sent and failed ones are settled. Columns that change come last, as in events.
CREATE TABLE outbox (
    session_key text NOT NULL,
    id          bigint GENERATED ALWAYS AS IDENTITY,
    created_at  timestamptz NOT NULL DEFAULT now(),
    nonce       text NOT NULL DEFAULT '',      -- idempotency key
    body        text NOT NULL,
    target      jsonb NOT NULL,                -- the address: webhook, conversation, person, card
    state       text NOT NULL,
    sender      text NOT NULL,                 -- a replica
    in_flight   boolean NOT NULL DEFAULT true, -- an attempt has begun, and no mark says how it ended
    resumed     boolean NOT NULL DEFAULT false,
    attempts    integer NOT NULL DEFAULT 0,
    part        integer NOT NULL DEFAULT 0,    -- parts of a long reply that are sent
    refusals    integer NOT NULL DEFAULT 0,    -- of this text alone, under a code that names no cause
    joint       text NOT NULL DEFAULT '',      -- key of the message in which the last attempt sent it with others; empty: alone
    via         text NOT NULL DEFAULT '',
    error       text NOT NULL DEFAULT '',
    next_at     timestamptz NOT NULL DEFAULT now(),
    settled_at  timestamptz,
    carriers    text[] NOT NULL DEFAULT '{}',  -- DingTalk's keys of its messages, by which people quote them; a webhook gives none

    PRIMARY KEY (session_key, id)
) WITH (fillfactor = 80);

CREATE INDEX outbox_open ON outbox (session_key, id) WHERE state IN ('sending', 'waiting');
-- Of settled replies alone, so that no plan takes them for the few open ones.
CREATE INDEX outbox_by_settled ON outbox (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX outbox_settled_by_time ON outbox (session_key, created_at) WHERE settled_at IS NOT NULL;
-- A reply that is sent loses its address. One that an erasure gave up keeps it.
CREATE INDEX outbox_settled_to_person ON outbox ((target ->> 'staff_id'), session_key)
    WHERE state IN ('sent', 'failed') AND target ->> 'staff_id' <> '';

-- Files that replies send. The bytes are stored before the turn commits, and deleted once their reply is settled.
CREATE TABLE sent_files (
    session_key text NOT NULL,
    id          bigint GENERATED ALWAYS AS IDENTITY,
    event_id    bigint NOT NULL, -- first message of the turn
    source      text NOT NULL,   -- the part of the turn that made it: a repeated attempt replaces it
    name        text NOT NULL,
    kind        text NOT NULL,   -- image or file
    body        bytea NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (session_key, id)
);
ALTER TABLE sent_files ALTER COLUMN body SET STORAGE EXTERNAL; -- compressed already

CREATE UNIQUE INDEX sent_files_source ON sent_files (session_key, event_id, source);
CREATE INDEX sent_files_by_time ON sent_files (created_at);

-- Cards, written before they are delivered, and reactions, which have their message's id as track id. A card is open until DingTalk
-- shows its last frame or an error, a reaction until it is removed. A card belongs to the turn of a message, and to that turn's
-- reply after the commit. One with neither is closed in the background.
CREATE TABLE cards (
    session_key   text NOT NULL,
    out_track_id  text NOT NULL,
    kind          text NOT NULL DEFAULT 'card', -- or reaction
    state         text NOT NULL DEFAULT 'open', -- finished, failed, given_up: settled
    turn_event_id bigint NOT NULL,              -- first message that the turn answers
    prepaid       boolean NOT NULL DEFAULT true, -- the call that ends it is counted, and not yet left to a reply or to the background
    tries         integer NOT NULL DEFAULT 0,   -- attempts to end it
    next_at       timestamptz NOT NULL DEFAULT now(), -- of the next attempt in the background
    rating        text NOT NULL DEFAULT '',     -- good, bad; empty: none
    created_at    timestamptz NOT NULL DEFAULT now(),
    settled_at    timestamptz,
    frame_term    bigint,      -- of the call under way that shows something; NULL: none
    frame_until   timestamptz, -- that call is over then
    content_key   text NOT NULL DEFAULT '', -- variable of its text; empty: a card of before there was the column
    carrier       text NOT NULL DEFAULT '',     -- DingTalk's key of its message, by which people quote it; empty: unknown

    PRIMARY KEY (session_key, out_track_id)
);

CREATE INDEX cards_open ON cards (session_key, out_track_id) WHERE state = 'open';
CREATE INDEX cards_track ON cards (out_track_id);
CREATE INDEX cards_settled ON cards (settled_at) WHERE state <> 'open';
CREATE INDEX cards_given_up ON cards (settled_at) WHERE state = 'given_up';


-- Calls of tools that wait for a person's approval, and those that were decided. Rows of erased people stay without words and names, so
-- that no number is used again.
CREATE TABLE approvals (
    session_key   text NOT NULL,
    id            bigint NOT NULL, -- from 1 on in each session
    turn_event_id bigint NOT NULL, -- first message of the turn that asked
    tool          text NOT NULL,
    arguments     text NOT NULL,
    asked_by      text NOT NULL,   -- the last asker of the turn
    state         text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'approved', 'rejected', 'expired')),
    decided_by    text NOT NULL DEFAULT '',
    decided_at    timestamptz,
    decided_event bigint,          -- message with the decision; its turn makes an approved call
    created_at    timestamptz NOT NULL DEFAULT now(),
    expires_at    timestamptz NOT NULL,
    webhook         text NOT NULL DEFAULT '', -- that of the question if it outlasts the wait: the word about the end takes no call then
    webhook_expires timestamptz,

    PRIMARY KEY (session_key, id),
    CONSTRAINT approval_decided_or_waiting CHECK ((decided_at IS NULL) = (state = 'waiting'))
);

-- Reminders and other messages at set times. An active one has its next time in due_at, an ended one its last. The transaction
-- that moves due_at stores the message, so that each time counts once.
CREATE TABLE schedules (
    session_key text NOT NULL,
    id          bigint NOT NULL, -- from 1 on in each conversation
    state       text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'done', 'cancelled', 'refused')),
    kind        text NOT NULL CHECK (kind IN ('remind', 'ask')),
    due_at      timestamptz NOT NULL,
    spec        text NOT NULL,  -- the times, as package bot/schedule/when writes them
    text        text NOT NULL,
    created_by  text NOT NULL,
    creator     jsonb NOT NULL, -- the creator's message, which later ones repeat: ids, nick and conversation
    origin      text NOT NULL,  -- the command or tool call that set it: repeated, it sets no second one
    created_at  timestamptz NOT NULL DEFAULT now(),
    settled_at  timestamptz,
    lost        integer NOT NULL DEFAULT 0, -- messages whose person or conversation the platform does not know any more

    PRIMARY KEY (session_key, id),
    CONSTRAINT schedule_settled_or_active CHECK ((settled_at IS NULL) = (state = 'active'))
);

CREATE INDEX approvals_by_age ON approvals (created_at);
CREATE INDEX approvals_due ON approvals (expires_at) WHERE state = 'waiting';
CREATE INDEX approvals_decided ON approvals (decided_at) WHERE state <> 'waiting';
CREATE INDEX approvals_by_asker ON approvals (asked_by);
CREATE INDEX approvals_by_decider ON approvals (decided_by) WHERE decided_by <> '';

CREATE UNIQUE INDEX schedules_origin ON schedules (session_key, origin);
CREATE INDEX schedules_due ON schedules (due_at) WHERE state = 'active';
CREATE INDEX schedules_settled ON schedules (settled_at) WHERE state <> 'active';
CREATE INDEX schedules_by_creator ON schedules (created_by);
CREATE INDEX schedules_by_age ON schedules (created_at, session_key, id);

-- The highest number of a schedule that the conversation ever had. session_key is that of the conversation's common session.
CREATE TABLE schedule_numbers (
    session_key text PRIMARY KEY,
    last        bigint NOT NULL
);


-- Running processes. A heartbeat older than the time to live makes all leases of its owner stale.
CREATE TABLE replicas (
    id           text PRIMARY KEY CHECK (id <> ''),
    started_at   timestamptz NOT NULL DEFAULT now(),
    heartbeat_at timestamptz NOT NULL DEFAULT now(),
    draining     boolean NOT NULL DEFAULT false, -- it leads no more
    connected    boolean NOT NULL DEFAULT false  -- a hot standby's leader may leave where another one is
);

-- An account of each process, written while it runs and when it stops. One that was killed is closed by another, with the figures
-- that it wrote last.
CREATE TABLE restarts (
    replica     text PRIMARY KEY CHECK (replica <> ''),
    started_at  timestamptz NOT NULL DEFAULT now(),
    stopped_at  timestamptz,
    ending      text NOT NULL DEFAULT '' CHECK (ending IN ('', 'clean', 'killed')),
    told        boolean NOT NULL DEFAULT false, -- another process has logged it
    answered    bigint NOT NULL DEFAULT 0,
    drained     bigint NOT NULL DEFAULT 0,
    flushed     bigint NOT NULL DEFAULT 0,
    debt        bigint NOT NULL DEFAULT 0,
    resumed     bigint NOT NULL DEFAULT 0,
    redelivered bigint NOT NULL DEFAULT 0,
    doubled     bigint NOT NULL DEFAULT 0,
    lost        bigint NOT NULL DEFAULT 0,

    CONSTRAINT ended_or_running CHECK ((ending = '') = (stopped_at IS NULL))
);

CREATE INDEX restarts_started_at ON restarts (started_at);


-- DingTalk leaves the staff id out of some frames. A row is a pair of ids that one frame had. An encrypted id with several rows for
-- a robot belongs to none of them.
CREATE TABLE sender_ids (
    sender_id  text NOT NULL,
    robot_code text NOT NULL,
    staff_id   text NOT NULL,
    seen_at    timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (sender_id, robot_code, staff_id)
);

CREATE INDEX sender_ids_of_staff ON sender_ids (staff_id);

-- Erasures of everything about a person, for the limit of a day. person is a hash under the key of the day in limit_keys.
CREATE TABLE person_erasures (
    person bytea NOT NULL,
    day    date NOT NULL,
    times  integer NOT NULL DEFAULT 1,

    PRIMARY KEY (person, day)
);

-- Turns, tokens and notices of people and groups in the latest window of each. It is over at ends_at, and the next use begins
-- another one. subject is a hash under the key of the day in which it began. parts has the turns of each person in a group's window,
-- under such hashes, and before those of the window before it.
CREATE TABLE limit_windows (
    subject bytea PRIMARY KEY,
    ends_at timestamptz NOT NULL,
    used    bigint NOT NULL DEFAULT 0,
    noticed text NOT NULL DEFAULT '', -- message whose notice was given; empty: none, or one that no message may repeat
    parts   jsonb NOT NULL DEFAULT '{}',
    before  jsonb NOT NULL DEFAULT '{}'
);

-- The key of a day's hashes in limit_windows, person_erasures and audit. Without it they belong to no person.
CREATE TABLE limit_keys (
    day date  PRIMARY KEY, -- of UTC
    key bytea NOT NULL
);

-- The scope that an administrator chose for a group, which is named by the key of the session that all of it would share. That
-- session need not exist, so the row outlives every session of the group.
CREATE TABLE group_scopes (
    group_key  text PRIMARY KEY,
    scope      text NOT NULL CHECK (scope IN ('group', 'member')),
    updated_at timestamptz NOT NULL DEFAULT now()
);


-- Usage of models. A turn of several people is divided by their words, and counts for one of them. An empty model or person is not known,
-- or is of no one: upkeep has no person.
CREATE TABLE model_usage (
    session_key       text NOT NULL,
    day               date NOT NULL, -- of UTC
    kind              text NOT NULL,
    model             text NOT NULL DEFAULT '',
    person            text NOT NULL DEFAULT '',
    turns             bigint NOT NULL DEFAULT 0,
    prompt_tokens     bigint NOT NULL DEFAULT 0,
    cached_tokens     bigint NOT NULL DEFAULT 0,
    completion_tokens bigint NOT NULL DEFAULT 0,
    cost              double precision NOT NULL DEFAULT 0,

    PRIMARY KEY (session_key, day, kind, model, person)
);

CREATE INDEX model_usage_by_day ON model_usage (day);
CREATE INDEX model_usage_by_person ON model_usage (person) WHERE person <> '';


-- Calls to DingTalk's open API by robot, and by month and day of Asia/Shanghai: 2026-11, 2026-11-23. The days of a month sum up to less than the
-- month where they were counted from within it on.
CREATE TABLE api_calls (
    month      text NOT NULL,
    api        text NOT NULL,
    count      bigint NOT NULL CHECK (count >= 0),
    robot_code text NOT NULL DEFAULT '',

    PRIMARY KEY (robot_code, month, api)
);

CREATE TABLE api_days (
    day        text NOT NULL,
    api        text NOT NULL,
    count      bigint NOT NULL CHECK (count >= 0),
    robot_code text NOT NULL DEFAULT '',

    PRIMARY KEY (robot_code, day, api)
);

-- A robot's month of all APIs together. The lock of its row makes replicas agree on the calls that are left.
CREATE TABLE api_months (
    month           text NOT NULL,
    calls           bigint NOT NULL DEFAULT 0 CHECK (calls >= 0), -- sum of api_calls.count
    quota           bigint NOT NULL,                              -- 0: no bound
    level           integer NOT NULL DEFAULT 0,                   -- lowest level that was reported; 0 is the highest
    exhausted_until timestamptz,                                  -- DingTalk refuses calls until then
    robot_code      text NOT NULL DEFAULT '',

    PRIMARY KEY (robot_code, month)
);


-- The applications that this installation has or had, by the code of their robot. A process with another one alone serves each code but these.
CREATE TABLE robots (
    robot_code text NOT NULL PRIMARY KEY,
    name       text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now() -- the last start of a process that has it
);


-- Logins of the console, known to all replicas. The token of the cookie is stored as its hash alone. actor of a person is the staff
-- id, by which each request decides the rights.
CREATE TABLE console_logins (
    token_hash bytea PRIMARY KEY,
    role       text NOT NULL CHECK (role IN ('admin', 'viewer', 'person')),
    actor      text NOT NULL,
    nick       text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);

-- Logins by DingTalk that have ended: each ends once, on any replica. The browser keeps one that has begun.
CREATE TABLE console_login_states (
    state_hash bytea PRIMARY KEY,
    next       text NOT NULL, -- path of the console that the login leads to
    expires_at timestamptz NOT NULL
);

-- Actions of administrators. A row exists before its action. outcome is empty while that runs; a process that dies leaves it so.
-- detail has ids and counts, and no text of a person.
CREATE TABLE audit (
    session_key text NOT NULL DEFAULT '', -- empty: the action is of no one session
    id          bigint GENERATED ALWAYS AS IDENTITY,
    at          timestamptz NOT NULL DEFAULT now(),
    actor       text NOT NULL,
    action      text NOT NULL,
    detail      text NOT NULL DEFAULT '',
    outcome     text NOT NULL DEFAULT '',
    person      text NOT NULL DEFAULT '', -- id of the person whom the action concerned; empty: none, or erased

    PRIMARY KEY (session_key, id)
);

CREATE INDEX audit_id ON audit (id);
CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX audit_by_actor ON audit (actor, at);
CREATE INDEX audit_by_person ON audit (person) WHERE person <> '';
-- The third part of a session's key is the member whose session it is.
CREATE INDEX audit_of_members ON audit ((split_part(session_key, '/', 3))) WHERE split_part(session_key, '/', 3) <> '';
