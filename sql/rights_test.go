package sql_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
)

// The person who is forgotten in these tests, and their secret. No other person says any of it.
const (
	zhangID   = sessions.UserID("staff4711")
	zhangNick = "张伟伟"
	liID      = sessions.UserID("staff0815")
)

// ofPerson is a fact about a person, said in private.
func ofPerson(who sessions.UserID, content string) memory.Draft {
	return memory.Draft{Scope: memory.ScopeUser, ScopeID: string(who), Kind: memory.KindProfile, Content: content, SubjectID: who}
}

// speak is a message of a member in the chat's conversation, accepted and not yet answered.
func (c *chat) speak(id string, who sessions.UserID, nick, text string, quote *sessions.Quote) sessions.Accepted {
	c.t.Helper()
	kind := sessions.Group
	if c.reader.Private {
		kind = sessions.Private
	}
	if quote != nil {
		text = sessions.QuoteLead(quote.Nick, quote.Text) + text
	}
	a := must[sessions.Accepted](c.t)(c.store.Accept(c.t.Context(), "a", c.reader.Key, sessions.Message{
		RobotCode: robot, ConversationID: c.reader.Conversation, ConversationType: kind, ID: sessions.MessageID(id),
		SenderID: who, StaffID: who, SenderNick: nick, Text: text, Quote: quote, Kind: "text", SentAt: time.Unix(1, 0),
		Webhook: "https://oapi.dingtalk.com/robot/sendBySession?session=" + string(who),
	}))
	c.lease = a.Lease
	return a
}

// turn answers messages, with a reply that mentions who asked.
func (c *chat) turn(who sessions.UserID, nick, answer string, taken ...sessions.Accepted) {
	c.t.Helper()
	t := sessions.Turn{
		Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: answer, Tokens: 3}},
		Reply: &sessions.Reply{Text: answer, Nonce: "n", Target: sessions.Target{
			RobotCode: robot, ConversationID: c.reader.Conversation, Webhook: "https://oapi.dingtalk.com/" + string(who),
			StaffID: who, Mentions: []sessions.Mention{{StaffID: who, Nick: nick}},
		}},
	}
	for _, a := range taken {
		t.Taken, t.TakenTokens = append(t.Taken, a.EventID), append(t.TakenTokens, 5)
	}
	done := must[sessions.Committed](c.t)(c.store.Commit(c.t.Context(), c.lease, t))
	for _, r := range done.Replies {
		if err := c.store.Settle(c.t.Context(), sessions.Settled{Key: c.reader.Key, ID: r.ID, Sent: true}); err != nil {
			c.t.Fatal(err)
		}
	}
}

