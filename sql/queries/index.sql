-- The search index of a session's log: see the package index. Each statement reads or changes one session.

-- name: EventIndexLock :one
-- EventIndexLock locks the index of a session until the transaction ends, and makes one where there is none.
INSERT INTO event_index AS i (session_key) VALUES (@session_key)
ON CONFLICT (session_key) DO UPDATE SET version = i.version
RETURNING i.through_seq, i.again, i.next_segment, i.version;

-- name: EventIndexRead :one
-- EventIndexRead reads how far the log of a session is indexed, by which rules, and how long it is.
SELECT coalesce((SELECT i.through_seq FROM event_index i WHERE i.session_key = @session_key), 0)::bigint AS through_seq,
    coalesce((SELECT i.version FROM event_index i WHERE i.session_key = @session_key), 0)::int AS version,
    coalesce((SELECT max(e.seq) FROM dingtalk_session_events e WHERE e.session_key = @session_key), 0)::bigint AS last_seq;

-- name: EventIndexSet :exec
UPDATE event_index i SET through_seq = @through_seq, again = '{}', next_segment = @next_segment, version = @version
WHERE i.session_key = @session_key;

-- name: EventIndexAgain :exec
-- EventIndexAgain names events whose text changed: a search reads them until they are indexed again.
UPDATE event_index i SET again = i.again || @seqs::bigint[] WHERE i.session_key = @session_key;

-- name: EventIndexDelete :exec
DELETE FROM event_index i WHERE i.session_key = @session_key;

-- name: SessionsUnindexed :many
-- SessionsUnindexed lists sessions, after a key and in the order of keys, with a number of places behind the indexed ones, or with
-- an index by other rules.
SELECT s.session_key FROM dingtalk_sessions s LEFT JOIN event_index i ON i.session_key = s.session_key
WHERE s.session_key > @after_key::text
  AND (s.last_seq - coalesce(i.through_seq, 0) >= @places::bigint OR i.version <> @version::int AND i.through_seq > 0)
ORDER BY s.session_key
LIMIT @max_rows::int;

-- name: EventsToIndex :many
-- EventsToIndex reads the beginnings of the searched texts in a range of places, with at most max_bytes bytes, but at least one.
-- listed is their number without that bound.
SELECT b.seq::bigint AS seq, left(b.content, @max_chars::int)::text AS content, b.listed::int AS listed
FROM (
    SELECT e.seq, e.content, count(*) OVER () AS listed,
        sum(octet_length(e.content)) OVER (ORDER BY e.seq) - octet_length(e.content) AS before
    FROM dingtalk_session_events e
    WHERE e.session_key = @session_key AND e.seq > @after_seq::bigint AND e.seq <= @through_seq::bigint
      AND e.searched AND e.role IN ('user', 'assistant')
) b
WHERE b.before < @max_bytes::bigint
ORDER BY b.seq;

-- name: EventsToIndexAgain :many
SELECT e.seq::bigint AS seq, left(e.content, @max_chars::int)::text AS content FROM dingtalk_session_events e
WHERE e.session_key = @session_key AND e.seq = ANY(@seqs::bigint[]) AND e.searched AND e.role IN ('user', 'assistant');

-- name: EventTermsInsert :exec
INSERT INTO event_terms (session_key, seq, terms)
SELECT @session_key, unnest(@seqs::bigint[]), unnest(@terms::bytea[])
ON CONFLICT (session_key, seq) DO UPDATE SET terms = EXCLUDED.terms;

-- name: EventTermsDelete :exec
DELETE FROM event_terms t WHERE t.session_key = @session_key AND t.seq = ANY(@seqs::bigint[]);

-- name: EventTermsExpire :exec
DELETE FROM event_terms t WHERE t.session_key = @session_key AND t.seq <= @through_seq::bigint;

-- name: SegmentsList :many
SELECT g.segment, g.texts, g.first_seq, g.sizes FROM event_segments g WHERE g.session_key = @session_key ORDER BY g.segment DESC;

-- name: SegmentBlocks :many
SELECT p.postings FROM event_postings p WHERE p.session_key = @session_key AND p.segment = @segment ORDER BY p.block;

