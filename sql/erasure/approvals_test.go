package erasure_test

import (
	"fmt"
	"testing"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// erasuresOfZhang delete what Zhang said: the person, or the message said by the command asked.
var erasuresOfZhang = map[string]func(t *testing.T, s *sql.Store, said, asked sessions.Accepted){
	"person": func(t *testing.T, s *sql.Store, _, _ sessions.Accepted) { storetest.ForgetZhang(t, s) },
	"message": func(t *testing.T, s *sql.Store, said, asked sessions.Accepted) {
		t.Helper()
		storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetMessage(t.Context(), said.EventID, memory.Asking{Lease: asked.Lease, Event: asked.EventID}))
	},
}

// The turn in which an administrator approves a call has the arguments and the result of the call: it goes with the person who asked, or with
// the message. The administrator's own words stay.
func TestErasedPersonTakesApprovedCalls(t *testing.T) {
	t.Parallel()
	for name, erase := range erasuresOfZhang {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := storetest.Open(t, sqltest.URL(t))
			c := storetest.NewChat(t, s, "cid", storetest.ZhangID, false)
			said := c.Speak("m1", storetest.ZhangID, storetest.ZhangNick, "把它写进系统", nil)
			said = waitFor(t, c, said, 1)
			approved := decide(t, c, "m2", 1, 2)
			decide(t, c, "m3", 2, 0)
			c.Exchange("boss", "午饭吃什么", "面条")
			asked := c.Speak("m9", storetest.ZhangID, storetest.ZhangNick, "/forget last", nil)
			erase(t, s, said, asked)
			storetest.WantGone(t, pool, "RESULT")
			storetest.WantGone(t, pool, storetest.Secret)
			if n := storetest.Number(t, pool, "SELECT count(*) FROM dingtalk_session_events WHERE content IN ('/approve', '面条')"); n != 3 {
				t.Errorf("%d texts of other people are left, want 3", n)
			}
			if approved.EventID == 0 {
				t.Error("nothing was approved")
			}
		})
	}
}

// A decision whose turn has not ended goes too: its record has the arguments and the result. A later attempt finds that the call ran, and
// none of its words.
func TestErasedPersonTakesRunningCalls(t *testing.T) {
	t.Parallel()
	for name, erase := range erasuresOfZhang {
		for _, finished := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " finished ", finished), func(t *testing.T) {
				t.Parallel()
				s, pool := storetest.Open(t, sqltest.URL(t))
				c := storetest.NewChat(t, s, "cid", storetest.ZhangID, false)
				said := waitFor(t, c, c.Speak("m1", storetest.ZhangID, storetest.ZhangNick, "把它写进系统", nil), 1)
				storetest.Execute(t, pool, "UPDATE approvals SET arguments = $1", `{"text":"`+storetest.Secret+`"}`)
				a := c.Speak("m2", "boss", "老板", "/approve", nil)
				decision := sessions.Decision{IDs: []int64{1}, State: sessions.ApprovalApproved, By: "boss", Event: a.EventID}
				done := storetest.Must[[]sessions.Approval](t)(s.Approvals.DecideApprovals(t.Context(), c.Lease, decision))
				run := sessions.ToolRun{EventID: a.EventID, Call: sessions.ToolCall{ID: done[0].CallID(), Name: "x__y", Arguments: done[0].Arguments}}
				if finished {
					run.Finished, run.Result = true, "RESULT of the system"
				}
				if err := s.Turns.RecordRun(t.Context(), c.Lease, run); err != nil {
					t.Fatal(err)
				}
				asked := c.Speak("m9", storetest.ZhangID, storetest.ZhangNick, "/forget last", nil)
				erase(t, s, said, asked)
				storetest.WantGone(t, pool, storetest.Secret, "RESULT")
				if n := storetest.Number(t, pool, "SELECT count(*) FROM tool_runs WHERE call_id = 'approved-1' AND finished = $1", finished); n != 1 {
					t.Errorf("%d records of the call, want one: it must not be made again", n)
				}
				found := storetest.Must[[]sessions.FoundApproval](t)(s.Approvals.FindApprovals(t.Context(), c.Lease.Key, sessions.ApprovalQuery{Event: a.EventID}))
				if len(found) != 1 || found[0].State != sessions.ApprovalApproved || found[0].Arguments != "" {
					t.Errorf("found %+v", found)
				}
			})
		}
	}
}

// waitFor commits a turn whose call waits as a number.
func waitFor(t *testing.T, c *storetest.Chat, said sessions.Accepted, id int64) sessions.Accepted {
	t.Helper()
	call := sessions.ToolCall{ID: "c1", Name: "x__y", Arguments: `{"text":"` + storetest.Secret + `"}`}
	storetest.Must[sessions.Committed](t)(c.Store.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{
		Taken: []int64{said.EventID}, TakenTokens: []int{1}, Events: callEvents(call, "waits", "please approve"), Waits: []sessions.Approval{approvalOf(said, id)},
	}))
	return said
}

// decide commits the turn of an administrator's /approve, which makes the call and may ask for another one.
func decide(t *testing.T, c *storetest.Chat, message string, id, next int64) sessions.Accepted {
	t.Helper()
	a := c.Speak(message, "boss", "老板", "/approve", nil)
	done := storetest.Must[[]sessions.Approval](t)(c.Store.Approvals.DecideApprovals(t.Context(), c.Lease, sessions.Decision{
		IDs: []int64{id}, State: sessions.ApprovalApproved, By: "boss", Event: a.EventID,
	}))
	if len(done) != 1 {
		t.Fatalf("%d calls were decided", len(done))
	}
	turn := sessions.TurnResult{
		Taken: []int64{a.EventID}, TakenTokens: []int{1}, Outcome: sessions.Decided,
		Events: callEvents(sessions.ToolCall{ID: "approved", Name: "x__y", Arguments: `{"number":"` + storetest.Secret + `"}`}, "RESULT of the system", "done, RESULT"),
	}
	if next > 0 {
		turn.Waits = []sessions.Approval{approvalOf(a, next)}
	}
	storetest.Must[sessions.Committed](t)(c.Store.Turns.Commit(t.Context(), c.Lease, turn))
	return a
}

func approvalOf(said sessions.Accepted, id int64) sessions.Approval {
	return sessions.Approval{ID: id, EventID: said.EventID, Tool: "x__y", Arguments: "{}", AskedBy: storetest.ZhangID, Wait: time.Hour}
}

func callEvents(call sessions.ToolCall, result, answer string) []sessions.Event {
	return []sessions.Event{
		{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{call}},
		{Role: sessions.RoleTool, Content: result, ToolCallID: call.ID, ToolName: call.Name},
		{Role: sessions.RoleAssistant, Content: answer},
	}
}