// plantPerson has a person say a secret in a group, and it gets wherever it may. Another person talks there, too.
func plantPerson(t *testing.T, s *sql.Store, pool *pgxpool.Pool, c *chat) {
	t.Helper()
	first := c.speak("z1", zhangID, zhangNick, "我的手机号是 "+secret, nil) // 3
	other := c.speak("l1", liID, "李娜", "周五发布 v2.1", nil)              // 4, answered together
	c.turn(zhangID, zhangNick, "记下了 "+secret, first, other)           // 5
	saved := memory.Draft{
		Scope: memory.ScopeGroup, ScopeID: memory.GroupID(robot, c.reader.Conversation), Kind: memory.KindFact,
		Content: "张伟伟的手机号是 " + secret, SubjectID: zhangID, SaidBy: zhangID, SourceGroup: memory.GroupID(robot, c.reader.Conversation), StartSeq: 3, EndSeq: 3,
	}
	older := saved
	older.Content = "旧手机号 " + secret + "-old"
	promoted := saved
	promoted.Content = "李娜的生日是五月" // said by another, promoted by the person
	promoted.SubjectID, promoted.SaidBy, promoted.StartSeq, promoted.EndSeq = liID, liID, 4, 4
	c.save(older)
	must[memory.Receipt](t)(s.Flush(t.Context(), c.lease, memory.Flush{Through: 5, Last: true, Drafts: []memory.Draft{saved, promoted}}))
	execute(t, pool, "UPDATE memories SET superseded_by = (SELECT id FROM memories WHERE content LIKE '张伟伟的%'), superseded_at = now() WHERE content LIKE '旧手机号%'")
	kept := must[memory.Memory](t)(s.Promote(t.Context(), idOf(t, pool, "李娜的生日%"), zhangID))
	if kept.Scope != memory.ScopeTeam || kept.PromotedBy != zhangID || kept.SaidBy != liID || kept.StartSeq != 4 {
		t.Errorf("promoted is %+v, want the provenance kept", kept)
	}
	quoting := c.speak("l2", liID, "李娜", "收到", &sessions.Quote{ID: "z1", SenderID: zhangID, Nick: zhangNick, Text: "我的手机号是 " + secret}) // 6
	asking := c.speak("l3", liID, "李娜", "伟伟的号码是多少？", nil)                                                                               // 7
	c.turn(liID, "李娜", "他的号码是 "+secret, quoting, asking)                                                                                // 8
	again := c.speak("l4", liID, "李娜", "查一下", nil)                                                                                      // 9
	must[sessions.Committed](t)(s.Commit(t.Context(), c.lease, sessions.Turn{
		Taken: []int64{again.EventID}, TakenTokens: []int{5},
		Events: []sessions.Event{ // 10 to 12
			{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "c", Name: "query_history", Arguments: `{"query":"` + secret + `"}`}}},
			{Role: sessions.RoleTool, ToolCallID: "c", ToolName: "query_history", Content: "#3 " + sessions.Speaker(zhangNick, zhangID) + ": 我说过", Tokens: 9},
			{Role: sessions.RoleAssistant, Content: "查到了", Tokens: 2},
		},
	}))
	first2 := summaryOf(0, 5, "noted: "+secret)
	first2.Log = sessions.LogEntry{Audit: `{"missing":["` + secret + `"]}`, Error: secret}
	first2.Pinned = &sessions.Pinned{Text: "- 张伟伟的手机号是 " + secret + "\n"}
	must[sessions.Compacted](t)(s.Compact(t.Context(), c.lease, first2))
	must[sessions.Compacted](t)(s.Compact(t.Context(), c.lease, sessions.Compaction{From: 5, Through: 5, Pinned: first2.Pinned}))
	job := sessions.Job{From: 5, Through: 8}
	must[sessions.Source](t)(s.OpenJob(t.Context(), c.lease, job))
	if err := s.StageJob(t.Context(), c.lease, job, []byte(secret), sessions.Spending{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Owe(t.Context(), c.lease, memory.Debt{Through: 12, Failures: 1, Reason: "busy at " + secret}); err != nil {
		t.Fatal(err)
	}
	execute(t, pool, `INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, source_group, start_seq, end_seq)
		VALUES ('group', $1, 'digest', '那天张伟伟说了 `+secret+`', 'x', $1, $1, 1, 5)`, string(c.reader.Key))
	execute(t, pool, `INSERT INTO memory_digests (session_key, day, memory_id, done) SELECT source_session, '2026-11-20', id, true FROM memories WHERE kind = 'digest'`)
	execute(t, pool, `INSERT INTO embeddings (scope_key, content_hash, model, small, vec) SELECT scope || '|' || scope_id, sha256(convert_to(content, 'UTF8')), 'm', 'x', '{1,0}' FROM memories`)
	execute(t, pool, `INSERT INTO embeddings (scope_key, content_hash, model, small, vec, seq) SELECT session_key, sha256(convert_to(content, 'UTF8')), 'm', 'x', '{1,0}', seq
		FROM dingtalk_session_events WHERE seq IN (3, 4, 5)`)
	waiting := c.speak("z2", zhangID, zhangNick, "还有，我的邮箱也是 "+secret, nil)
	must[sessions.View](t)(s.Begin(t.Context(), c.lease, 5))
	if err := s.RecordRun(t.Context(), c.lease, sessions.ToolRun{EventID: waiting.EventID, Finished: true, Result: secret, Call: sessions.ToolCall{ID: "r", Name: "n", Arguments: secret}}); err != nil {
		t.Fatal(err)
	}
}

func idOf(t *testing.T, pool *pgxpool.Pool, like string) int64 {
	t.Helper()
	ids := collect(t, pool, "SELECT id FROM memories WHERE superseded_by IS NULL AND content LIKE '"+like+"'", pgx.RowTo[int64])
	if len(ids) != 1 {
		t.Fatalf("%d memories are like %s", len(ids), like)
	}
	return ids[0]
}

// No byte of what a person said, of their id and of their name is left in any table; what others said is.
func TestForgottenPersonIsNowhere(t *testing.T) {
	t.Parallel()
	for _, self := range []bool{true, false} {
		t.Run(fmt.Sprintf("self %v", self), func(t *testing.T) {
			t.Parallel()
			s, pool := open(t, sqltest.URL(t))
			c := newChat(t, s, "cid", "u", false)
			c.reader.Key = sessions.NewKey(robot, "cid", "")
			plantPerson(t, s, pool, c)
			elsewhere := newChat(t, s, "cid2", liID, false)
			elsewhere.exchange(zhangID, "早上好", "早")
			elsewhere.turn(liID, "李娜", "张伟伟的手机号是 "+secret, elsewhere.speak("e1", liID, "李娜", "谁的电话？", nil))
			private := newChat(t, s, "dm", zhangID, true)
			execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1' WHERE conversation_id = 'dm'")
			private.turn(zhangID, zhangNick, "好", private.speak("p1", zhangID, zhangNick, "悄悄说 "+secret, nil))
			private.save(ofPerson(zhangID, "工资是 "+secret))
			before := dump(t, pool)
			for _, word := range []string{secret, string(zhangID), zhangNick} {
				if len(lines(before, word)) == 0 {
					t.Errorf("%s is nowhere before", word)
				}
			}
			for _, table := range []string{
				"dingtalk_sessions", "dingtalk_session_events", "session_summaries", "compaction_log", "outbox", "memories", "flush_debts", "tool_runs",
			} {
				if !strings.Contains(lines(before, secret), table+" ") {
					t.Errorf("the secret did not get into %s", table)
				}
			}

			f := memory.Forget{Robot: robot, Person: zhangID}
			var asked sessions.Accepted
			if self {
				asked = c.speak("z3", zhangID, zhangNick, "/forget me yes", nil)
				f.Self, f.From = true, memory.Asking{Lease: asked.Lease, Event: asked.EventID}
			}
			old := c.lease
			done, err := s.ForgetPerson(t.Context(), f)
			if err != nil || done.Memories < 4 || done.Summaries == 0 || done.Embeddings < 3 || done.Sessions != 3 {
				t.Errorf("forgetting gave %+v (%v)", done, err)
			}
			if self {
				if _, err := s.Commit(t.Context(), old, sessions.Turn{}); !errors.Is(err, sessions.ErrLeaseLost) {
					t.Errorf("what read them before ended with %v, want the lease lost", err)
				}
				c.lease = done.Lease
				must[sessions.Committed](t)(s.Commit(t.Context(), c.lease, sessions.Turn{
					Taken: []int64{asked.EventID}, TakenTokens: []int{2}, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "done"}},
				}))
			}
			after := dump(t, pool)
			for _, word := range []string{secret, "13800138000", string(zhangID), zhangNick} {
				if left := lines(after, word); left != "" {
					t.Errorf("left of %s are\n%s", word, left)
				}
			}
			for _, word := range []string{"周五发布", "李娜的生日", "收到", "谁的电话"} {
				if lines(after, word) == "" {
					t.Errorf("%s, said by another, is gone", word)
				}
			}
			if again, err := s.ForgetPerson(t.Context(), memory.Forget{Robot: robot, Person: zhangID}); err != nil || again.Events+again.Memories != 0 {
				t.Errorf("forgetting again gave %+v (%v)", again, err)
			}
			stateAfterForgetting(t, s, pool, c)
		})
	}
}

