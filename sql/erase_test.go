package sql_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
)

// secret is what must be found nowhere after an erasure.
const secret = "Zq7-13800138000"

// dump is every row of every table that there is, as text.
func dump(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	var all strings.Builder
	tables := collect(t, pool, "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'", pgx.RowTo[string])
	for _, table := range tables {
		id := pgx.Identifier{table}.Sanitize()
		for _, row := range collect(t, pool, "SELECT x::text || to_jsonb(x)::text FROM "+id+" x", pgx.RowTo[string]) {
			all.WriteString(table + " " + row + "\n")
		}
	}
	if len(tables) < 10 {
		t.Fatalf("only %d tables were looked at", len(tables))
	}
	return all.String()
}

// lines are those of a text with a word in them.
func lines(text, word string) string {
	var found []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}

// must ends the test on an error.
func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// plant says a secret, and spreads it: to a tool result that is moved out, to summaries that are rolled up, to an audit
// and a focus. A quote, memory, the head of views and an open job have it, too. It returns the events with the secret.
func plant(t *testing.T, s *sql.Store, c *chat) []int64 {
	t.Helper()
	body := "result " + secret
	c.say("u", "my number is "+secret) // 3 and 4
	saved := group(c, "saved at once: "+secret)
	c.commit("call me", []memory.Draft{saved}, sessions.Turn{Events: []sessions.Event{ // 5 to 8
		{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "c", Name: "n", Arguments: `{"q":"` + secret + `"}`}}},
		{Role: sessions.RoleTool, ToolCallID: "c", ToolName: "n", Content: body, Tokens: 100},
		{Role: sessions.RoleAssistant, Content: "I called " + secret, Tokens: 5},
	}, Reply: &sessions.Reply{Text: "@u I called " + secret, Nonce: "n"}})
	flushed := must[memory.Receipt](t)(s.Flush(t.Context(), c.lease, memory.Flush{
		Through: 8, Last: true, Drafts: []memory.Draft{group(c, "flushed: "+secret), about("u", "phone "+secret)},
	}))
	if len(flushed.Saved) != 2 {
		t.Fatalf("the flush saved %+v", flushed)
	}
	compact := must[sessions.Compacted](t)
	compact(s.Compact(t.Context(), c.lease, sessions.Compaction{Shown: []sessions.Shown{{Seq: 7, Text: "head of " + body, Tokens: 5}}}))
	compact(s.Compact(t.Context(), c.lease, sessions.Compaction{Shown: []sessions.Shown{{Seq: 7, Text: "moved", Tokens: 5, Blob: sessions.BlobOf(body)}}}))
	first := summaryOf(0, 4, "noted: "+secret)
	first.Log = sessions.LogEntry{Focus: "mind " + secret, Audit: `{"recall":1,"missing":["` + secret + `"],"invented":["` + secret + `"]}`}
	first.Pinned = &sessions.Pinned{Text: "[Scope Memory] - flushed: " + secret} // in one line, as dumps are looked at
	compact(s.Compact(t.Context(), c.lease, first))
	c.say("u", "/compact mind "+secret) // 9 and 10
	rolled := summaryOf(4, 6, "noted: "+secret+", moved out")
	rolled.Summaries = append(rolled.Summaries, sessions.NewSummary{StartSeq: 1, EndSeq: 6, Text: "all of it: " + secret, Level: 1})
	rolled.Pinned = first.Pinned
	compact(s.Compact(t.Context(), c.lease, rolled))
	if _, err := s.Undo(t.Context(), c.lease, 0, 0); err != nil {
		t.Fatal(err)
	}
	compact(s.Compact(t.Context(), c.lease, rolled))
	job := sessions.Job{From: 6, Through: 8}
	must[sessions.Source](t)(s.OpenJob(t.Context(), c.lease, job))
	if err := s.StageJob(t.Context(), c.lease, job, []byte(secret), sessions.Spending{}); err != nil {
		t.Fatal(err)
	}
	return []int64{3, 6, 7, 8, 9}
}

// commit says something and commits what answers it, after saving facts.
func (c *chat) commit(text string, saves []memory.Draft, turn sessions.Turn) {
	c.t.Helper()
	a := must[sessions.Accepted](c.t)(c.store.Accept(c.t.Context(), "a", c.reader.Key, sessions.Message{
		RobotCode: robot, ConversationID: c.reader.Conversation, ID: sessions.MessageID("said " + text), SenderID: "u", Text: text,
		Quote: &sessions.Quote{Text: "my number is " + secret}, Attachments: []sessions.Attachment{{Name: "a.png"}},
	}))
	c.save(saves...)
	turn.Taken, turn.TakenTokens = []int64{a.EventID}, []int{5}
	done := must[sessions.Committed](c.t)(c.store.Commit(c.t.Context(), a.Lease, turn))
	for _, r := range done.Replies {
		if err := c.store.Settle(c.t.Context(), sessions.Settled{Key: c.reader.Key, ID: r.ID, Sent: true}); err != nil {
			c.t.Fatal(err)
		}
	}
}

