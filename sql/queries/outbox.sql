-- name: OutboxSettle :batchone
-- OutboxSettle records what came of a try. A row that is settled for good stays as it is, but for the address: nobody
-- needs any more whom it was for. Words that are not to be kept go then. No row: there is no such reply.
UPDATE outbox o SET
    body = CASE WHEN coalesce((o.target ->> 'passing')::boolean, false) AND (o.state IN ('sent', 'failed') OR @state::text IN ('sent', 'failed'))
        THEN @erased::text ELSE o.body END,
    target = CASE WHEN o.state IN ('sent', 'failed') OR @state::text IN ('sent', 'failed')
        THEN o.target - 'webhook' - 'webhook_expires' - 'staff_id' - 'mentions' ELSE o.target END,
    state = CASE WHEN o.state IN ('sent', 'failed') THEN o.state ELSE @state::text END,
    settled_at = CASE WHEN o.state IN ('sent', 'failed') THEN o.settled_at
        WHEN @state::text IN ('sent', 'failed') THEN now() END,
    attempts = o.attempts + 1,
    part = greatest(o.part, @part::int),
    via = @via,
    error = @error,
    resumed = o.resumed OR @maybe::boolean,
    next_at = @next_at
WHERE o.session_key = @session_key AND o.id = @id
RETURNING o.id;

-- name: OutboxUnsent :many
-- OutboxUnsent lists the open replies of a session and marks those that are due as being in owner's hand. A row that
-- another replica had and did not put down was perhaps sent, also one that waited: its try may be older than its mark, or
-- part of a message that was due before. It is resumed, for good. took says that another replica had it last.
-- At least one row comes back when the lease is the current one. Its id is 0 where no reply is open.
WITH held AS (
    SELECT s.session_key FROM dingtalk_sessions s
    WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term FOR SHARE
), last AS (
    SELECT o.id, o.sender FROM outbox o WHERE o.session_key = @session_key AND o.state IN ('sending', 'waiting')
), listed AS (
    UPDATE outbox o SET
        resumed = o.resumed OR o.sender NOT IN ('', @owner::text),
        sender = @owner::text,
        state = CASE WHEN o.state = 'sending' OR o.next_at <= now() THEN 'sending' ELSE 'waiting' END,
        next_at = CASE WHEN o.state = 'sending' OR o.next_at <= now()
            THEN now() + interval '1 second' * @hand_seconds::float8 ELSE o.next_at END
    FROM held, last
    WHERE o.session_key = @session_key AND o.id = last.id AND o.state IN ('sending', 'waiting')
    RETURNING o.id, last.sender <> @owner::text AS took, o.target, o.body, o.nonce, o.state, o.resumed, o.attempts, o.part, o.next_at, o.created_at
)
SELECT
    coalesce(l.id, 0)::bigint AS id,
    coalesce(l.target, '{}')::jsonb AS target,
    coalesce(l.body, '')::text AS body,
    coalesce(l.nonce, '')::text AS nonce,
    coalesce(l.state, '')::text AS state,
    coalesce(l.resumed, false)::boolean AS resumed,
    coalesce(l.took, false)::boolean AS took,
    coalesce(l.attempts, 0)::int AS attempts,
    coalesce(l.part, 0)::int AS part,
    coalesce(l.next_at, now())::timestamptz AS next_at,
    coalesce(l.created_at, now())::timestamptz AS created_at
FROM held LEFT JOIN listed l ON true
ORDER BY l.id;

-- name: OutboxPutDown :exec
-- OutboxPutDown takes open replies out of a sender's hand. It needs no lease: the sender's rows are its own.
UPDATE outbox o SET sender = '', state = 'waiting', next_at = CASE WHEN o.state = 'sending' THEN now() ELSE o.next_at END
WHERE o.sender = @owner::text AND o.state IN ('sending', 'waiting');