// stateAfterForgetting looks at what a group goes on with.
func stateAfterForgetting(t *testing.T, s *sql.Store, pool *pgxpool.Pool, c *chat) {
	t.Helper()
	c.lease = must[sessions.Lease](t)(s.Acquire(t.Context(), c.reader.Key, "a"))
	v := must[sessions.View](t)(s.Begin(t.Context(), c.lease, 5))
	if v.Session.CompactedSeq != 5 || len(v.Summaries) != 1 || v.Summaries[0].Text != sessions.ErasedText || len(v.Pending) != 0 {
		t.Errorf("the view has summaries %+v up to %d and %d pending, want an empty one to be written again", v.Summaries, v.Session.CompactedSeq, len(v.Pending))
	}
	for query, want := range map[string]string{
		"SELECT content FROM dingtalk_session_events WHERE msg_id = 'l2'":                                                 sessions.QuoteLead("", sessions.ErasedText) + "收到",
		"SELECT concat(done, memory_id) FROM memory_digests":                                                              "f",
		"SELECT state FROM dingtalk_session_events WHERE msg_id = 'z2'":                                                   "dead",
		"SELECT count(*)::text FROM dingtalk_sessions WHERE conversation_id = 'dm'":                                       "0",
		"SELECT string_agg(seq::text, ',' ORDER BY seq) FROM embeddings WHERE scope_key = '" + string(c.reader.Key) + "'": "4",
	} {
		if got := collect(t, pool, query, pgx.RowTo[string]); len(got) != 1 || got[0] != want {
			t.Errorf("%s\ngave %q, want %q", query, got, want)
		}
	}
}

