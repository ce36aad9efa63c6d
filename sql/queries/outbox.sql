-- name: OutboxNotice :one
-- OutboxNotice stores a notice that no turn commits. It is claimed before its first try. The caller locks the session's
-- row.
INSERT INTO outbox (session_key, target, body, nonce, state, sender, in_flight, next_at)
VALUES (@session_key, @target, @body, @nonce, 'sending', @owner::text, false, now() + interval '1 second' * @hand_seconds::float8)
RETURNING id, created_at;

-- name: LeaseHold :batchone
-- LeaseHold locks the row of a session until the transaction ends, if the lease is the current one: a takeover waits.
SELECT s.lease_term FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term FOR SHARE;

-- name: OutboxAnnounce :batchone
-- OutboxAnnounce is OutboxNotice under a lease, once for each nonce. No row: the lease is not the current one, or the notice
-- was stored before.
INSERT INTO outbox (session_key, target, body, nonce, state, sender, in_flight, next_at)
SELECT s.session_key, @target::jsonb, @body::text, @nonce::text, 'sending', @owner::text, false, now() + interval '1 second' * @hand_seconds::float8
FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
  AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.session_key = @session_key AND o.nonce = @nonce::text)
RETURNING id, created_at;

-- name: OutboxSettle :batchone
-- OutboxSettle stores that a reply was sent, or that it failed. A settled row changes only by losing its address, which is no
-- longer needed. Erased words go then. No row: the reply does not exist any more.
UPDATE outbox o SET
    body = CASE WHEN coalesce((o.target ->> 'passing')::boolean, false) THEN @erased::text ELSE o.body END,
    target = o.target - 'webhook' - 'webhook_expires' - 'staff_id' - 'mentions',
    state = CASE WHEN o.settled_at IS NULL THEN @state::text ELSE o.state END,
    settled_at = coalesce(o.settled_at, @settled_at::timestamptz),
    in_flight = false,
    joint = CASE WHEN @maybe::boolean THEN o.joint ELSE '' END,
    refusals = o.refusals + @refusals::int,
    part = greatest(o.part, @part::int),
    via = @via,
    error = @error,
    resumed = o.resumed OR @maybe::boolean,
    carriers = CASE WHEN @carrier::text = '' THEN o.carriers ELSE array_append(o.carriers, @carrier::text) END
WHERE o.session_key = @session_key AND o.id = @id
RETURNING o.id;

-- name: OutboxPause :batchone
-- OutboxPause stores the outcome of a try after which a reply waits for the next one. It counts only for the row's last try,
-- since a result may be late. A reply that was settled meanwhile stays so, and loses its address. No row: the reply or the try
-- does not exist any more.
UPDATE outbox o SET
    body = CASE WHEN o.settled_at IS NOT NULL AND coalesce((o.target ->> 'passing')::boolean, false) THEN @erased::text ELSE o.body END,
    target = CASE WHEN o.settled_at IS NULL THEN o.target ELSE o.target - 'webhook' - 'webhook_expires' - 'staff_id' - 'mentions' END,
    state = CASE WHEN o.settled_at IS NULL THEN 'waiting' ELSE o.state END,
    in_flight = false,
    joint = CASE WHEN @maybe::boolean THEN o.joint ELSE '' END,
    refusals = o.refusals + @refusals::int,
    part = greatest(o.part, @part::int),
    via = @via,
    error = @error,
    resumed = o.resumed OR @maybe::boolean,
    carriers = CASE WHEN @carrier::text = '' THEN o.carriers ELSE array_append(o.carriers, @carrier::text) END,
    next_at = @next_at
WHERE o.session_key = @session_key AND o.id = @id AND o.attempts = @attempt::int
RETURNING o.id;

-- name: OutboxCard :batchexec
-- OutboxCard settles the open card of a reply, and notes the key of its message if it is known.
UPDATE cards c SET state = @state::text, settled_at = now(),
    carrier = CASE WHEN @carrier::text = '' THEN c.carrier ELSE @carrier::text END
