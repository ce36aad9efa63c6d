-- The nearest of some scopes' texts to a vector, by pgvector: events, or memories with some hashes. $1 scope keys,
-- $2 model, $3 vector, $4 its length, $5 events, $6 hashes, $7 limit.
SELECT n.content_hash, n.seq, n.near
FROM (
    SELECT e.content_hash, e.seq,
        CASE WHEN cardinality(e.vec) = $4::int THEN 1 - (e.vec::vector <=> $3::real[]::vector) END AS near
    FROM embeddings e
    WHERE e.scope_key = ANY($1::text[]) AND e.model = $2::text
      AND CASE WHEN $5::boolean THEN e.seq > 0 ELSE e.content_hash = ANY($6::bytea[]) END
) n
WHERE n.near > 0
ORDER BY n.near DESC, n.seq DESC, n.content_hash
LIMIT $7::int