// Asked for in the private chat itself, that is deleted too, but for the message that asks, which can be answered.
func TestForgottenInPrivate(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", zhangID, false)
	c.turn(zhangID, zhangNick, "好", c.speak("g1", zhangID, zhangNick, "群里说 "+secret, nil))
	dm := newChat(t, s, "dm", zhangID, true)
	execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1', title = $1 WHERE conversation_id = 'dm'", zhangNick)
	dm.turn(zhangID, zhangNick, "好", dm.speak("p1", zhangID, zhangNick, "悄悄说 "+secret, nil))
	dm.save(ofPerson(zhangID, "工资是 "+secret))
	asked := dm.speak("p2", zhangID, zhangNick, "/忘记我 确认", nil)
	later := dm.speak("p3", zhangID, zhangNick, "新的话题", nil)
	done, err := s.ForgetPerson(t.Context(), memory.Forget{
		Robot: robot, Person: zhangID, Self: true, From: memory.Asking{Lease: asked.Lease, Event: asked.EventID},
	})
	if err != nil || done.Memories != 1 || done.Sessions != 2 {
		t.Errorf("forgetting gave %+v (%v)", done, err)
	}
	v := must[sessions.View](t)(s.Begin(t.Context(), done.Lease, 5))
	if len(v.Pending) != 2 || v.Pending[0].Content != memory.ForgetDone("en") || v.Pending[0].SenderID != "" || v.Pending[1].ID != later.EventID {
		t.Errorf("waiting are %+v, want what asked and what came after it", v.Pending)
	}
	must[sessions.Committed](t)(s.Commit(t.Context(), done.Lease, sessions.Turn{
		Taken: []int64{asked.EventID}, TakenTokens: []int{2}, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "done"}},
	}))
	execute(t, pool, "DELETE FROM dingtalk_session_events WHERE id = $1", later.EventID) // later messages are another matter
	all := dump(t, pool)
	for _, word := range []string{secret, string(zhangID), zhangNick} {
		if left := lines(all, word); left != "" {
			t.Errorf("left of %s are\n%s", word, left)
		}
	}
}

