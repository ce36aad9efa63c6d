package erasure_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// plant says a secret, and spreads it: to a tool result that is moved out, to summaries that are rolled up, to an audit
// and a focus. A quote, memory, the head of views and an open job have it, too. It returns the events with the secret.
func plant(t *testing.T, s *sql.Store, c *storetest.Chat) []int64 {
	t.Helper()
	body := "result " + storetest.Secret
	c.Say("u", "my number is "+storetest.Secret) // 3 and 4
	saved := storetest.GroupFact(c, "saved at once: "+storetest.Secret)
	commit(c, "call me", []memory.Draft{saved}, sessions.TurnResult{Events: []sessions.Event{ // 5 to 8
		{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "c", Name: "n", Arguments: `{"q":"` + storetest.Secret + `"}`}}},
		{Role: sessions.RoleTool, ToolCallID: "c", ToolName: "n", Content: body, Tokens: 100},
		{Role: sessions.RoleAssistant, Content: "I called " + storetest.Secret, Tokens: 5},
	}, Reply: &sessions.Reply{Text: "@u I called " + storetest.Secret, Nonce: "n"}})
	flushed := storetest.Must[memory.Receipt](t)(s.Flushes.Flush(t.Context(), c.Lease, memory.Flush{
		Through: 8, Last: true, Drafts: []memory.Draft{storetest.GroupFact(c, "flushed: "+storetest.Secret), storetest.FactAbout("u", "phone "+storetest.Secret)},
	}))
	if len(flushed.Saved) != 2 {
		t.Fatalf("the flush saved %+v", flushed)
	}
	compact := storetest.Must[sessions.Compacted](t)
	compact(s.Compactions.Compact(t.Context(), c.Lease, sessions.Compaction{Shown: []sessions.Shown{{Seq: 7, Text: "head of " + body, Tokens: 5}}}))
	compact(s.Compactions.Compact(t.Context(), c.Lease, sessions.Compaction{Shown: []sessions.Shown{{Seq: 7, Text: "moved", Tokens: 5, Blob: sessions.BlobOf(body)}}}))
	first := storetest.SummaryOf(0, 4, "noted: "+storetest.Secret)
	first.Log = sessions.LogEntry{Focus: "mind " + storetest.Secret, Audit: `{"recall":1,"missing":["` + storetest.Secret + `"],"invented":["` + storetest.Secret + `"]}`}
	first.Pinned = &sessions.Pinned{Text: "[Scope Memory] - flushed: " + storetest.Secret} // in one line, as dumps are looked at
	compact(s.Compactions.Compact(t.Context(), c.Lease, first))
	c.Say("u", "/compact mind "+storetest.Secret) // 9 and 10
	rolled := storetest.SummaryOf(4, 6, "noted: "+storetest.Secret+", moved out")
	rolled.Summaries = append(rolled.Summaries, sessions.NewSummary{StartSeq: 1, EndSeq: 6, Text: "all of it: " + storetest.Secret, Level: 1})
	rolled.Pinned = first.Pinned
	compact(s.Compactions.Compact(t.Context(), c.Lease, rolled))
	if _, err := s.Compactions.Undo(t.Context(), c.Lease, 0, 0); err != nil {
		t.Fatal(err)
	}
	compact(s.Compactions.Compact(t.Context(), c.Lease, rolled))
	job := sessions.Job{From: 6, Through: 8}
	storetest.Must[sessions.Source](t)(s.Jobs.OpenJob(t.Context(), c.Lease, job))
	if err := s.Jobs.StageJob(t.Context(), c.Lease, job, []byte(storetest.Secret), sessions.Spending{}); err != nil {
		t.Fatal(err)
	}
	return []int64{3, 6, 7, 8, 9}
}

// commit says something and commits what answers it, after saving facts.
func commit(c *storetest.Chat, text string, saves []memory.Draft, turn sessions.TurnResult) {
	c.T.Helper()
	a := storetest.Must[sessions.Accepted](c.T)(c.Store.Inbox.Accept(c.T.Context(), "a", c.Reader.Key, sessions.Message{
		RobotCode: storetest.Robot, ConversationID: c.Reader.Conversation, ID: sessions.MessageID("said " + text), SenderID: "u", Text: text,
		Quote: &sessions.Quote{Text: "my number is " + storetest.Secret}, Attachments: []sessions.Attachment{{Name: "a.png"}},
	}))
	c.Save(saves...)
	turn.Taken, turn.TakenTokens = []int64{a.EventID}, []int{5}
	done := storetest.Must[sessions.Committed](c.T)(c.Store.Turns.Commit(c.T.Context(), a.Lease, turn))
	for _, r := range done.Replies {
		if err := c.Store.Outbox.Settle(c.T.Context(), sessions.SendOutcome{Key: c.Reader.Key, ID: r.ID, Sent: true}); err != nil {
			c.T.Fatal(err)
		}
	}
}

