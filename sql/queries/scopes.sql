-- name: MessagePlace :one
-- MessagePlace reads what decides the session of a group's message, in one round trip.
--
-- earlier: the first key under which the message was stored, or was deleted with a session of the conversation.
-- waiting: the session with the sender's newest message without an answer.
SELECT
    coalesce((SELECT g.scope FROM group_scopes g WHERE g.group_key = @group_key), '')::text AS chosen,
    coalesce((SELECT k.session_key FROM unnest(@session_keys::text[]) WITH ORDINALITY AS k (session_key, place)
        WHERE EXISTS (SELECT FROM dingtalk_session_events e WHERE e.session_key = k.session_key AND e.msg_id = @msg_id::text)
           OR EXISTS (SELECT FROM deleted_messages d
            WHERE d.message IN (sha256(convert_to(split_part(k.session_key, '/', 1) || '/' || split_part(k.session_key, '/', 2) || ' ' || @msg_id::text, 'UTF8')),
                sha256(convert_to(k.session_key || ' ' || @msg_id::text, 'UTF8'))))
        ORDER BY k.place LIMIT 1), '')::text AS earlier,
    coalesce((SELECT e.session_key FROM dingtalk_session_events e
        WHERE e.session_key = ANY(@session_keys::text[]) AND e.state = 'pending' AND e.sender_id = ANY(@senders::text[])
        ORDER BY e.id DESC LIMIT 1), '')::text AS waiting;

-- name: ScopeChoose :exec
INSERT INTO group_scopes (group_key, scope) VALUES (@group_key, @scope::text)
ON CONFLICT (group_key) DO UPDATE SET scope = EXCLUDED.scope, updated_at = now();

-- name: ScopeRemove :exec
DELETE FROM group_scopes g WHERE g.group_key = @group_key;