// P75: no byte of what was erased is left in any table, and cursor and coverage are as before.
func TestErasedIsNowhere(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u", false)
	elsewhere := newChat(t, s, "cid2", "u", true)
	elsewhere.save(about("u", "likes tea"))
	must[sessions.Compacted](t)(s.Compact(t.Context(), elsewhere.lease, sessions.Compaction{Pinned: &sessions.Pinned{Text: "- phone " + secret + "\n"}}))
	must[sessions.Compacted](t)(s.Compact(t.Context(), elsewhere.lease, sessions.Compaction{})) // an undo would pin it again
	seqs := plant(t, s, c)
	before := dump(t, pool)
	for _, table := range []string{
		"dingtalk_sessions", "dingtalk_session_events", "session_summaries", "compaction_log", "outbox", "memories", "blobs",
	} {
		if !strings.Contains(lines(before, secret), table+" ") {
			t.Errorf("the secret did not get into %s", table)
		}
	}

	done, err := s.Erase(t.Context(), c.reader.Key, seqs)
	if want := (sessions.Erased{Events: 5, Summaries: 1, Memories: 3, Blobs: 1, Replies: 1}); err != nil || done != want {
		t.Errorf("the erasure gave %+v (%v), want %+v", done, err, want)
	}
	if left := lines(dump(t, pool), secret); left != "" {
		t.Errorf("left of the secret are\n%s", left)
	}
	if m := must[[]memory.Memory](t)(s.Pinned(t.Context(), elsewhere.reader, 10)); len(m) != 1 || m[0].Content != "likes tea" {
		t.Errorf("memory has %+v, want the fact of another conversation", m)
	}
	for name, late := range map[string]func() error{
		"a turn": func() error { _, err := s.Commit(t.Context(), c.lease, sessions.Turn{}); return err },
		"a flush that read it": func() error {
			_, err := s.Flush(t.Context(), c.lease, memory.Flush{From: 8, Through: 9, Drafts: []memory.Draft{group(c, secret)}})
			return err
		},
		"a compaction": func() error { _, err := s.Compact(t.Context(), c.lease, summaryOf(7, 8, secret)); return err },
	} {
		if err := late(); !errors.Is(err, sessions.ErrLeaseLost) {
			t.Errorf("%s under way ended with %v, want the lease lost", name, err)
		}
	}

	c.lease = must[sessions.Lease](t)(s.Acquire(t.Context(), c.reader.Key, "a"))
	v := must[sessions.View](t)(s.Begin(t.Context(), c.lease, 0))
	if v.Session.CompactedSeq != 6 || len(v.Summaries) != 1 || !v.Summaries[0].Emptied() || len(v.Tail) != 4 || v.Session.Pinned != "" {
		t.Errorf("the view is summarized to %d by %+v, and %d events; want an emptied summary of 6 and 4 events", v.Session.CompactedSeq, v.Summaries, len(v.Tail))
	}
	for range 2 { // back to before the summaries
		if _, err := s.Undo(t.Context(), c.lease, 0, 0); err != nil {
			t.Errorf("undoing after the erasure gave %v", err)
		}
	}
	v = must[sessions.View](t)(s.Begin(t.Context(), c.lease, 0))
	if len(v.Tail) != 10 || len(v.Tail[5].ToolCalls) != 1 || v.Tail[5].ToolCalls[0] != (sessions.ToolCall{ID: "c", Name: "n", Arguments: "{}"}) {
		t.Errorf("with all compactions undone the view is %+v", v)
	}
	if left := lines(dump(t, pool), secret); left != "" {
		t.Errorf("what undos brought back has\n%s", left)
	}
	// An erased event can be erased again: there is nothing to do.
	if done, err := s.Erase(t.Context(), c.reader.Key, []int64{3}); err != nil || done != (sessions.Erased{Events: 1}) {
		t.Errorf("erasing again gave %+v (%v)", done, err)
	}
}

