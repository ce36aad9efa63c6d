package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"ebb/cmd/lab/rig"
)

// seed fills the database through a gateway, which compacts for real, and moves times to yesterday. It leaves no
// connection, so that the database can be copied.
func (s *stage) seed(ctx context.Context) (err error) {
	url := s.postgres.URL()
	r, err := s.startReplica(ctx, "seed", url, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = errors.Join(r.close(), execute(ctx, url, yesterday), execute(ctx, url, faults), execute(ctx, url, history))
		} else {
			err = errors.Join(err, r.close())
		}
	}()
	talks, talking := errgroup.WithContext(ctx)
	talks.Go(func() error { return r.talkAboutRelease(talking, url) })
	talks.Go(func() error { return r.talkInEnglish(talking) })
	talks.Go(func() error { return r.talkAtLength(talking) })
	return talks.Wait()
}

func (r *replica) talkAboutRelease(ctx context.Context, url string) error {
	for _, u := range facts {
		if err := r.ask(ctx, release, u.Speaker, u.Text); err != nil {
			return err
		}
	}
	if err := r.ask(ctx, release, rig.Li, "请记住：联调环境换成 pay-stage-2 了，旧的今晚下线。"); err != nil {
		return err
	}
	fill := append(append([]rig.Utterance{}, rig.LongMessages...), rig.ShortMessages...)
	for _, u := range fill {
		if err := r.ask(ctx, release, u.Speaker, u.Text); err != nil {
			return err
		}
		tokens, compactions, err := sizeOf(ctx, url, release)
		switch {
		case err != nil:
			return err
		case tokens < threshold && compactions == 0:
			continue
		}
		if _, err := r.book.WaitLine(ctx, r.name, "Compaction completed"); err != nil {
			return err
		}
		if err := r.ask(ctx, release, rig.Alex, orderAsked); err != nil {
			return err
		}
		return r.ask(ctx, release, rig.Li, "请问支付网关的发布日期定在哪天？")
	}
	return errors.New("the story's messages do not fill the context")
}

func sizeOf(ctx context.Context, url string, g group) (tokens, compactions int, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	err = conn.QueryRow(ctx, "SELECT total_tokens, compaction_count FROM dingtalk_sessions WHERE session_key = $1", g.key()).Scan(&tokens, &compactions)
	return tokens, compactions, err
}

func (r *replica) talkInEnglish(ctx context.Context) error {
	for _, u := range []rig.Utterance{
		{Speaker: rig.Alex, Text: "The checkout freeze starts on 4 June, and Alex owns the rollback."},
		rig.LongMessages[2], rig.ShortMessages[2],
		{Speaker: rig.Alex, Text: "The on-call phone number is 555-0142, and desk 12 has the spare key."},
		rig.ShortMessages[5],
		{Speaker: rig.Alex, Text: "When does the checkout freeze start?"},
		{Speaker: rig.Zhang, Text: "/compact"},
	} {
		if err := r.ask(ctx, english, u.Speaker, u.Text); err != nil {
			return err
		}
	}
	return r.ask(ctx, group{}, rig.Li, "我下个月想换到风控组，先别跟别人说。")
}

func (r *replica) talkAtLength(ctx context.Context) error {
	for _, text := range []string{"先贴一份压测日志。\n" + hugeMessage, "https://git.example.com/pay/gateway/-/merge_requests/2417/diffs?view=parallel&file=internal/settlement/reconcile_supplier_orders_2026_03.go#L1024-L2048 这个合并请求要今天看完"} {
		if err := r.ask(ctx, longest, verbose, text); err != nil {
			return err
		}
	}
	return nil
}

func execute(ctx context.Context, url, statements string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, statements); err != nil {
		return errors.Join(fmt.Errorf("filling the database: %w", err), conn.Close(ctx))
	}
	return conn.Close(ctx)
}

const yesterday = `
DO $do$
DECLARE began timestamptz; ended timestamptz; c record;
BEGIN
	SELECT min(created_at), max(created_at) INTO began, ended FROM dingtalk_session_events;
	FOR c IN SELECT table_name, column_name FROM information_schema.columns
		WHERE table_schema = current_schema() AND data_type = 'timestamp with time zone'
		AND table_name IN ('dingtalk_sessions', 'dingtalk_session_events', 'session_summaries', 'compaction_log', 'memories', 'memory_flushes', 'restarts')
	LOOP
		EXECUTE format('UPDATE %I SET %I = now() - interval ''30 hours'' + (%I - $1) * (32400 / greatest(extract(epoch FROM $2 - $1)::float8, 1)) WHERE %I <= now()',
			c.table_name, c.column_name, c.column_name, c.column_name) USING began, ended;
	END LOOP;
END $do$`

