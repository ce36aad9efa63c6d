-- name: CardHold :batchone
-- CardHold keeps a session from its deletion until the transaction ends. No row: the lease is not the current one.
SELECT s.lease_term FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term FOR KEY SHARE;

-- name: CardOpen :batchone
-- CardOpen records a card before its delivery. It is not abandoned during the hold. No row: an earlier attempt recorded it, and may
-- have delivered it.
INSERT INTO cards (session_key, out_track_id, turn_event_id, kind, content_key, next_at)
SELECT s.session_key, @out_track_id::text, @turn_event_id::bigint, @kind::text, @content_key::text,
    now() + interval '1 second' * @hold_seconds::float8
FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term
ON CONFLICT (session_key, out_track_id) DO NOTHING
RETURNING out_track_id;

-- name: CardState :batchone
SELECT c.state FROM cards c WHERE c.session_key = @session_key AND c.out_track_id = @out_track_id;

-- name: CardOpenOf :one
-- CardOpenOf finds the oldest open reply card of a session among some track ids, and of turns that begin with some messages.
SELECT c.out_track_id, c.turn_event_id, c.prepaid, c.created_at, c.content_key,
    greatest(0, extract(epoch FROM c.frame_until - now()))::float8 AS busy_seconds
FROM cards c
WHERE c.session_key = @session_key AND (c.out_track_id = ANY(@tracks::text[]) OR c.turn_event_id = ANY(@events::bigint[])) AND c.state = 'open' AND c.kind = 'card'
ORDER BY c.created_at, c.out_track_id LIMIT 1;

-- name: CardFrame :batchone
-- CardFrame records that a call shows something on an open card, and the key of the card's message if it is known. No row: the lease
-- is not the current one, the card is not open, or a call of an earlier term may be under way.
UPDATE cards c SET frame_term = @term::bigint, frame_until = now() + interval '1 second' * @frame_seconds::float8,
    carrier = CASE WHEN @carrier::text = '' THEN c.carrier ELSE @carrier::text END
WHERE c.session_key = @session_key AND c.out_track_id = @out_track_id AND c.state = 'open'
  AND (c.frame_until IS NULL OR c.frame_term = @term::bigint OR c.frame_until <= now())
  AND EXISTS (SELECT FROM dingtalk_sessions s
    WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term::bigint)
RETURNING c.out_track_id;

-- name: CardFrameEnd :exec
-- CardFrameEnd records that the calls of a term are over.
UPDATE cards c SET frame_term = NULL, frame_until = NULL
WHERE c.session_key = @session_key AND c.out_track_id = @out_track_id AND c.frame_term = @term::bigint;

-- name: FramesOpen :one
-- FramesOpen reports whether a call of a term that has ended may still show something. It reads the partial index of open cards.
SELECT EXISTS (
    SELECT 1 FROM cards c WHERE c.state = 'open' AND c.frame_until > now()
      AND NOT EXISTS (SELECT FROM dingtalk_sessions s WHERE s.session_key = c.session_key AND s.lease_term = c.frame_term)) AS open;

-- name: CardRelease :exec
-- CardRelease ends an open card's hold. A reaction that was removed meanwhile is open again: the call that set it may have come after
-- its removal. The first removal has spent the calls that were reserved.
UPDATE cards c SET next_at = now(), state = 'open', settled_at = NULL, prepaid = c.prepaid AND c.state = 'open', tries = c.tries * (c.state = 'open')::int
WHERE c.session_key = @session_key AND c.out_track_id = @out_track_id AND (c.state = 'open' OR c.kind = 'reaction');

-- name: CardSettle :execrows
-- CardSettle records that a card shows its last frame, or an error. No row: it is not open, or its session was deleted.
UPDATE cards c SET state = @state::text, next_at = now(), settled_at = now()
WHERE c.session_key = @session_key AND c.out_track_id = @out_track_id AND c.state = 'open'
  AND EXISTS (SELECT FROM dingtalk_sessions s WHERE s.session_key = @session_key);

-- name: CardForget :exec
-- CardForget deletes the card of a deleted session: its key may name a person.
DELETE FROM cards c
WHERE c.session_key = @session_key AND c.out_track_id = @out_track_id
  AND NOT EXISTS (SELECT FROM dingtalk_sessions s WHERE s.session_key = @session_key);

-- name: CardPrepaid :exec
-- CardPrepaid records whether the call that ends an open card is counted, and the variable of its text.
UPDATE cards c SET prepaid = @prepaid::boolean, content_key = @content_key::text
WHERE c.session_key = @session_key AND c.out_track_id = @out_track_id AND c.state = 'open'
  AND (c.prepaid <> @prepaid::boolean OR c.content_key <> @content_key::text);

-- name: CardLeave :execrows
-- CardLeave makes a claimed reply take another way than its card. No row: a later claim, or a settled reply.
UPDATE outbox o SET target = o.target - 'card'
WHERE o.session_key = @session_key AND o.id = @id AND o.state IN ('sending', 'waiting') AND o.attempts = @attempt::int;

