-- The vectors of some scopes' texts, in short: of the newest events, or of memories with some hashes. $1 scope keys,
-- $2 model, $3 length of a vector, $4 events, $5 hashes, $6 how many places of a log are looked at.
SELECT e.content_hash, e.seq, e.small
FROM embeddings e
WHERE e.scope_key = ANY($1::text[]) AND e.model = $2::text AND octet_length(e.small) = $3::int + 4
  AND CASE WHEN $4::boolean
    THEN e.seq > greatest(coalesce((SELECT max(s.last_seq) FROM dingtalk_sessions s WHERE s.session_key = ANY($1::text[])), 0) - $6::bigint, 0)
    ELSE e.content_hash = ANY($5::bytea[]) END