// faults are failed work, which no talk produces within seconds.
const faults = `
INSERT INTO dingtalk_session_events (session_key, role, state, attempts, content, sender_id, sender_nick, msg_id, message)
	SELECT session_key, 'user', 'dead', 3, '把附件里的对账单汇总一下？', 'u-lina', '李娜', 'dead-letter', '{"conversation_type": "2"}' FROM dingtalk_sessions WHERE title = 'Checkout on-call';
INSERT INTO flush_debts (session_key, from_seq, through_seq, failures, reason)
	SELECT session_key, 0, last_seq, 3, 'model error: busy' FROM dingtalk_sessions WHERE conversation_id = 'cidLongest==';
INSERT INTO compaction_log (session_key, trigger, policy, model, tokens_before, start_seq, end_seq, outcome, error, duration_ms, created_at)
	SELECT session_key, 'threshold', 'token_budget', 'main', 15870, 1, 6, 'failed', 'no usable summary: 3 identifiers are missing', 4210, now() - interval '20 minutes'
	FROM dingtalk_sessions WHERE conversation_id = 'cidLongest==';
UPDATE dingtalk_sessions SET compact_failures = 1, compact_error = 'no usable summary: 3 identifiers are missing' WHERE conversation_id = 'cidLongest==';
INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, source_group, start_seq, end_seq, said_by, created_at)
	SELECT 'group', session_key, 'decision', 'The checkout freeze starts on 4 June; Alex owns the rollback.', '\x01', session_key, session_key, 1, 1, 'u-alex', now() - interval '29 hours'
	FROM dingtalk_sessions WHERE conversation_id = 'cidEnglish==';
INSERT INTO schedules (session_key, id, kind, state, due_at, spec, text, created_by, creator, origin, created_at, settled_at)
	SELECT s.session_key, r.id, r.kind, r.state, now() + r.due, r.spec, r.text, r.creator, jsonb_build_object('sender_id', r.creator, 'sender_nick', r.nick), 'seed' || r.id, now() - interval '30 hours' + interval '1 minute' * r.id, CASE WHEN r.state <> 'active' THEN now() + r.due END
	FROM (VALUES ('cidRelease==', 1, 'remind', 'active', interval '50 hours', 'once', '检查发布窗口，通知值班同学', 'u-zhangwei', '张伟'), ('cidRelease==', 2, 'ask', 'active', (date_trunc('week', now() AT TIME ZONE 'Asia/Shanghai' + interval '2 days 7 hours') + interval '4 days 17 hours') AT TIME ZONE 'Asia/Shanghai' - now(), 'CRON_TZ=Asia/Shanghai 0 17 * * 5', '总结本周支付网关的进展', 'u-lina', '李娜'),
		('cidRelease==', 3, 'remind', 'done', interval '-20 hours', 'once', '供应商对账截止', 'u-alex', 'Alex'), ('cidEnglish==', 1, 'remind', 'cancelled', interval '-2 hours', 'once', 'Rotate the on-call phone', 'u-alex', 'Alex')) r (conversation, id, kind, state, due, spec, text, creator, nick)
	JOIN dingtalk_sessions s ON s.conversation_id = r.conversation;
INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
	SELECT session_key, 1, 'remind', now() + interval '30 minutes', 'once', '提交转组申请', 'u-lina', '{"sender_id": "u-lina", "sender_nick": "李娜"}', 'seed' FROM dingtalk_sessions WHERE conversation_type = '1';
INSERT INTO approvals (session_key, id, turn_event_id, tool, arguments, asked_by, state, decided_by, decided_at, expires_at)
	SELECT s.session_key, a.id, 1, a.tool, a.arguments, 'u-zhangwei', a.state, a.decider, a.at, now() + interval '50 minutes'
	FROM (VALUES (1, 'files__write_file', '{"path": "release.md", "content": "5 月 20 日发布"}', 'approved', 'u-lina', now() - interval '3 hours'),
		(2, 'files__delete_file', '{"path": "draft.md"}', 'waiting', '', NULL)) a (id, tool, arguments, state, decider, at)
	JOIN dingtalk_sessions s ON s.conversation_id = 'cidRelease==';
INSERT INTO restarts (replica, started_at, stopped_at, ending, answered, resumed, doubled)
	VALUES ('pay-bot-7d9c5b6f4-x2x9q-QWERTYUIOP', now() - interval '40 hours', now() - interval '31 hours', 'killed', 1893, 1, 0);
INSERT INTO audit (actor, action, session_key, detail, outcome, at)
	SELECT 'cli:root', 'erase', session_key, '3 events', 'done', now() - interval '26 hours' FROM dingtalk_sessions WHERE conversation_id = 'cidLongest=='
	UNION ALL SELECT 'u-zhangwei', 'undo', session_key, 'compaction 1', 'error.nothing_to_undo', now() - interval '3 hours' FROM dingtalk_sessions WHERE conversation_id = 'cidEnglish=='
	UNION ALL SELECT 'admin.token', 'view_private', session_key, '', 'done', now() - interval '2 hours' FROM dingtalk_sessions WHERE conversation_type = '1';`

const history = `
INSERT INTO model_usage (session_key, day, kind, model, person, turns, prompt_tokens, cached_tokens, completion_tokens, cost)
	SELECT m.session_key, m.day - i, m.kind, m.model, m.person, m.turns * (3 + i % 5), m.prompt_tokens * (3 + i % 5), m.cached_tokens * (3 + i % 5), m.completion_tokens * (3 + i % 4), m.cost * (3 + i % 5)
	FROM model_usage m, generate_series(1, 27, 2) i;`
