package erasure_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// plantPerson has a person say a secret in a group, and it gets wherever it may. Another person talks there, too.
func plantPerson(t *testing.T, s *sql.Store, pool *pgxpool.Pool, c *storetest.Chat) {
	t.Helper()
	first := c.Speak("z1", storetest.ZhangID, storetest.ZhangNick, "我的手机号是 "+storetest.Secret, nil) // 3
	other := c.Speak("l1", storetest.LiID, "李娜", "周五发布 v2.1", nil)                                  // 4, answered together
	c.Turn(storetest.ZhangID, storetest.ZhangNick, "记下了 "+storetest.Secret, first, other)           // 5
	saved := memory.Draft{
		Scope: memory.ScopeGroup, ScopeID: memory.GroupID(storetest.Robot, c.Reader.Conversation), Kind: memory.KindFact,
		Content: "张伟伟的手机号是 " + storetest.Secret, SubjectID: storetest.ZhangID, SaidBy: storetest.ZhangID, SourceGroup: memory.GroupID(storetest.Robot, c.Reader.Conversation), StartSeq: 3, EndSeq: 3,
	}
	older := saved
	older.Content = "旧手机号 " + storetest.Secret + "-old"
	promoted := saved
	promoted.Content = "李娜的生日是五月" // said by another, promoted by the person
	promoted.SubjectID, promoted.SaidBy, promoted.StartSeq, promoted.EndSeq = storetest.LiID, storetest.LiID, 4, 4
	c.Save(older)
	storetest.Must[memory.Receipt](t)(s.Flushes.Flush(t.Context(), c.Lease, memory.Flush{Through: 5, Last: true, Drafts: []memory.Draft{saved, promoted}}))
	storetest.Execute(t, pool, "UPDATE memories SET superseded_by = (SELECT id FROM memories WHERE content LIKE '张伟伟的%'), superseded_at = now() WHERE content LIKE '旧手机号%'")
	kept := storetest.Must[memory.Memory](t)(s.Rights.Promote(t.Context(), storetest.MemoryLike(t, pool, "李娜的生日%"), storetest.ZhangID))
	if kept.Scope != memory.ScopeTeam || kept.PromotedBy != storetest.ZhangID || kept.SaidBy != storetest.LiID || kept.StartSeq != 4 {
		t.Errorf("promoted is %+v, want the provenance kept", kept)
	}
	quoting := c.Speak("l2", storetest.LiID, "李娜", "收到", &sessions.Quote{ID: "z1", SenderID: storetest.ZhangID, Nick: storetest.ZhangNick, Text: "我的手机号是 " + storetest.Secret}) // 6
	asking := c.Speak("l3", storetest.LiID, "李娜", "伟伟的号码是多少？", nil)                                                                                                             // 7
	c.Turn(storetest.LiID, "李娜", "他的号码是 "+storetest.Secret, quoting, asking)                                                                                                    // 8
	again := c.Speak("l4", storetest.LiID, "李娜", "查一下", nil)                                                                                                                    // 9
	storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{
		Taken: []int64{again.EventID}, TakenTokens: []int{5},
		Events: []sessions.Event{ // 10 to 12
			{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "c", Name: "query_history", Arguments: `{"query":"` + storetest.Secret + `"}`}}},
			{Role: sessions.RoleTool, ToolCallID: "c", ToolName: "query_history", Content: "#3 " + sessions.Speaker(storetest.ZhangNick, storetest.ZhangID) + ": 我说过", Tokens: 9},
			{Role: sessions.RoleAssistant, Content: "查到了", Tokens: 2},
		},
	}))
	first2 := storetest.SummaryOf(0, 5, "noted: "+storetest.Secret)
	first2.Log = sessions.LogEntry{Audit: `{"missing":["` + storetest.Secret + `"]}`, Error: storetest.Secret}
	first2.Pinned = &sessions.Pinned{Text: "- 张伟伟的手机号是 " + storetest.Secret + "\n"}
	storetest.Must[sessions.Compacted](t)(s.Compactions.Compact(t.Context(), c.Lease, first2))
	storetest.Must[sessions.Compacted](t)(s.Compactions.Compact(t.Context(), c.Lease, sessions.Compaction{From: 5, Through: 5, Pinned: first2.Pinned}))
	job := sessions.Job{From: 5, Through: 8}
	storetest.Must[sessions.Source](t)(s.Jobs.OpenJob(t.Context(), c.Lease, job))
	if err := s.Jobs.StageJob(t.Context(), c.Lease, job, []byte(storetest.Secret), sessions.Spending{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Flushes.Owe(t.Context(), c.Lease, memory.Debt{Through: 12, Failures: 1, Reason: "busy at " + storetest.Secret}); err != nil {
		t.Fatal(err)
	}
	storetest.Execute(t, pool, `INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, source_group, start_seq, end_seq)
		VALUES ('group', $1, 'digest', '那天张伟伟说了 `+storetest.Secret+`', 'x', $1, $1, 1, 5)`, string(c.Reader.Key))
	storetest.Execute(t, pool, `INSERT INTO memory_digests (session_key, day, memory_id, done) SELECT source_session, '2026-11-20', id, true FROM memories WHERE kind = 'digest'`)
	storetest.Execute(t, pool, `INSERT INTO embeddings (scope_key, content_hash, model, small, vec) SELECT scope || '|' || scope_id, sha256(convert_to(content, 'UTF8')), 'm', 'x', '{1,0}' FROM memories`)
	storetest.Execute(t, pool, `INSERT INTO embeddings (scope_key, content_hash, model, small, vec, seq) SELECT session_key, sha256(convert_to(content, 'UTF8')), 'm', 'x', '{1,0}', seq
		FROM dingtalk_session_events WHERE seq IN (3, 4, 5)`)
	waiting := c.Speak("z2", storetest.ZhangID, storetest.ZhangNick, "还有，我的邮箱也是 "+storetest.Secret, nil)
	storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), c.Lease, 5))
	if err := s.Turns.RecordRun(t.Context(), c.Lease, sessions.ToolRun{EventID: waiting.EventID, Finished: true, Result: storetest.Secret, Call: sessions.ToolCall{ID: "r", Name: "n", Arguments: storetest.Secret}}); err != nil {
		t.Fatal(err)
	}
}

