-- name: MessagePlace :one
-- MessagePlace reads what decides the session of a group's message, in one round trip.
--
-- earlier: the first key under which the message was stored, or was deleted with a session of the conversation.
-- waiting: the session with the sender's newest message without an answer.
--
-- The keys and senders are read by subqueries, so that the server expects the same number of them in each plan. Otherwise a
-- short list makes it plan each execution. EXISTS for each key may become one read of the whole log.
SELECT
    coalesce((SELECT g.scope FROM group_scopes g WHERE g.group_key = @group_key), '')::text AS chosen,
    coalesce((SELECT k.session_key FROM (
            SELECT e.session_key FROM dingtalk_session_events e
            WHERE e.session_key = ANY((SELECT @session_keys::text[])::text[]) AND e.msg_id = @msg_id::text
            UNION ALL
            SELECT x.session_key FROM unnest((SELECT @session_keys::text[])::text[]) AS x (session_key) JOIN deleted_messages d
                ON d.message IN (sha256(convert_to(split_part(x.session_key, '/', 1) || '/' || split_part(x.session_key, '/', 2) || ' ' || @msg_id::text, 'UTF8')),
                    sha256(convert_to(x.session_key || ' ' || @msg_id::text, 'UTF8')))
        ) k
        ORDER BY array_position(@session_keys::text[], k.session_key) LIMIT 1), '')::text AS earlier,
    coalesce((SELECT e.session_key FROM dingtalk_session_events e
        WHERE e.session_key = ANY((SELECT @session_keys::text[])::text[]) AND e.state = 'pending'
          AND e.sender_id = ANY((SELECT @senders::text[])::text[])
        ORDER BY e.id DESC LIMIT 1), '')::text AS waiting;

-- name: ScopeChoose :exec
INSERT INTO group_scopes (group_key, scope, updated_at) VALUES (@group_key, @scope::text, now())
ON CONFLICT (group_key) DO UPDATE SET scope = EXCLUDED.scope, updated_at = EXCLUDED.updated_at;

-- name: ScopeRemove :exec
DELETE FROM group_scopes g WHERE g.group_key = @group_key;
