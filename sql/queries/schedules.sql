-- Messages at set times.

-- name: ScheduleNumber :one
-- ScheduleNumber takes the next number of a conversation, and locks the numbers. Schedules of older releases and those that are left
-- of a deleted session count too.
INSERT INTO schedule_numbers AS n (session_key, last)
SELECT @group_key, 1 + coalesce(max(o.id), 0) FROM schedules o
WHERE o.session_key IN (SELECT @session_key::text
    UNION SELECT k.session_key FROM dingtalk_sessions k WHERE k.robot_code = @robot_code AND k.conversation_id = @conversation_id)
ON CONFLICT (session_key) DO UPDATE SET last = greatest(n.last + 1, EXCLUDED.last)
RETURNING n.last;

-- name: ScheduleInsert :one
INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
VALUES (@session_key, @id, @kind, @due_at, @spec, @text, @created_by, @creator, @origin)
RETURNING *;

-- name: ScheduleOfOrigin :one
SELECT s.* FROM schedules s WHERE s.session_key = @session_key AND s.origin = @origin;

-- name: SchedulesOfConversation :many
-- SchedulesOfConversation lists the active schedules of all sessions of a conversation: a change of the scope leaves them where
-- they are.
SELECT s.* FROM schedules s
WHERE s.session_key IN (SELECT @session_key::text
    UNION SELECT k.session_key FROM dingtalk_sessions k WHERE k.robot_code = @robot_code AND k.conversation_id = @conversation_id)
  AND s.state = 'active'
ORDER BY s.due_at, s.session_key, s.id;

-- name: ScheduleFind :one
-- ScheduleFind reads a schedule of a conversation. In older releases sessions of members could have the same number: an active one
-- and that of the session itself come first.
SELECT s.* FROM schedules s
WHERE s.session_key IN (SELECT @session_key::text
    UNION SELECT k.session_key FROM dingtalk_sessions k WHERE k.robot_code = @robot_code AND k.conversation_id = @conversation_id)
  AND s.id = @id
ORDER BY s.state <> 'active', s.session_key <> @session_key::text, s.session_key LIMIT 1;

-- name: SchedulesOfPerson :one
-- SchedulesOfPerson counts the active schedules of a person.
SELECT count(*) FROM schedules s
WHERE s.created_by = @created_by AND s.state = 'active' AND starts_with(s.session_key, @robot_sessions::text);

-- name: SchedulesOutstanding :many
-- SchedulesOutstanding counts the active schedules of a robot that are due before a time, and those of a person among them. Repetitions are
-- counted by their spec, with the next time. Single times, whose spec begins with a year, are counted together, without those that
-- have a webhook until then.
SELECT (CASE WHEN s.spec ~ '^[0-9]' THEN '' ELSE s.spec END)::text AS times, min(s.due_at)::timestamptz AS due_at,
    count(*) AS total, count(*) FILTER (WHERE s.created_by = @created_by) AS own
FROM schedules s
WHERE s.state = 'active' AND s.due_at < @until::timestamptz AND starts_with(s.session_key, @robot_sessions::text)
  AND CASE WHEN s.spec ~ '^[0-9]' AND s.creator ->> 'webhook_expires' ~ '^\d{4}-\d\d-\d\dT'
    THEN (s.creator ->> 'webhook_expires')::timestamptz - interval '1 second' * @margin_seconds::float8 <= s.due_at ELSE true END
GROUP BY 1;

-- name: ScheduleLose :one
-- ScheduleLose counts a message that can't arrive, and ends the schedule after a number of them in a row.
UPDATE schedules s SET
    lost = s.lost + 1,
    state = CASE WHEN s.state = 'active' AND s.lost + 1 >= @most::int THEN 'refused' ELSE s.state END,
    settled_at = CASE WHEN s.state = 'active' AND s.lost + 1 >= @most::int THEN @at::timestamptz ELSE s.settled_at END,
    creator = s.creator - 'webhook' - 'webhook_expires'
WHERE s.session_key = @session_key AND s.id = @id
RETURNING (s.state = 'refused')::boolean AS ended;

-- name: ScheduleArrive :exec
-- ScheduleArrive begins the count of messages that can't arrive again.
UPDATE schedules s SET lost = 0 WHERE s.session_key = @session_key AND s.id = @id AND s.lost > 0;

-- name: ScheduleCancel :one
UPDATE schedules s SET state = 'cancelled', settled_at = now(), creator = s.creator - 'webhook' - 'webhook_expires'
WHERE s.session_key = @session_key AND s.id = @id AND s.state = 'active'
RETURNING *;

-- name: ScheduleRefuse :execrows
-- ScheduleRefuse ends a schedule whose message is refused. No row: it was moved, changed or ended meanwhile.
UPDATE schedules s SET state = 'refused', settled_at = now(), creator = s.creator - 'webhook' - 'webhook_expires'
WHERE s.session_key = @session_key AND s.id = @id AND s.state = 'active' AND s.due_at = @due_at;

-- name: ScheduleMove :one
-- ScheduleMove changes the times of an active schedule.
UPDATE schedules s SET spec = @spec, due_at = @due_at
WHERE s.session_key = @session_key AND s.id = @id AND s.state = 'active'
RETURNING *;

-- name: SchedulesDue :many
-- SchedulesDue lists the active schedules whose time has come and that follow a place, the oldest first.
SELECT s.* FROM schedules s
WHERE s.state = 'active' AND s.due_at <= now() AND s.due_at >= @after_at::timestamptz
  AND (s.due_at, s.session_key, s.id) > (@after_at::timestamptz, @after_key::text, @after_id::bigint)
ORDER BY s.due_at, s.session_key, s.id LIMIT @max_rows::int;

-- name: ScheduleAdvance :execrows
-- ScheduleAdvance moves a schedule from one time to the next, or ends it without one. No row: it was moved, changed or ended
-- meanwhile. The message that it made has its webhook.
UPDATE schedules s SET creator = s.creator - 'webhook' - 'webhook_expires', due_at = coalesce(sqlc.narg(next_at)::timestamptz, s.due_at),
    state = CASE WHEN sqlc.narg(next_at)::timestamptz IS NULL THEN 'done' ELSE 'active' END,
    settled_at = CASE WHEN sqlc.narg(next_at)::timestamptz IS NULL THEN @at::timestamptz END
WHERE s.session_key = @session_key AND s.id = @id AND s.state = 'active' AND s.due_at = @due_at;

-- name: SchedulesExpire :execrows
-- SchedulesExpire deletes schedules that ended before the period. Active ones always stay.
DELETE FROM schedules s USING (
    SELECT o.session_key, o.id FROM schedules o
    WHERE o.state <> 'active' AND o.settled_at < now() - interval '1 second' * @period_seconds::float8
    ORDER BY o.settled_at LIMIT @max_rows::int
) old
WHERE s.session_key = old.session_key AND s.id = old.id;