// A group reads its own facts, the team's and nothing from private chats; a person reads all of their own.
func TestFactsAreReadWithinTheirRights(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	g1, g2 := newChat(t, s, "cid1", zhangID, false), newChat(t, s, "cid2", zhangID, false)
	dm := newChat(t, s, "dm", zhangID, true)
	in := func(c *chat, d memory.Draft) memory.Draft {
		d.SourceGroup, d.SaidBy = memory.GroupID(robot, c.reader.Conversation), zhangID
		return d
	}
	g1.save(in(g1, group(g1, "张伟伟负责网关")), group(g1, "发布在周五"), in(g1, ofPerson(zhangID, "爱喝龙井")))
	g2.save(in(g2, group(g2, "二组的预算是九万")))
	dm.save(ofPerson(zhangID, "想换部门"))
	for name, test := range map[string]struct {
		asker memory.Asker
		want  string
	}{
		"in a group":       {memory.Asker{Reader: g1.reader, Person: zhangID}, "爱喝龙井(own) 发布在周五 张伟伟负责网关(own)"},
		"another in it":    {memory.Asker{Reader: g1.reader, Person: liID}, "发布在周五 张伟伟负责网关"},
		"in another group": {memory.Asker{Reader: g2.reader, Person: zhangID}, "二组的预算是九万(own)"},
		"in private":       {memory.Asker{Reader: dm.reader, Person: zhangID}, "想换部门(own) 二组的预算是九万(own) 爱喝龙井(own) 张伟伟负责网关(own)"},
	} {
		list, total, err := s.Known(t.Context(), test.asker, 0, 10)
		var got []string
		for _, k := range list {
			if k.Own {
				k.Content += "(own)"
			}
			got = append(got, k.Content)
		}
		if err != nil || total != len(got) || strings.Join(got, " ") != test.want {
			t.Errorf("%s %q of %d are known (%v), want %q", name, got, total, err, test.want)
		}
	}
	hidden := idOf(t, pool, "想换部门")
	if _, err := s.KnownByID(t.Context(), memory.Asker{Reader: g1.reader, Person: zhangID}, hidden); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("a private statement is found in a group: %v", err)
	}
	if _, err := s.Promote(t.Context(), hidden, liID); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("a private statement was promoted: %v", err)
	}
}

// A memory is forgotten with its former values, its messages and their answers; other facts of the message stay.
func TestForgetMemory(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u", false)
	c.turn(zhangID, zhangNick, "好", c.speak("z1", zhangID, zhangNick, "暗号是 "+secret+"，会议在二楼", nil)) // 3 and 4
	c.turn(liID, "李娜", "好", c.speak("l1", liID, "李娜", "我负责网关", nil))                                // 5 and 6
	at := func(content string, by sessions.UserID, seq int64) memory.Draft {
		d := group(c, content)
		d.SaidBy, d.StartSeq, d.EndSeq = by, seq, seq
		return d
	}
	must[memory.Receipt](t)(s.Flush(t.Context(), c.lease, memory.Flush{Through: 6, Last: true, Drafts: []memory.Draft{
		at("旧暗号是 "+secret, zhangID, 3), at("新暗号是 "+secret+"2", zhangID, 3), at("会议在二楼", zhangID, 3), at("李娜负责网关", liID, 5),
	}}))
	execute(t, pool, "UPDATE memories SET superseded_by = (SELECT id FROM memories WHERE content LIKE '新%'), superseded_at = now() WHERE content LIKE '旧%'")
	must[sessions.Compacted](t)(s.Compact(t.Context(), c.lease, summaryOf(0, 4, "noted "+secret)))
	asked := c.speak("z2", zhangID, zhangNick, "/记忆 忘记 2", nil)

	done, err := s.ForgetMemory(t.Context(), idOf(t, pool, "新%"), memory.Asking{Lease: asked.Lease, Event: asked.EventID})
	if err != nil || done.Memories != 2 || done.Events != 2 || done.Summaries != 1 {
		t.Errorf("forgetting gave %+v (%v), want two memories, a message and its answer, and a summary", done, err)
	}
	if left := lines(dump(t, pool), secret); left != "" {
		t.Errorf("left are\n%s", left)
	}
	if got := collect(t, pool, "SELECT content FROM memories ORDER BY id", pgx.RowTo[string]); strings.Join(got, " ") != "会议在二楼 李娜负责网关" {
		t.Errorf("memory has %q", got)
	}
	if _, err := s.Commit(t.Context(), asked.Lease, sessions.Turn{}); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Errorf("what was under way by the old lease ended with %v", err)
	}
	if _, err := s.Commit(t.Context(), done.Lease, sessions.Turn{Taken: []int64{asked.EventID}, TakenTokens: []int{2}}); err != nil {
		t.Errorf("the turn that asked can't answer: %v", err)
	}
	if _, err := s.ForgetMemory(t.Context(), 4711, memory.Asking{}); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("forgetting a missing fact gave %v", err)
	}
}
