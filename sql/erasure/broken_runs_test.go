package erasure_test

import (
	"testing"

	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// The calls of a broken attempt are stored behind the answer to its first message, as long as another message of the attempt waits. They go
// with the person, or with the message: the turn of the other message would read them. The fact that they ran stays.
func TestErasedPersonTakesCallsOfBrokenAttempts(t *testing.T) {
	t.Parallel()
	for name, erase := range erasuresOfZhang {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := storetest.Open(t, sqltest.URL(t))
			c := storetest.NewChat(t, s, "cid", storetest.ZhangID, false)
			said := c.Speak("m1", storetest.ZhangID, storetest.ZhangNick, "查一下我的订单", nil)
			other := c.Speak("m2", storetest.LiID, "李娜", "几点了", nil)
			run := sessions.ToolRun{
				EventID: said.EventID, Finished: true, Result: "RESULT of the shop", Call: sessions.ToolCall{ID: "c1", Name: "shop__orders", Arguments: storetest.Secret},
			}
			if err := s.Turns.RecordRun(t.Context(), c.Lease, run); err != nil {
				t.Fatal(err)
			}
			storetest.Execute(t, pool, "UPDATE dingtalk_session_events SET attempts = 1 WHERE id = $1", other.EventID)
			storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{
				Taken: []int64{said.EventID}, TakenTokens: []int{1}, Ran: true, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "查好了"}},
			}))
			asked := c.Speak("m9", storetest.ZhangID, storetest.ZhangNick, "/forget last", nil)
			erase(t, s, said, asked)
			storetest.WantGone(t, pool, storetest.Secret, "RESULT")
			if n := storetest.Number(t, pool, "SELECT count(*) FROM tool_runs WHERE call_id = 'c1'"); n != 1 {
				t.Errorf("%d records of the call, want one: it must not be made again", n)
			}
		})
	}
}

// The last message of a broken attempt may be erased before its turn. The calls of the attempt go with the next turn of any message: no
// later one would know of them.
func TestCallsOfBrokenAttemptsGoWithTheNextTurn(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.ZhangID, false)
	said := c.Speak("m1", storetest.ZhangID, storetest.ZhangNick, "查一下我的订单", nil)
	other := c.Speak("m2", storetest.LiID, "李娜", "几点了", nil)
	run := sessions.ToolRun{EventID: said.EventID, Finished: true, Result: "RESULT", Call: sessions.ToolCall{ID: "c1", Name: "shop__orders"}}
	if err := s.Turns.RecordRun(t.Context(), c.Lease, run); err != nil {
		t.Fatal(err)
	}
	storetest.Execute(t, pool, "UPDATE dingtalk_session_events SET attempts = 1 WHERE id = $1", other.EventID)
	commit := func(taken sessions.Accepted, ran bool) {
		t.Helper()
		storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{
			Taken: []int64{taken.EventID}, TakenTokens: []int{1}, Ran: ran, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "好"}},
		}))
	}
	commit(said, true)
	if n := storetest.Number(t, pool, "SELECT count(*) FROM tool_runs"); n != 1 {
		t.Fatalf("%d records while a message of the attempt waits, want one", n)
	}
	if _, err := s.Erasure.EraseEvents(t.Context(), c.Reader.Key, nil, []int64{other.EventID}); err != nil {
		t.Fatal(err)
	}
	next := c.Speak("m3", storetest.ZhangID, storetest.ZhangNick, "谢谢", nil)
	v := storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), c.Lease, 5))
	if len(v.Runs) != 0 || len(v.Pending) != 1 {
		t.Fatalf("the next turn has %d messages and knows of runs %+v, want one and none", len(v.Pending), v.Runs)
	}
	commit(next, v.HasRuns)
	if n := storetest.Number(t, pool, "SELECT count(*) FROM tool_runs"); n != 0 {
		t.Errorf("%d records of calls are left, want none", n)
	}
}