// A fact of another part of the conversation, and replies of before, are left alone.
func TestEraseLeavesTheRest(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u", false) // 1 and 2
	c.commit("first", []memory.Draft{group(c, "by the first turn")}, sessions.Turn{Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "ok"}}, Reply: &sessions.Reply{Text: "first answer"}})
	flush := func(from, through int64, fact string) {
		t.Helper()
		must[memory.Receipt](t)(s.Flush(t.Context(), c.lease, memory.Flush{From: from, Through: through, Last: true, Drafts: []memory.Draft{group(c, fact)}}))
	}
	flush(0, 4, "early")
	must[sessions.Compacted](t)(s.Compact(t.Context(), c.lease, summaryOf(0, 4, "early")))
	c.commit("second", []memory.Draft{group(c, "by the second turn")}, sessions.Turn{Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "ok"}}, Reply: &sessions.Reply{Text: "second answer"}})
	c.say("u", "third") // 7 and 8
	flush(4, 6, "middle")
	flush(6, 8, "late")
	must[sessions.Compacted](t)(s.Compact(t.Context(), c.lease, summaryOf(4, 8, "late")))
	done, err := s.Erase(t.Context(), c.reader.Key, []int64{7})
	if want := (sessions.Erased{Events: 1, Summaries: 1, Memories: 1}); err != nil || done != want {
		t.Errorf("the erasure gave %+v (%v), want %+v", done, err, want)
	}
	for query, want := range map[string]string{
		`SELECT string_agg(content, '|' ORDER BY id) FROM memories`:                                  "by the first turn|early|by the second turn|middle",
		`SELECT string_agg(body, '|' ORDER BY id) FROM outbox`:                                       "first answer|second answer",
		`SELECT string_agg(concat_ws(':', summary, status), '|' ORDER BY id) FROM session_summaries`: "early:active|" + sessions.ErasedText + ":active",
		`SELECT concat_ws(' ', compacted_seq, last_seq, flushed_seq) FROM dingtalk_sessions`:         "8 8 8",
	} {
		if got := collect(t, pool, query, pgx.RowTo[string]); len(got) != 1 || got[0] != want {
			t.Errorf("%s\ngave %q, want %q", query, got, want)
		}
	}
}

// late does something before a statement runs that is known by a word.
type late struct {
	word string
	do   func()
}

// TraceQueryStart implements pgx.QueryTracer.
func (l *late) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if do := l.do; do != nil && strings.Contains(data.SQL, l.word) {
		l.do = nil
		do()
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (l *late) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// P80: nothing of a deleted session is in any table, also where bodies are gone already; its neighbours stay.
func TestDeletedIsNowhere(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	_, pool := open(t, url)
	l := &late{word: "-- name: SessionDelete"}
	s := openTraced(t, url, 2, l)
	c, neighbour := newChat(t, s, "cid", "u", false), newChat(t, s, "other", "u", false)
	neighbour.save(group(neighbour, "the neighbour's"))
	plant(t, s, c)
	c.save(memory.Draft{Scope: memory.ScopeSession, ScopeID: string(c.reader.Key), Kind: memory.KindFact, Content: "the session's"})
	c.say("u", "wait")
	if err := s.Owe(t.Context(), c.lease, memory.Debt{Through: 12, Failures: 1, Reason: "busy"}); err != nil {
		t.Fatal(err)
	}
	if err := s.RecordRun(t.Context(), c.lease, sessions.ToolRun{EventID: 1, Call: sessions.ToolCall{ID: "c", Name: "n"}}); err != nil {
		t.Fatal(err)
	}
	execute(t, pool, "DELETE FROM blobs")
	others := lines(dump(t, pool), string(neighbour.reader.Key))

	done, err := s.Delete(t.Context(), c.reader.Key)
	if err != nil || done.Events == 0 || done.Summaries != 5 || done.Compactions == 0 || done.Memories != 1 || done.Replies != 1 || done.Blobs != 0 {
		t.Errorf("the deletion gave %+v (%v)", done, err)
	}
	left := dump(t, pool)
	for line := range strings.Lines(lines(left, string(c.reader.Key))) {
		if !strings.HasPrefix(line, "memories (group") && !strings.HasPrefix(line, "memories (user") && !strings.Contains(line, string(neighbour.reader.Key)) {
			t.Errorf("left of the session is %s", line)
		}
	}
	if now := lines(left, string(neighbour.reader.Key)); now != others {
		t.Errorf("of the neighbour there is\n%s\nwant\n%s", now, others)
	}
	if _, err := s.Delete(t.Context(), c.reader.Key); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("deleting it again gave %v", err)
	}

	// A message that was accepted by a statement that still saw the session is answered all the same.
	c.say("u", "again")
	l.do = func() {
		execute(t, pool, `INSERT INTO dingtalk_session_events (session_key, role, state, content, msg_id, message) VALUES
			($1, 'user', 'pending', 'late', 'late', '{"robot_code": "robot", "conversation_id": "cid", "conversation_type": "2"}')`, c.reader.Key)
	}
	if _, err := s.Delete(t.Context(), c.reader.Key); err != nil {
		t.Fatal(err)
	}
	must[[]sessions.Key](t)(s.Revive(t.Context(), nil))
	waiting := must[[]sessions.Key](t)(s.Waiting(t.Context(), "a", 10))
	c.lease = must[sessions.Lease](t)(s.Acquire(t.Context(), c.reader.Key, "a"))
	if v := must[sessions.View](t)(s.Begin(t.Context(), c.lease, 5)); len(waiting) != 1 || len(v.Pending) != 1 || v.Pending[0].Content != "late" {
		t.Errorf("waiting are %v, pending is %+v, want the late message", waiting, v.Pending)
	}
}