-- name: CardsAbandoned :many
-- CardsAbandoned lists open cards that no turn and no reply will finish: their message does not wait, and no open reply
-- names them. A reply that was erased during its delivery may end its card all the same: its outcome is awaited for a few
-- seconds, or the card would be closed after its end. So is a call under way. It reads the partial index of open cards. prefix begins the
-- keys of one robot's sessions; empty: all but those of others, which are the first parts of keys.
SELECT o.session_key, o.out_track_id, o.turn_event_id, o.prepaid, o.tries, o.created_at, o.content_key FROM cards o
WHERE o.state = 'open' AND o.kind = @kind AND o.next_at <= now() AND (o.frame_until IS NULL OR o.frame_until <= now())
  AND starts_with(o.session_key, @prefix::text) AND NOT split_part(o.session_key, '/', 1) = ANY(@others::text[])
  AND NOT EXISTS (SELECT FROM dingtalk_session_events e
    WHERE e.session_key = o.session_key AND e.id = o.turn_event_id AND e.state = 'pending')
  AND NOT EXISTS (SELECT FROM outbox r
    WHERE r.session_key = o.session_key AND r.state IN ('sending', 'waiting') AND r.target ->> 'card' = o.out_track_id)
  AND NOT EXISTS (SELECT FROM outbox r
    WHERE r.session_key = o.session_key AND r.state = 'failed' AND r.in_flight AND r.settled_at > now() - interval '4 seconds'
      AND r.target ->> 'card' = o.out_track_id)
ORDER BY o.next_at LIMIT @max_cards::int;

-- name: CardClaim :execrows
-- CardClaim claims a card of that list. No row: another replica has it.
UPDATE cards c SET next_at = now() + interval '1 second' * @retry_seconds::float8, tries = c.tries + 1
WHERE c.session_key = @session_key AND c.out_track_id = @out_track_id AND c.state = 'open' AND c.tries = @tries::int AND c.next_at <= now();

-- name: CardPostpone :exec
-- CardPostpone ends a claim of an open card, unless there is a later one.
UPDATE cards c SET
    next_at = now() + interval '1 second' * @pause_seconds::float8,
    prepaid = c.prepaid AND NOT @made::boolean,
    tries = c.tries - (NOT @made::boolean)::int
WHERE c.session_key = @session_key AND c.out_track_id = @out_track_id AND c.state = 'open' AND c.tries = @tries::int;

-- name: CardsGivenUp :one
SELECT count(*)::int FROM cards c WHERE c.state = 'given_up' AND c.kind = 'card';

-- name: CardClicked :one
-- CardClicked finds the card of a click in any session, by an index. asked: the person wrote a message that the card's turn
-- answers. shared: so did others, or they may once the turn begins, and it has not committed. running: the turn has not committed.
-- words: the person's newest words in the session, besides commands and quotes. organization: the robot's, by the first message that
-- the card's turn answers, else by the newest one that has it; empty: unknown.
SELECT
    sqlc.embed(c), s.robot_code, s.conversation_id, s.conversation_type, s.title,
    coalesce((SELECT nullif(f.message ->> 'organization', '') FROM dingtalk_session_events f
        WHERE f.session_key = c.session_key AND f.id = c.turn_event_id),
        (SELECT f.message ->> 'organization' FROM dingtalk_session_events f
        WHERE f.session_key = c.session_key AND f.message ->> 'organization' <> ''
        ORDER BY f.id DESC LIMIT 1), '')::text AS organization,
    coalesce((SELECT e.state = 'pending' FROM dingtalk_session_events e
        WHERE e.session_key = c.session_key AND e.id = c.turn_event_id), false)::boolean AS running,
    (EXISTS (
        SELECT FROM dingtalk_session_events f
        WHERE f.session_key = c.session_key AND f.id = c.turn_event_id AND f.role = 'user' AND f.sender_id = @person::text
    ) OR EXISTS (
        SELECT FROM dingtalk_session_events f JOIN dingtalk_session_events e ON e.session_key = f.session_key
        WHERE f.session_key = c.session_key AND f.id = c.turn_event_id AND e.sender_id = @person::text
          AND f.state = 'pending' AND e.state = 'pending' AND e.attempt_term = f.attempt_term
    ) OR EXISTS (
        SELECT FROM dingtalk_session_events f JOIN dingtalk_session_events e ON e.session_key = f.session_key
        WHERE f.session_key = c.session_key AND f.id = c.turn_event_id AND e.role = 'user' AND e.sender_id = @person::text
          AND e.turn = f.turn AND e.seq BETWEEN f.seq - 100 AND f.seq + 100 -- a turn takes at most 100 messages, one behind the other
    ))::boolean AS asked,
    EXISTS (
        SELECT FROM dingtalk_session_events f JOIN dingtalk_session_events e ON e.session_key = f.session_key
        WHERE f.session_key = c.session_key AND f.id = c.turn_event_id AND e.sender_id <> @person::text
          AND f.state = 'pending' AND e.state = 'pending' AND e.attempt_term IS NOT DISTINCT FROM f.attempt_term
    ) AS shared,
    coalesce((SELECT left(p.content, 200) FROM dingtalk_session_events p
        WHERE p.session_key = c.session_key AND p.sender_id = @person::text AND p.sender_id <> '' AND p.role = 'user'
          AND p.content NOT LIKE '/%' AND p.message -> 'quote' IS NULL
        ORDER BY p.id DESC LIMIT 1), '')::text AS words,
    coalesce((SELECT n.nick FROM people n WHERE n.session_key = c.session_key AND n.person = @person::text
        ORDER BY n.spoke DESC, n.seen_at DESC LIMIT 1), '')::text AS nick
FROM cards c JOIN dingtalk_sessions s ON s.session_key = c.session_key
WHERE c.out_track_id = @out_track_id
LIMIT 1;

-- name: CardRate :execrows
-- CardRate stores the first rating of a card.
UPDATE cards c SET rating = @rating::text
WHERE c.session_key = @session_key AND c.out_track_id = @out_track_id AND c.rating = '';

-- name: CardsExpire :exec
-- CardsExpire deletes cards without a rating that were settled a while ago. Their buttons then do nothing.
DELETE FROM cards c WHERE c.state <> 'open' AND c.rating = '' AND c.settled_at < now() - interval '1 second' * @rest_seconds::float8;
