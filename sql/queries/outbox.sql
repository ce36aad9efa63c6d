-- name: OutboxNotice :one
-- OutboxNotice stores a notice that no turn commits. It is claimed before its first try. The caller locks the session's
-- row.
INSERT INTO outbox (session_key, target, body, nonce, state, sender, in_flight, next_at)
VALUES (@session_key, @target, @body, @nonce, 'sending', @owner::text, false, now() + interval '1 second' * @hand_seconds::float8)
RETURNING id, created_at;

-- name: OutboxAnnounce :one
-- OutboxAnnounce is OutboxNotice under a lease, once for each nonce. No row: the lease is not the current one, or the notice
-- was stored before.
INSERT INTO outbox (session_key, target, body, nonce, state, sender, in_flight, next_at)
SELECT held.session_key, @target, @body, @nonce::text, 'sending', @owner::text, false, now() + interval '1 second' * @hand_seconds::float8
FROM (
    SELECT s.session_key FROM dingtalk_sessions s
    WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term FOR SHARE
) held
WHERE NOT EXISTS (SELECT FROM outbox o WHERE o.session_key = @session_key AND o.nonce = @nonce::text)
RETURNING id, created_at;

-- name: OutboxSettle :batchone
-- OutboxSettle stores the outcome of a try. A settled row changes only by losing its address, which is no longer
-- needed. Erased words go then. An outcome that leaves the reply open counts only for the row's last try, since a
-- result may be late. No row: the reply or the try does not exist any more. card is the new state of the reply's card;
-- empty: unchanged. The two are compared per row: a condition on card alone would make each plan of a server without cards
-- cheaper than the general one, and the server would plan each execution.
WITH carded AS (
    UPDATE cards c SET state = @card::text, settled_at = now()
    FROM outbox r
    WHERE r.session_key = @session_key AND r.id = @id
      AND c.session_key = @session_key AND c.out_track_id = r.target ->> 'card' AND c.state = 'open'
      AND c.state <> coalesce(nullif(@card::text, ''), 'open')
)
UPDATE outbox o SET
    body = CASE WHEN coalesce((o.target ->> 'passing')::boolean, false) AND (o.state IN ('sent', 'failed') OR @state::text IN ('sent', 'failed'))
        THEN @erased::text ELSE o.body END,
    target = CASE WHEN o.state IN ('sent', 'failed') OR @state::text IN ('sent', 'failed')
        THEN o.target - 'webhook' - 'webhook_expires' - 'staff_id' - 'mentions' ELSE o.target END,
    state = CASE WHEN o.state IN ('sent', 'failed') THEN o.state ELSE @state::text END,
    settled_at = CASE WHEN o.state IN ('sent', 'failed') THEN o.settled_at
        WHEN @state::text IN ('sent', 'failed') THEN now() END,
    in_flight = false,
    joint = CASE WHEN @maybe::boolean THEN o.joint ELSE '' END,
    refusals = o.refusals + CASE WHEN @refused::boolean THEN 1 ELSE 0 END,
    part = greatest(o.part, @part::int),
    via = @via,
    error = @error,
    resumed = o.resumed OR @maybe::boolean,
    next_at = @next_at
WHERE o.session_key = @session_key AND o.id = @id AND (@state::text IN ('sent', 'failed') OR o.attempts = @attempt::int)
RETURNING o.id;