// No byte of what a person said, of their id and of their name is left in any table; what others said is.
func TestForgottenPersonIsNowhere(t *testing.T) {
	t.Parallel()
	for _, self := range []bool{true, false} {
		t.Run(fmt.Sprintf("self %v", self), func(t *testing.T) {
			t.Parallel()
			s, pool := storetest.Open(t, sqltest.URL(t))
			c := storetest.NewChat(t, s, "cid", "u", false)
			c.Reader.Key = sessions.NewKey(storetest.Robot, "cid", "")
			plantPerson(t, s, pool, c)
			elsewhere := storetest.NewChat(t, s, "cid2", storetest.LiID, false)
			elsewhere.Exchange(storetest.ZhangID, "早上好", "早")
			elsewhere.Turn(storetest.LiID, "李娜", "张伟伟的手机号是 "+storetest.Secret, elsewhere.Speak("e1", storetest.LiID, "李娜", "谁的电话？", nil))
			private := storetest.NewChat(t, s, "dm", storetest.ZhangID, true)
			storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1' WHERE conversation_id = 'dm'")
			private.Turn(storetest.ZhangID, storetest.ZhangNick, "好", private.Speak("p1", storetest.ZhangID, storetest.ZhangNick, "悄悄说 "+storetest.Secret, nil))
			private.Save(storetest.OfPerson(storetest.ZhangID, "工资是 "+storetest.Secret))
			before := storetest.Dump(t, pool)
			for _, word := range []string{storetest.Secret, string(storetest.ZhangID), storetest.ZhangNick} {
				if len(storetest.Lines(before, word)) == 0 {
					t.Errorf("%s is nowhere before", word)
				}
			}
			for _, table := range []string{
				"dingtalk_sessions", "dingtalk_session_events", "session_summaries", "compaction_log", "outbox", "memories", "flush_debts", "tool_runs",
			} {
				if !strings.Contains(storetest.Lines(before, storetest.Secret), table+" ") {
					t.Errorf("the secret did not get into %s", table)
				}
			}

			f := memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID}
			var asked sessions.Accepted
			if self {
				asked = c.Speak("z3", storetest.ZhangID, storetest.ZhangNick, "/forget me yes", nil)
				f.Self, f.From = true, memory.Asking{Lease: asked.Lease, Event: asked.EventID}
			}
			old := c.Lease
			done, err := s.Erasure.ForgetPerson(t.Context(), f)
			if err != nil || done.Memories < 4 || done.Summaries == 0 || done.Embeddings < 3 || done.Sessions != 3 {
				t.Errorf("forgetting gave %+v (%v)", done, err)
			}
			if self {
				if _, err := s.Turns.Commit(t.Context(), old, sessions.TurnResult{}); !errors.Is(err, sessions.ErrLeaseLost) {
					t.Errorf("what read them before ended with %v, want the lease lost", err)
				}
				c.Lease = done.Lease
				storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{
					Taken: []int64{asked.EventID}, TakenTokens: []int{2}, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "done"}},
				}))
			}
			after := storetest.Dump(t, pool)
			for _, word := range []string{storetest.Secret, "13800138000", string(storetest.ZhangID), storetest.ZhangNick} {
				if left := storetest.Lines(after, word); left != "" {
					t.Errorf("left of %s are\n%s", word, left)
				}
			}
			for _, word := range []string{"周五发布", "李娜的生日", "收到", "谁的电话"} {
				if storetest.Lines(after, word) == "" {
					t.Errorf("%s, said by another, is gone", word)
				}
			}
			if again, err := s.Erasure.ForgetPerson(t.Context(), memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID}); err != nil || again.Events+again.Memories != 0 {
				t.Errorf("forgetting again gave %+v (%v)", again, err)
			}
			stateAfterForgetting(t, s, pool, c)
		})
	}
}

