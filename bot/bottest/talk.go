package bottest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"ebb/sessions"
)

// AnswerTo is the reply to a command.
func (w *World) AnswerTo(id, who, command string) string {
	w.T.Helper()
	w.Say(id, who, command)
	texts := w.Wire.Texts()
	return texts[len(texts)-1]
}

// View is what the session's next request is made of.
func (w *World) View() sessions.View {
	w.T.Helper()
	l, err := w.Store.Mem.Leases.Acquire(w.T.Context(), Group, w.Name)
	if err != nil {
		w.T.Fatal(err)
	}
	v, err := w.Store.Begin(w.T.Context(), l, 0)
	if err != nil {
		w.T.Fatal(err)
	}
	return v
}

// Attempts are the rows of the compaction log, the oldest first.
func Attempts(t *testing.T, log sessions.Compactor) []sessions.LogEntry {
	t.Helper()
	rows, err := log.Compactions(t.Context(), Group, 1000)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(rows)
	return rows
}

// Logged reports whether a message has its place in the log.
func Logged(w *World, words string) bool {
	for _, e := range w.Store.EventsOf(w.T.Context(), Group) {
		if e.Content == words {
			return true
		}
	}
	return false
}

// Fill has the conversation talk until its context holds about a number of tokens, and waits for the upkeep after it.
func (w *World) Fill(tokens int) {
	w.T.Helper()
	for i := 0; w.Tokens() < tokens; i++ {
		if i > 1000 {
			w.T.Errorf("the context does not reach %d tokens", tokens)
			return
		}
		w.Post(Said(fmt.Sprintf("fill%d-%d", w.Store.Called("accept"), i), "alice", Prose(i, 100)))
		synctest.Wait()
	}
}

// Tokens is the stored size of the context; 0 before the first turn.
func (w *World) Tokens() int {
	s, err := w.Store.Mem.Sessions.Session(w.T.Context(), Group)
	if err != nil {
		return 0
	}
	return s.TotalTokens
}

// Prose is n words that differ with i: about a token each.
func Prose(i, n int) string {
	words := []string{"release", "server", "ticket", "report", "garden", "window", "silver", "market", "number", "planet", "letter", "bridge"}
	var b strings.Builder
	for k := range n {
		b.WriteString(words[(i*7+k*(1+i%5))%len(words)] + " ")
	}
	return b.String()
}

// Results are the tool results that the last request of a turn showed the model, by call id.
func (w *World) Results() map[string]string {
	rs := w.Model.Requests("chat")
	out := map[string]string{}
	for _, m := range rs[len(rs)-1].Messages {
		if m.Role == "tool" {
			out[m.ToolCallID] = m.Content
		}
	}
	return out
}

// LegalLog checks that in the log every call has its one result after it, and every result its call (P16, P17).
func (w *World) LegalLog() {
	w.T.Helper()
	open := map[string]bool{}
	for _, e := range w.Store.EventsOf(w.T.Context(), Group) {
		switch {
		case e.Role == sessions.RoleTool && !open[e.ToolCallID]:
			w.T.Errorf("event %d is a result without its call", e.Seq)
		case e.Role == sessions.RoleTool:
			delete(open, e.ToolCallID)
		case len(open) > 0:
			w.T.Errorf("event %d stands between calls and their results: %v", e.Seq, open)
		}
		for _, c := range e.ToolCalls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		w.T.Errorf("calls without results: %v", open)
	}
}

// Unsent lists what the storage still has to send of the group.
func (w *World) Unsent() []sessions.Outgoing {
	w.T.Helper()
	outs, err := w.Store.Mem.Outbox.Unsent(w.T.Context(), w.View().Session.Lease)
	if err != nil {
		w.T.Fatal(err)
	}
	return outs
}

// Last is the newest message that was sent.
func (w *World) Last() sessions.Outgoing {
	w.T.Helper()
	sent := w.Wire.Sends()
	if len(sent) == 0 {
		w.T.Fatal("nothing was sent")
	}
	return sent[len(sent)-1]
}

// Compactions is the number of compactions of a session that may not exist yet.
func (w *World) Compactions() int {
	s, err := w.Store.Mem.Sessions.Session(w.T.Context(), Group)
	if err != nil {
		return 0
	}
	return s.CompactionCount
}

// Talk posts short turns until the conversation was compacted n times.
func (w *World) Talk(n int) {
	w.T.Helper()
	for i := 0; w.Compactions() < n; i++ {
		if i > 300 {
			w.T.Fatalf("%d compactions after %d turns, want %d", w.Compactions(), i, n)
		}
		w.Post(Said(fmt.Sprintf("t%d-%d", n, i), "alice", Prose(i, 100)))
		synctest.Wait()
	}
}