// P75: no byte of what was erased is left in any table, and cursor and coverage are as before.
func TestErasedIsNowhere(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	elsewhere := storetest.NewChat(t, s, "cid2", "u", true)
	elsewhere.Save(storetest.FactAbout("u", "likes tea"))
	storetest.Must[sessions.Compacted](t)(s.Compactions.Compact(t.Context(), elsewhere.Lease, sessions.Compaction{Pinned: &sessions.Pinned{Text: "- phone " + storetest.Secret + "\n"}}))
	storetest.Must[sessions.Compacted](t)(s.Compactions.Compact(t.Context(), elsewhere.Lease, sessions.Compaction{})) // an undo would pin it again
	seqs := plant(t, s, c)
	before := storetest.Dump(t, pool)
	for _, table := range []string{
		"dingtalk_sessions", "dingtalk_session_events", "session_summaries", "compaction_log", "outbox", "memories", "blobs",
	} {
		if !strings.Contains(storetest.Lines(before, storetest.Secret), table+" ") {
			t.Errorf("the secret did not get into %s", table)
		}
	}

	done, err := s.Erasure.Erase(t.Context(), c.Reader.Key, seqs)
	if want := (sessions.Erased{Events: 5, Summaries: 1, Memories: 3, Blobs: 1, Replies: 1}); err != nil || done != want {
		t.Errorf("the erasure gave %+v (%v), want %+v", done, err, want)
	}
	if left := storetest.Lines(storetest.Dump(t, pool), storetest.Secret); left != "" {
		t.Errorf("left of the secret are\n%s", left)
	}
	if m := storetest.Must[[]memory.Memory](t)(s.Facts.Pinned(t.Context(), elsewhere.Reader, 10)); len(m) != 1 || m[0].Content != "likes tea" {
		t.Errorf("memory has %+v, want the fact of another conversation", m)
	}
	for name, late := range map[string]func() error{
		"a turn": func() error { _, err := s.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{}); return err },
		"a flush that read it": func() error {
			_, err := s.Flushes.Flush(t.Context(), c.Lease, memory.Flush{From: 8, Through: 9, Drafts: []memory.Draft{storetest.GroupFact(c, storetest.Secret)}})
			return err
		},
		"a compaction": func() error {
			_, err := s.Compactions.Compact(t.Context(), c.Lease, storetest.SummaryOf(7, 8, storetest.Secret))
			return err
		},
	} {
		if err := late(); !errors.Is(err, sessions.ErrLeaseLost) {
			t.Errorf("%s under way ended with %v, want the lease lost", name, err)
		}
	}

	c.Lease = storetest.Must[sessions.Lease](t)(s.Leases.Acquire(t.Context(), c.Reader.Key, "a"))
	v := storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), c.Lease, 0))
	if v.Session.CompactedSeq != 6 || len(v.Summaries) != 1 || !v.Summaries[0].Emptied() || len(v.Tail) != 4 || v.Session.Pinned != "" {
		t.Errorf("the view is summarized to %d by %+v, and %d events; want an emptied summary of 6 and 4 events", v.Session.CompactedSeq, v.Summaries, len(v.Tail))
	}
	for range 2 { // back to before the summaries
		if _, err := s.Compactions.Undo(t.Context(), c.Lease, 0, 0); err != nil {
			t.Errorf("undoing after the erasure gave %v", err)
		}
	}
	v = storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), c.Lease, 0))
	if len(v.Tail) != 10 || len(v.Tail[5].ToolCalls) != 1 || v.Tail[5].ToolCalls[0] != (sessions.ToolCall{ID: "c", Name: "n", Arguments: "{}"}) {
		t.Errorf("with all compactions undone the view is %+v", v)
	}
	if left := storetest.Lines(storetest.Dump(t, pool), storetest.Secret); left != "" {
		t.Errorf("what undos brought back has\n%s", left)
	}
	// An erased event can be erased again: there is nothing to do.
	if done, err := s.Erasure.Erase(t.Context(), c.Reader.Key, []int64{3}); err != nil || done != (sessions.Erased{Events: 1}) {
		t.Errorf("erasing again gave %+v (%v)", done, err)
	}
}

