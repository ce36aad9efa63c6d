package answer

import (
	"strings"
	"testing"

	"ebb/bot/approval"
	"ebb/bot/view"
	"ebb/sessions"
)

// After a crash a model writes a call in other words. It reads of the earlier calls once, and may call again then.
func TestEarlierCallsAreReportedOnce(t *testing.T) {
	t.Parallel()
	runs := []sessions.ToolRun{
		{Call: sessions.ToolCall{Name: "mail__send", Arguments: `{"text":"hi"}`}},
		{Call: sessions.ToolCall{Name: "mail__send", Arguments: `{"text":"ho"}`}, Finished: true, Result: "sent as 7"},
		{Call: sessions.ToolCall{Name: "mail__drop", Arguments: `{}`}, Finished: true, Result: "gone"},
	}
	seen := map[string]bool{}
	again := sessions.ToolCall{Name: "mail__send", Arguments: `{"text":"Hi!"}`}
	got := earlierRuns(runs, again, seen)
	for _, part := range []string{"Not run", `{"text":"hi"}`, view.Interrupted, `{"text":"ho"}`, "sent as 7"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q lacks %q", got, part)
		}
	}
	if strings.Contains(got, "gone") {
		t.Errorf("%q has a result of another tool", got)
	}
	want(t, "the second time", earlierRuns(runs, again, seen), "")
	want(t, "a built-in tool", earlierRuns([]sessions.ToolRun{{Call: sessions.ToolCall{Name: "remind", Arguments: "{}"}}}, sessions.ToolCall{Name: "remind"}, seen), "")
}

// A stopped turn stores no call that waits, so that no result says that one does. The last round has a note behind each result.
func TestStoppedTurnWaitsForNothing(t *testing.T) {
	t.Parallel()
	waits := []sessions.Approval{{ID: 1}, {ID: 10}}
	events := []sessions.Event{{Role: sessions.RoleTool, ToolCallID: "x", Content: "found"}}
	for _, w := range waits {
		events = append(events, sessions.Event{Role: sessions.RoleTool, ToolCallID: "c", Content: approval.Result(w) + noMoreCalls})
	}
	a := Answer{Result: sessions.TurnResult{Events: events}, Waits: waits}.CutShort("stopped")
	want(t, "another result", a.Result.Events[0].Content, "found")
	for _, e := range a.Result.Events[1:3] {
		want(t, "the result of a call that waits for nothing", e.Content, NotRun)
	}
}

// A later attempt at a decision finds the call by its id, also after an erasure took the arguments. A call that had not begun then is not made.
func TestErasedCallIsNotMade(t *testing.T) {
	t.Parallel()
	erased := sessions.Approval{ID: 3, Tool: "mail__send", State: sessions.ApprovalApproved}
	c := sessions.ToolCall{ID: erased.CallID(), Name: erased.Tool, Arguments: "{}"}
	for name, row := range map[string]struct {
		runs []sessions.ToolRun
		want string
	}{
		"not begun":      {nil, callErased},
		"begun":          {[]sessions.ToolRun{{EventID: 7, Call: c}}, view.Interrupted},
		"finished":       {[]sessions.ToolRun{{EventID: 7, Call: c, Finished: true, Result: sessions.ErasedText}}, sessions.ErasedText},
		"another turn's": {[]sessions.ToolRun{{EventID: 6, Call: c, Finished: true, Result: "other"}}, callErased},
	} {
		q := question{}
		q.made.Asked = []sessions.Event{{ID: 7}}
		q.made.View.Runs = row.runs
		got, err := toolCaller{}.callApproved(t.Context(), t.Context(), &q, &Answer{}, nil, c, true, map[string]bool{})
		if err != nil {
			t.Fatal(err)
		}
		want(t, name, got, row.want)
	}
}