// stateAfterForgetting looks at what a group goes on with.
func stateAfterForgetting(t *testing.T, s *sql.Store, pool *pgxpool.Pool, c *storetest.Chat) {
	t.Helper()
	c.Lease = storetest.Must[sessions.Lease](t)(s.Leases.Acquire(t.Context(), c.Reader.Key, "a"))
	v := storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), c.Lease, 5))
	if v.Session.CompactedSeq != 5 || len(v.Summaries) != 1 || v.Summaries[0].Text != sessions.ErasedText || len(v.Pending) != 0 {
		t.Errorf("the view has summaries %+v up to %d and %d pending, want an empty one to be written again", v.Summaries, v.Session.CompactedSeq, len(v.Pending))
	}
	for query, want := range map[string]string{
		"SELECT content FROM dingtalk_session_events WHERE msg_id = 'l2'":                                                 sessions.QuoteLead("", sessions.ErasedText) + "收到",
		"SELECT concat(done, memory_id) FROM memory_digests":                                                              "f",
		"SELECT state FROM dingtalk_session_events WHERE msg_id = 'z2'":                                                   "dead",
		"SELECT count(*)::text FROM dingtalk_sessions WHERE conversation_id = 'dm'":                                       "0",
		"SELECT string_agg(seq::text, ',' ORDER BY seq) FROM embeddings WHERE scope_key = '" + string(c.Reader.Key) + "'": "4",
	} {
		if got := storetest.Collect(t, pool, query, pgx.RowTo[string]); len(got) != 1 || got[0] != want {
			t.Errorf("%s\ngave %q, want %q", query, got, want)
		}
	}
}