// A fact of another part of the conversation, and replies of before, are left alone.
func TestEraseLeavesTheRest(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false) // 1 and 2
	commit(c, "first", []memory.Draft{storetest.GroupFact(c, "by the first turn")}, sessions.TurnResult{Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "ok"}}, Reply: &sessions.Reply{Text: "first answer"}})
	flush := func(from, through int64, fact string) {
		t.Helper()
		storetest.Must[memory.Receipt](t)(s.Flushes.Flush(t.Context(), c.Lease, memory.Flush{From: from, Through: through, Last: true, Drafts: []memory.Draft{storetest.GroupFact(c, fact)}}))
	}
	flush(0, 4, "early")
	storetest.Must[sessions.Compacted](t)(s.Compactions.Compact(t.Context(), c.Lease, storetest.SummaryOf(0, 4, "early")))
	commit(c, "second", []memory.Draft{storetest.GroupFact(c, "by the second turn")}, sessions.TurnResult{Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "ok"}}, Reply: &sessions.Reply{Text: "second answer"}})
	c.Say("u", "third") // 7 and 8
	flush(4, 6, "middle")
	flush(6, 8, "late")
	storetest.Must[sessions.Compacted](t)(s.Compactions.Compact(t.Context(), c.Lease, storetest.SummaryOf(4, 8, "late")))
	done, err := s.Erasure.Erase(t.Context(), c.Reader.Key, []int64{7})
	if want := (sessions.Erased{Events: 1, Summaries: 1, Memories: 1}); err != nil || done != want {
		t.Errorf("the erasure gave %+v (%v), want %+v", done, err, want)
	}
	for query, want := range map[string]string{
		`SELECT string_agg(content, '|' ORDER BY id) FROM memories`:                                  "by the first turn|early|by the second turn|middle",
		`SELECT string_agg(body, '|' ORDER BY id) FROM outbox`:                                       "first answer|second answer",
		`SELECT string_agg(concat_ws(':', summary, status), '|' ORDER BY id) FROM session_summaries`: "early:active|" + sessions.ErasedText + ":active",
		`SELECT concat_ws(' ', compacted_seq, last_seq, flushed_seq) FROM dingtalk_sessions`:         "8 8 8",
	} {
		if got := storetest.Collect(t, pool, query, pgx.RowTo[string]); len(got) != 1 || got[0] != want {
			t.Errorf("%s\ngave %q, want %q", query, got, want)
		}
	}
}

// P80: nothing of a deleted session is in any table, also where bodies are gone already; its neighbours stay.
func TestDeletedIsNowhere(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	_, pool := storetest.Open(t, url)
	l := &storetest.Late{Word: "-- name: SessionDelete"}
	s := storetest.OpenTraced(t, url, 2, l)
	c, neighbour := storetest.NewChat(t, s, "cid", "u", false), storetest.NewChat(t, s, "other", "u", false)
	neighbour.Save(storetest.GroupFact(neighbour, "the neighbour's"))
	plant(t, s, c)
	c.Save(memory.Draft{Scope: memory.ScopeSession, ScopeID: string(c.Reader.Key), Kind: memory.KindFact, Content: "the session's"})
	c.Say("u", "wait")
	if err := s.Flushes.Owe(t.Context(), c.Lease, memory.Debt{Through: 12, Failures: 1, Reason: "busy"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Turns.RecordRun(t.Context(), c.Lease, sessions.ToolRun{EventID: 1, Call: sessions.ToolCall{ID: "c", Name: "n"}}); err != nil {
		t.Fatal(err)
	}
	storetest.Execute(t, pool, "DELETE FROM blobs")
	others := storetest.Lines(storetest.Dump(t, pool), string(neighbour.Reader.Key))

	done, err := s.Erasure.Delete(t.Context(), c.Reader.Key)
	if err != nil || done.Events == 0 || done.Summaries != 5 || done.Compactions == 0 || done.Memories != 1 || done.Replies != 1 || done.Blobs != 0 {
		t.Errorf("the deletion gave %+v (%v)", done, err)
	}
	left := storetest.Dump(t, pool)
	for line := range strings.Lines(storetest.Lines(left, string(c.Reader.Key))) {
		if !strings.HasPrefix(line, "memories (group") && !strings.HasPrefix(line, "memories (user") && !strings.Contains(line, string(neighbour.Reader.Key)) {
			t.Errorf("left of the session is %s", line)
		}
	}
	if now := storetest.Lines(left, string(neighbour.Reader.Key)); now != others {
		t.Errorf("of the neighbour there is\n%s\nwant\n%s", now, others)
	}
	if _, err := s.Erasure.Delete(t.Context(), c.Reader.Key); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("deleting it again gave %v", err)
	}

	// A message that was accepted by a statement that still saw the session is answered all the same.
	c.Say("u", "again")
	l.Do = func() {
		storetest.Execute(t, pool, `INSERT INTO dingtalk_session_events (session_key, role, state, content, msg_id, message) VALUES
			($1, 'user', 'pending', 'late', 'late', '{"robot_code": "robot", "conversation_id": "cid", "conversation_type": "2"}')`, c.Reader.Key)
	}
	if _, err := s.Erasure.Delete(t.Context(), c.Reader.Key); err != nil {
		t.Fatal(err)
	}
	storetest.Must[[]sessions.Key](t)(s.Inbox.Revive(t.Context(), nil))
	waiting := storetest.Must[[]sessions.Key](t)(s.Inbox.Waiting(t.Context(), "a", 10))
	c.Lease = storetest.Must[sessions.Lease](t)(s.Leases.Acquire(t.Context(), c.Reader.Key, "a"))
	if v := storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), c.Lease, 5)); len(waiting) != 1 || len(v.Pending) != 1 || v.Pending[0].Content != "late" {
		t.Errorf("waiting are %v, pending is %+v, want the late message", waiting, v.Pending)
	}
}
