-- name: RobotSee :exec
-- RobotSee records the start of a process with a robot.
INSERT INTO robots AS r (robot_code, name) VALUES (@robot_code, @name)
ON CONFLICT (robot_code) DO UPDATE SET name = EXCLUDED.name, started_at = EXCLUDED.started_at;

-- name: RobotsKnown :many
-- RobotsKnown lists all robots that the installation has or had.
SELECT r.robot_code, r.name, r.started_at FROM robots r ORDER BY r.robot_code;

-- name: RobotLeft :one
-- RobotLeft counts the data and the open work of a robot's sessions. code is the first part of their keys.
SELECT (SELECT count(*) FROM dingtalk_sessions s WHERE split_part(s.session_key, '/', 1) = @code::text)::bigint AS sessions,
    (SELECT count(*) FROM dingtalk_session_events e WHERE e.state = 'pending' AND split_part(e.session_key, '/', 1) = @code)::bigint AS messages,
    (SELECT count(*) FROM outbox o WHERE o.state IN ('sending', 'waiting') AND split_part(o.session_key, '/', 1) = @code)::bigint AS replies,
    (SELECT count(*) FROM cards c WHERE c.state = 'open' AND split_part(c.session_key, '/', 1) = @code)::bigint AS cards,
    (SELECT count(*) FROM schedules d WHERE d.state = 'active' AND split_part(d.session_key, '/', 1) = @code)::bigint AS schedules,
    (SELECT count(*) FROM approvals a WHERE a.state = 'waiting' AND split_part(a.session_key, '/', 1) = @code)::bigint AS approvals;

-- name: RobotResume :exec
-- RobotResume ends the pauses of a robot's replies, as RepliesResume does: they may have waited for its return. code is the first part of
-- the keys.
UPDATE outbox o SET next_at = now()
WHERE o.state = 'waiting' AND o.next_at > now() AND o.refusals = 0 AND split_part(o.session_key, '/', 1) = @code::text;
