-- Calls of tools that wait for a person's approval.

-- name: TurnWaits :batchexec
-- TurnWaits stores a call that waits for approval, in the pipeline of the turn's commit.
INSERT INTO approvals (session_key, id, turn_event_id, tool, arguments, asked_by, expires_at, webhook, webhook_expires)
SELECT s.session_key, @id::bigint, @turn_event_id::bigint, @tool::text, @arguments::text, @asked_by::text,
    now() + interval '1 second' * @wait_seconds::float8, @webhook::text, sqlc.narg(webhook_expires)::timestamptz
FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term;

-- name: TurnAudit :batchexec
-- TurnAudit stores an action of the turn in the audit.
INSERT INTO audit (session_key, actor, action, detail, outcome)
SELECT s.session_key, @actor::text, @action::text, @detail::text, 'done'
FROM dingtalk_sessions s
WHERE s.session_key = @session_key AND s.lease_owner = @owner::text AND s.lease_term = @term;

-- name: ApprovalNumber :one
-- ApprovalNumber is the last number of a session; 0: none.
SELECT coalesce(max(a.id), 0)::bigint AS last FROM approvals a WHERE a.session_key = @session_key;

-- name: ApprovalsWaiting :many
SELECT a.* FROM approvals a
WHERE a.session_key = @session_key AND a.state = 'waiting' AND a.expires_at > now()
ORDER BY a.id;

-- name: ApprovalsFind :many
-- ApprovalsFind reads the approval of a number, those of a turn, those that a message decided, and all that wait if neither number
-- nor turn is set. asked: the person wrote a message that the turn of the call answered. asker and decider are nicks; empty: unknown.
SELECT sqlc.embed(a),
    (a.asked_by <> '' AND (a.asked_by = @person::text OR EXISTS (
        SELECT FROM dingtalk_session_events f JOIN dingtalk_session_events e ON e.session_key = f.session_key
        WHERE f.session_key = @session_key AND f.id = a.turn_event_id AND e.role = 'user' AND e.sender_id = @person::text AND e.sender_id <> ''
          AND e.turn = f.turn AND e.seq BETWEEN f.seq - 100 AND f.seq + 100)))::boolean AS asked,
    (a.expires_at <= now())::boolean AS overdue,
    coalesce((SELECT q.sender_nick FROM dingtalk_session_events q
        WHERE q.session_key = @session_key AND q.sender_id = a.asked_by AND q.sender_id <> ''
        ORDER BY q.id DESC LIMIT 1), '')::text AS asker,
    coalesce((SELECT d.sender_nick FROM dingtalk_session_events d
        WHERE d.session_key = @session_key AND d.id = a.decided_event), '')::text AS decider
FROM approvals a
WHERE a.session_key = @session_key AND (a.decided_event = @event::bigint OR CASE
    WHEN @id::bigint > 0 THEN a.id = @id::bigint
    WHEN @turn::bigint > 0 THEN a.turn_event_id = @turn::bigint
    ELSE a.state = 'waiting' END)
ORDER BY a.id LIMIT 100;

-- name: ApprovalsDecide :many
-- ApprovalsDecide decides calls that still wait. The session's row is locked, and the lease is the current one.
UPDATE approvals a SET state = @state::text, decided_by = @decided_by::text, decided_at = now(), decided_event = @event::bigint, webhook = '', webhook_expires = NULL
WHERE a.session_key = @session_key AND a.id = ANY(@ids::bigint[]) AND a.state = 'waiting' AND a.expires_at > now()
RETURNING *;

-- name: ApprovalsDecided :exec
-- ApprovalsDecided marks the message of a decision, so that a later attempt at it goes on, however old it is then.
UPDATE dingtalk_session_events e SET message = e.message || jsonb_build_object('outcome', @outcome::text)
WHERE e.session_key = @session_key AND e.id = @event AND e.state = 'pending';

-- name: ApprovalAudit :exec
INSERT INTO audit (session_key, actor, action, detail, outcome) VALUES (@session_key, @actor, @action, @detail, 'done');

-- name: ApprovalsCount :one
-- ApprovalsCount counts calls that wait, by the index of their ends.
SELECT count(*) FROM approvals a WHERE a.state = 'waiting' AND a.expires_at > '-infinity';

-- name: ApprovalsDue :many
-- ApprovalsDue lists calls whose time to wait is over, the oldest first, behind one of the list.
SELECT a.* FROM approvals a
WHERE a.state = 'waiting' AND a.expires_at <= now()
  AND (a.expires_at, a.session_key, a.id) > (@after::timestamptz, @after_key::text, @after_id::bigint)
ORDER BY a.expires_at, a.session_key, a.id LIMIT @max_rows::int;

-- name: ApprovalExpire :execrows
-- ApprovalExpire ends a wait. No row: it was decided or erased meanwhile.
UPDATE approvals a SET state = 'expired', decided_at = now(), webhook = '', webhook_expires = NULL
WHERE a.session_key = @session_key AND a.id = @id AND a.state = 'waiting' AND a.expires_at <= now();

-- name: ApprovalMessage :one
-- ApprovalMessage reads the message that a turn began with.
SELECT e.* FROM dingtalk_session_events e WHERE e.session_key = @session_key AND e.id = @event;

-- name: ApprovalsExpire :execrows
-- ApprovalsExpire deletes calls that were decided before the period. The newest of a session stays, so that no number is used again.
DELETE FROM approvals a USING (
    SELECT o.session_key, o.id FROM approvals o
    WHERE o.state <> 'waiting' AND o.decided_at < now() - interval '1 second' * @period_seconds::float8
      AND EXISTS (SELECT FROM approvals n WHERE n.session_key = o.session_key AND n.id > o.id)
    ORDER BY o.decided_at LIMIT @max_rows::int
) old
WHERE a.session_key = old.session_key AND a.id = old.id;

-- name: ApprovalsStrip :exec
-- ApprovalsStrip wipes the arguments and the people of calls that stay for their number behind the period.
UPDATE approvals a SET arguments = '', asked_by = '', decided_by = ''
WHERE a.state <> 'waiting' AND a.decided_at < now() - interval '1 second' * @period_seconds::float8
  AND (a.arguments <> '' OR a.asked_by <> '' OR a.decided_by <> '')
  AND NOT EXISTS (SELECT FROM approvals n WHERE n.session_key = a.session_key AND n.id > a.id);
