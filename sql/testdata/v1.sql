-- What a replica of the first release leaves behind when it is killed in the middle of its work.
INSERT INTO replicas (id, started_at, heartbeat_at) VALUES ('old', now() - interval '1 hour', now() - interval '1 minute');
INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, title, total_tokens,
    compaction_count, lease_owner, lease_term, last_seq, compacted_seq)
VALUES ('robot/cid==', 'robot', 'cid==', '2', 'Team', 120, 1, 'old', 7, 3, 2);
INSERT INTO dingtalk_session_events (session_key, seq, role, state, content, sender_id, msg_id, message, tokens, is_archived)
VALUES ('robot/cid==', 1, 'user', 'done', 'question', 's', 'm1', '{"text": "question"}', 4, true),
       ('robot/cid==', 3, 'user', 'done', 'another', 's', 'm2', '{"text": "another"}', 4, false),
       ('robot/cid==', NULL, 'user', 'pending', 'waiting', 's', 'm3', '{"text": "waiting"}', 0, false);
INSERT INTO dingtalk_session_events (session_key, seq, role, content, tool_calls, tokens, is_archived)
VALUES ('robot/cid==', 2, 'assistant', 'answer', '[{"id": "c", "name": "n", "arguments": "{}"}]', 4, true);
INSERT INTO session_summaries (session_key, gen, start_seq, end_seq, start_msg_id, end_msg_id, msg_count, summary, tokens)
VALUES ('robot/cid==', 0, 1, 2, 1, 4, 2, 'They asked and were answered.', 6);
INSERT INTO compaction_log (session_key, start_seq, end_seq, summary_id, outcome) SELECT session_key, start_seq, end_seq, id, 'committed' FROM session_summaries;
INSERT INTO outbox (session_key, target, body, nonce, state, sender) VALUES ('robot/cid==', '{}', 'answer', 'n', 'sending', 'old');
INSERT INTO tool_runs (session_key, event_id, call_id, name, arguments) VALUES ('robot/cid==', 3, 'c', 'n', '{}');
INSERT INTO flush_debts (session_key, from_seq, through_seq, failures, reason) VALUES ('robot/cid==', 0, 2, 1, 'killed');
INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session)
VALUES ('group', 'robot/cid==', 'decision', 'Release on Friday.', '\x00', 'robot/cid==');