-- name: SegmentInsert :exec
INSERT INTO event_segments (session_key, segment, first_seq, texts, bits, sizes)
VALUES (@session_key, @segment, @first_seq, @texts, @bits, @sizes);

-- name: PostingsInsert :exec
INSERT INTO event_postings (session_key, segment, block, postings)
SELECT @session_key, @segment, unnest(@blocks::int[]), unnest(@postings::bytea[]);

-- name: SegmentsDelete :exec
DELETE FROM event_segments g WHERE g.session_key = @session_key AND g.segment = ANY(@segments::int[]);

-- name: PostingsDelete :exec
DELETE FROM event_postings p WHERE p.session_key = @session_key AND p.segment = ANY(@segments::int[]);

-- name: PostingsFind :many
-- PostingsFind reads the sizes of each segment, and the blocks of some terms, in one snapshot. Each block is a step of the
-- primary key: hence OFFSET 0.
SELECT g.first_seq::bigint AS first_seq, g.sizes::bytea AS body, true AS sizes
FROM event_segments g WHERE g.session_key = @session_key
UNION ALL
SELECT 0 AS first_seq, f.postings AS body, false AS sizes
FROM event_segments s
CROSS JOIN LATERAL (SELECT DISTINCT (h.hash >> (32 - s.bits))::int AS block FROM unnest(@hashes::bigint[]) AS h (hash)) b
CROSS JOIN LATERAL (SELECT p.postings FROM event_postings p
    WHERE p.session_key = @session_key AND p.segment = s.segment AND p.block = b.block OFFSET 0) f
WHERE s.session_key = @session_key;

-- name: EventsBeside :many
-- EventsBeside reads the search columns of indexed events at some places, the first ones with at most max_bytes bytes of terms
-- in all. Their transfer is the slowest part of a search.
SELECT b.seq::bigint AS seq, b.role, b.sender_id, b.sender_nick, b.created_at, b.terms
FROM (
    SELECT e.seq, e.role, e.sender_id, e.sender_nick, e.created_at, t.terms,
        sum(octet_length(t.terms)) OVER (ORDER BY w.place) - octet_length(t.terms) AS before
    FROM unnest(@seqs::bigint[]) WITH ORDINALITY AS w (seq, place)
    JOIN event_terms t ON t.session_key = @session_key AND t.seq = w.seq
    JOIN dingtalk_session_events e ON e.session_key = @session_key AND e.seq = w.seq
) b
WHERE b.before < @max_bytes::bigint;

-- name: EventsTold :many
-- EventsTold reads the newest indexed messages in a time, of all people and the bot or of some.
SELECT e.seq::bigint AS seq, e.role, e.sender_id, e.sender_nick, e.created_at, t.terms
FROM dingtalk_session_events e JOIN event_terms t ON t.session_key = e.session_key AND t.seq = e.seq
WHERE e.session_key = @session_key AND e.created_at >= @from_time AND e.created_at < @to_time
  AND (cardinality(@sender_ids::text[]) = 0 OR e.sender_id = ANY(@sender_ids::text[]))
ORDER BY e.seq DESC
LIMIT @max_rows::int;

-- name: EventsUnindexed :many
-- EventsUnindexed reads the beginnings of the newest searched texts behind the indexed ones, with at most max_bytes bytes in all.
SELECT u.seq::bigint AS seq, u.role, u.sender_id, u.sender_nick, u.created_at, left(u.content, @max_chars::int)::text AS content
FROM (
    SELECT n.seq, n.role, n.sender_id, n.sender_nick, n.created_at, n.content,
        sum(least(octet_length(n.content), 4 * @max_chars::int)) OVER (ORDER BY n.seq DESC)
            - least(octet_length(n.content), 4 * @max_chars::int) AS before
    FROM (
        SELECT e.seq, e.role, e.sender_id, e.sender_nick, e.created_at, e.content FROM dingtalk_session_events e
        WHERE e.session_key = @session_key AND (e.seq > @after_seq::bigint OR e.seq = ANY(@again::bigint[]))
          AND e.searched AND e.role IN ('user', 'assistant')
        ORDER BY e.seq DESC
        LIMIT @max_rows::int
    ) n
) u
WHERE u.before < @max_bytes::bigint
ORDER BY u.seq DESC;
