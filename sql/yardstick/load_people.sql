INSERT INTO people (session_key, person, nick, spoke, seen_at)
SELECT e.session_key, e.sender_id, e.sender_nick, true, max(e.created_at) FROM dingtalk_session_events e
WHERE e.seq IS NOT NULL AND e.sender_id <> '' GROUP BY 1, 2, 3
UNION ALL
SELECT q.session_key, q.message #>> '{quote,sender_id}', coalesce(q.message #>> '{quote,nick}', ''), false, max(q.created_at) FROM dingtalk_session_events q
WHERE q.seq IS NOT NULL AND q.message #>> '{quote,sender_id}' <> '' GROUP BY 1, 2, 3
ON CONFLICT (session_key, person, nick, spoke) DO NOTHING;