FROM outbox r
WHERE r.session_key = @session_key AND r.id = @id
  AND c.session_key = @session_key AND c.out_track_id = r.target ->> 'card' AND c.state = 'open';

-- name: OutboxIsOpen :one
-- OutboxIsOpen reports whether replies of a session are open. No row: the lease is not the current one.
SELECT EXISTS (SELECT FROM outbox o WHERE o.session_key = @session_key AND o.state IN ('sending', 'waiting')) AS open
FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term;

-- name: OutboxUnsent :batchmany
-- OutboxUnsent lists the open replies of a session, without their texts, as they are before OutboxTake and OutboxAdopt. took says
-- that another replica had it last, due that it neither pauses nor is being tried. A row with another replica's try in flight may
-- have been sent, as one that is resumed. An earlier answer with a due row may have been lost.
SELECT o.id, o.target, o.nonce, o.joint, o.via, o.part, o.refusals, o.next_at, o.created_at,
    o.sender <> @owner::text AS took,
    (o.state = 'sending' OR o.next_at <= now())::boolean AS taken,
    (o.state = 'sending' AND NOT o.in_flight OR o.state = 'waiting' AND o.next_at <= now())::boolean AS due,
    (o.resumed OR o.in_flight AND o.sender NOT IN ('', @owner::text))::boolean AS resumed
FROM outbox o WHERE o.session_key = @session_key AND o.state IN ('sending', 'waiting')
ORDER BY o.id FOR UPDATE;

-- name: OutboxTake :batchexec
-- OutboxTake claims the open replies that do not pause for a replica.
UPDATE outbox o SET
    resumed = o.resumed OR o.in_flight AND o.sender NOT IN ('', @owner::text),
    sender = @owner::text,
    state = 'sending',
    next_at = now() + interval '1 second' * @hand_seconds::float8
FROM dingtalk_sessions s
WHERE o.session_key = @session_key AND o.state IN ('sending', 'waiting') AND (o.state = 'sending' OR o.next_at <= now())
  AND s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term;

-- name: OutboxAdopt :batchexec
-- OutboxAdopt makes the replies that pause a replica's.
UPDATE outbox o SET sender = @owner::text
FROM dingtalk_sessions s
WHERE o.session_key = @session_key AND o.state = 'waiting' AND o.sender <> @owner::text
  AND s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term;

-- name: OutboxClaim :batchmany
-- OutboxClaim takes open replies of a session for one try and returns their current state. A reply that was settled,
-- given up or erased meanwhile does not come back. joint is the key of the message that they are a part of. part is the
-- number of delivered parts of a reply sent alone, under its key: an erasure replaces the key with the text. carrier is DingTalk's key of
-- the part that arrived last.
UPDATE outbox o SET
    in_flight = true,
    joint = @joint::text,
    part = CASE WHEN o.nonce = @nonce::text THEN greatest(o.part, @part::int) ELSE o.part END,
    carriers = CASE WHEN @carrier::text = '' THEN o.carriers ELSE array_append(o.carriers, @carrier::text) END,
    attempts = o.attempts + 1,
    sender = @owner::text,
    state = 'sending',
    next_at = now() + interval '1 second' * @hand_seconds::float8
FROM dingtalk_sessions s
WHERE o.session_key = @session_key AND o.id = ANY(@ids::bigint[]) AND o.state IN ('sending', 'waiting')
  AND s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
RETURNING o.id, o.target, o.body, o.nonce, o.resumed, o.attempts, o.part, o.refusals, o.created_at;

-- name: OutboxPutDown :batchexec
-- OutboxPutDown releases a sender's claims on open replies: they are due. It needs no lease: the sender's rows are its own.
UPDATE outbox o SET sender = '', in_flight = false, state = 'waiting', next_at = now()
WHERE o.sender = @owner::text AND o.state = 'sending';

-- name: OutboxLeave :batchexec
-- OutboxLeave releases a sender's replies that pause.
UPDATE outbox o SET sender = '', in_flight = false WHERE o.sender = @owner::text AND o.state = 'waiting';