// Asked for in the private chat itself, that is deleted too, but for the message that asks, which can be answered.
func TestForgottenInPrivate(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.ZhangID, false)
	c.Turn(storetest.ZhangID, storetest.ZhangNick, "好", c.Speak("g1", storetest.ZhangID, storetest.ZhangNick, "群里说 "+storetest.Secret, nil))
	dm := storetest.NewChat(t, s, "dm", storetest.ZhangID, true)
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1', title = $1 WHERE conversation_id = 'dm'", storetest.ZhangNick)
	dm.Turn(storetest.ZhangID, storetest.ZhangNick, "好", dm.Speak("p1", storetest.ZhangID, storetest.ZhangNick, "悄悄说 "+storetest.Secret, nil))
	dm.Save(storetest.OfPerson(storetest.ZhangID, "工资是 "+storetest.Secret))
	asked := dm.Speak("p2", storetest.ZhangID, storetest.ZhangNick, "/忘记我 确认", nil)
	later := dm.Speak("p3", storetest.ZhangID, storetest.ZhangNick, "新的话题", nil)
	done, err := s.Erasure.ForgetPerson(t.Context(), memory.Forget{
		Robot: storetest.Robot, Person: storetest.ZhangID, Self: true, From: memory.Asking{Lease: asked.Lease, Event: asked.EventID},
	})
	if err != nil || done.Memories != 1 || done.Sessions != 2 {
		t.Errorf("forgetting gave %+v (%v)", done, err)
	}
	v := storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), done.Lease, 5))
	if len(v.Pending) != 2 || v.Pending[0].Content != memory.ForgetDone("en") || v.Pending[0].SenderID != "" || v.Pending[1].ID != later.EventID {
		t.Errorf("waiting are %+v, want what asked and what came after it", v.Pending)
	}
	storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), done.Lease, sessions.TurnResult{
		Taken: []int64{asked.EventID}, TakenTokens: []int{2}, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "done"}},
	}))
	storetest.Execute(t, pool, "DELETE FROM dingtalk_session_events WHERE id = $1", later.EventID) // later messages are another matter
	all := storetest.Dump(t, pool)
	for _, word := range []string{storetest.Secret, string(storetest.ZhangID), storetest.ZhangNick} {
		if left := storetest.Lines(all, word); left != "" {
			t.Errorf("left of %s are\n%s", word, left)
		}
	}
}

// A memory is forgotten with its former values, its messages and their answers; other facts of the message stay.
func TestForgetMemory(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	c.Turn(storetest.ZhangID, storetest.ZhangNick, "好", c.Speak("z1", storetest.ZhangID, storetest.ZhangNick, "暗号是 "+storetest.Secret+"，会议在二楼", nil)) // 3 and 4
	c.Turn(storetest.LiID, "李娜", "好", c.Speak("l1", storetest.LiID, "李娜", "我负责网关", nil))                                                              // 5 and 6
	at := func(content string, by sessions.UserID, seq int64) memory.Draft {
		d := storetest.GroupFact(c, content)
		d.SaidBy, d.StartSeq, d.EndSeq = by, seq, seq
		return d
	}
	storetest.Must[memory.Receipt](t)(s.Flushes.Flush(t.Context(), c.Lease, memory.Flush{Through: 6, Last: true, Drafts: []memory.Draft{
		at("旧暗号是 "+storetest.Secret, storetest.ZhangID, 3), at("新暗号是 "+storetest.Secret+"2", storetest.ZhangID, 3), at("会议在二楼", storetest.ZhangID, 3), at("李娜负责网关", storetest.LiID, 5),
	}}))
	storetest.Execute(t, pool, "UPDATE memories SET superseded_by = (SELECT id FROM memories WHERE content LIKE '新%'), superseded_at = now() WHERE content LIKE '旧%'")
	storetest.Must[sessions.Compacted](t)(s.Compactions.Compact(t.Context(), c.Lease, storetest.SummaryOf(0, 4, "noted "+storetest.Secret)))
	asked := c.Speak("z2", storetest.ZhangID, storetest.ZhangNick, "/记忆 忘记 2", nil)

	done, err := s.Erasure.ForgetMemory(t.Context(), storetest.MemoryLike(t, pool, "新%"), memory.Asking{Lease: asked.Lease, Event: asked.EventID})
	if err != nil || done.Memories != 2 || done.Events != 2 || done.Summaries != 1 {
		t.Errorf("forgetting gave %+v (%v), want two memories, a message and its answer, and a summary", done, err)
	}
	if left := storetest.Lines(storetest.Dump(t, pool), storetest.Secret); left != "" {
		t.Errorf("left are\n%s", left)
	}
	if got := storetest.Collect(t, pool, "SELECT content FROM memories ORDER BY id", pgx.RowTo[string]); strings.Join(got, " ") != "会议在二楼 李娜负责网关" {
		t.Errorf("memory has %q", got)
	}
	if _, err := s.Turns.Commit(t.Context(), asked.Lease, sessions.TurnResult{}); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Errorf("what was under way by the old lease ended with %v", err)
	}
	if _, err := s.Turns.Commit(t.Context(), done.Lease, sessions.TurnResult{Taken: []int64{asked.EventID}, TakenTokens: []int{2}}); err != nil {
		t.Errorf("the turn that asked can't answer: %v", err)
	}
	if _, err := s.Erasure.ForgetMemory(t.Context(), 4711, memory.Asking{}); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("forgetting a missing fact gave %v", err)
	}
}
