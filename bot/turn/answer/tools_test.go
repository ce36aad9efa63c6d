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
	a := Answer{Events: events, Waits: waits}.CutShort("stopped")
	want(t, "another result", a.Events[0].Content, "found")
	for _, e := range a.Events[1:3] {
		want(t, "the result of a call that waits for nothing", e.Content, NotRun)
	}
}
