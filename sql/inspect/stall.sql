LOCK TABLE dingtalk_sessions, dingtalk_session_events, outbox IN ACCESS EXCLUSIVE MODE