-- name: OutboxUnsent :many
-- OutboxUnsent lists the open replies of a session, without their texts, and claims the due ones for owner. A row with
-- another replica's try in flight may have been sent: it is marked as resumed permanently. took says that another
-- replica had it last, due that it neither pauses nor is being tried. An earlier answer with a due row may have been lost. At
-- least one row comes back when the lease is the current one. Its id is 0 when no reply is open.
WITH held AS (
    SELECT s.session_key FROM dingtalk_sessions s
    WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term FOR SHARE
), last AS (
    SELECT o.id, o.sender, o.state = 'waiting' AND o.next_at <= now() OR o.state = 'sending' AND NOT o.in_flight AS due
    FROM outbox o WHERE o.session_key = @session_key AND o.state IN ('sending', 'waiting')
), listed AS (
    UPDATE outbox o SET
        resumed = o.resumed OR o.in_flight AND o.sender NOT IN ('', @owner::text),
        sender = @owner::text,
        state = CASE WHEN o.state = 'sending' OR o.next_at <= now() THEN 'sending' ELSE 'waiting' END,
        next_at = CASE WHEN o.state = 'sending' OR o.next_at <= now()
            THEN now() + interval '1 second' * @hand_seconds::float8 ELSE o.next_at END
    FROM held, last
    WHERE o.session_key = @session_key AND o.id = last.id AND o.state IN ('sending', 'waiting')
    RETURNING o.id, last.sender <> @owner::text AS took, last.due, o.target, o.nonce, o.joint, o.state, o.via, o.resumed, o.part, o.refusals,
        o.next_at, o.created_at
)
SELECT
    coalesce(l.id, 0)::bigint AS id,
    coalesce(l.target, '{}')::jsonb AS target,
    coalesce(l.nonce, '')::text AS nonce,
    coalesce(l.joint, '')::text AS joint,
    coalesce(l.state, '')::text AS state,
    coalesce(l.via, '')::text AS via,
    coalesce(l.resumed, false)::boolean AS resumed,
    coalesce(l.took, false)::boolean AS took,
    coalesce(l.due, false)::boolean AS due,
    coalesce(l.part, 0)::int AS part,
    coalesce(l.refusals, 0)::int AS refusals,
    coalesce(l.next_at, now())::timestamptz AS next_at,
    coalesce(l.created_at, now())::timestamptz AS created_at
FROM held LEFT JOIN listed l ON true
ORDER BY l.id;

-- name: OutboxClaim :many
-- OutboxClaim takes open replies of a session for one try and returns their current state. A reply that was settled,
-- given up or erased meanwhile does not come back. joint is the key of the message that they are a part of. part is the
-- number of delivered parts of a reply sent alone, under its key: an erasure replaces the key with the text. At least
-- one row comes back when the lease is the current one. Its id is 0 when no reply is open.
WITH held AS (
    SELECT s.session_key FROM dingtalk_sessions s
    WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term FOR SHARE
), claimed AS (
    UPDATE outbox o SET
        in_flight = true,
        joint = @joint::text,
        part = CASE WHEN o.nonce = @nonce::text THEN greatest(o.part, @part::int) ELSE o.part END,
        attempts = o.attempts + 1,
        sender = @owner::text,
        state = 'sending',
        next_at = now() + interval '1 second' * @hand_seconds::float8
    FROM held
    WHERE o.session_key = @session_key AND o.id = ANY(@ids::bigint[]) AND o.state IN ('sending', 'waiting')
    RETURNING o.id, o.target, o.body, o.nonce, o.resumed, o.attempts, o.part, o.refusals, o.created_at
)
SELECT
    coalesce(c.id, 0)::bigint AS id,
    coalesce(c.target, '{}')::jsonb AS target,
    coalesce(c.body, '')::text AS body,
    coalesce(c.nonce, '')::text AS nonce,
    coalesce(c.resumed, false)::boolean AS resumed,
    coalesce(c.attempts, 0)::int AS attempts,
    coalesce(c.part, 0)::int AS part,
    coalesce(c.refusals, 0)::int AS refusals,
    coalesce(c.created_at, now())::timestamptz AS created_at
FROM held LEFT JOIN claimed c ON true
ORDER BY c.id;

-- name: OutboxPutDown :exec
-- OutboxPutDown releases a sender's claims on open replies. It needs no lease: the sender's rows are its own.
UPDATE outbox o SET sender = '', in_flight = false, state = 'waiting',
    next_at = CASE WHEN o.state = 'sending' THEN now() ELSE o.next_at END
WHERE o.sender = @owner::text AND o.state IN ('sending', 'waiting');
