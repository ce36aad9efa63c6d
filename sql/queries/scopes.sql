-- name: ScopeOf :batchone
-- ScopeOf and a MessagePlace for each session that may have a group's message are one pipeline. No row: none was chosen.
SELECT g.scope FROM group_scopes g WHERE g.group_key = @group_key;

-- name: MessagePlace :batchone
-- MessagePlace reports whether a session had a message, which may be deleted since, and the newest message of its sender without an
-- answer there, or 0.
SELECT (SELECT count(*) FROM dingtalk_session_events e WHERE e.session_key = @session_key AND e.msg_id = @msg_id::text)
  + (SELECT count(*) FROM deleted_messages d WHERE d.message IN (@mark::bytea, @session_mark::bytea)) > 0 AS is_known,
    coalesce((SELECT max(e.id) FROM dingtalk_session_events e
        WHERE e.session_key = @session_key AND e.state = 'pending' AND e.sender_id = ANY(@senders::text[])), 0)::bigint AS waiting;

-- name: ScopeChoose :exec
INSERT INTO group_scopes (group_key, scope, updated_at) VALUES (@group_key, @scope::text, now())
ON CONFLICT (group_key) DO UPDATE SET scope = EXCLUDED.scope, updated_at = EXCLUDED.updated_at;

-- name: ScopeRemove :exec
DELETE FROM group_scopes g WHERE g.group_key = @group_key;
