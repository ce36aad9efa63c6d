package facts_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// Debts come back the oldest first, when their rest is over: a minute that doubles with each failure, an hour at most;
// and never from under a living owner.
func TestDebtsDue(t *testing.T) {
	t.Parallel()
	s, db := storetest.Open(t, sqltest.URL(t))
	ctx := t.Context()
	due := func(owner sessions.ReplicaID) string {
		t.Helper()
		owed, err := s.Flushes.DebtsDue(ctx, owner, memory.FlushCandidate{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, d := range owed {
			out = append(out, fmt.Sprintf("%s %d %d %s", d.Key, d.Through, d.Failures, d.Reason))
		}
		return strings.Join(out, ", ")
	}
	older, newer := storetest.NewChat(t, s, "older", "u", false), storetest.NewChat(t, s, "newer", "u", false)
	for i, c := range []*storetest.Chat{older, newer} {
		if err := s.Flushes.Owe(ctx, c.Lease, memory.Debt{Through: 2, Failures: 1 + i, Reason: "busy", Usage: sessions.Usage{Prompt: 7}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := due("a"); got != "" {
		t.Errorf("due at once: %s", got)
	}
	age := func(seconds int) {
		t.Helper()
		if _, err := db.Exec(ctx, `UPDATE flush_debts SET updated_at = now() - interval '1 second' * $1::int`, seconds); err != nil {
			t.Fatal(err)
		}
	}
	first, second := fmt.Sprintf("%s 2 1 busy", older.Reader.Key), fmt.Sprintf("%s 2 2 busy", newer.Reader.Key)
	age(61)
	if got := due("a"); got != first {
		t.Errorf("after a minute: %q, want %q", got, first)
	}
	age(121)
	if got, want := due("a"), first+", "+second; got != want {
		t.Errorf("after two minutes: %q, want %q", got, want)
	}
	head, err := s.Flushes.DebtsDue(ctx, "a", memory.FlushCandidate{}, 1)
	if err != nil || len(head) != 1 || head[0].Key != older.Reader.Key || head[0].Conversation != "older" || head[0].SpentToday != 7 {
		t.Fatalf("the first: %+v, %v", head, err)
	}
	if rest, err := s.Flushes.DebtsDue(ctx, "a", head[0].FlushCandidate, 10); err != nil || len(rest) != 1 || rest[0].Key != newer.Reader.Key {
		t.Errorf("behind the first: %+v, %v", rest, err)
	}
	if _, err := s.Leases.Beat(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	if got := due("b"); got != "" {
		t.Errorf("due for another replica: %s", got)
	}
	if err := s.Leases.Release(ctx, older.Lease); err != nil {
		t.Fatal(err)
	}
	if got := due("b"); got != first {
		t.Errorf("of a free session, due for another replica: %q, want %q", got, first)
	}
	// A compaction forgives the session its failures, not the debt.
	if err := s.Flushes.Owe(ctx, newer.Lease, memory.Debt{Through: 2, Failures: 40, Reason: "busy"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Flushes.Owe(ctx, newer.Lease, memory.Debt{Through: 2, Failures: 1, Reason: "again"}); err != nil {
		t.Fatal(err)
	}
	if d, err := s.Flushes.Owed(ctx, newer.Reader.Key); err != nil || d.Failures != 40 || d.Reason != "again" || d.Through != 2 {
		t.Errorf("owed: %+v, %v", d, err)
	}
	age(3601)
	if got := due("a"); !strings.Contains(got, string(newer.Reader.Key)) {
		t.Errorf("after an hour: %q", got)
	}
	if _, err := s.Flushes.Owed(ctx, "nobody"); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("owed without a session: %v", err)
	}
}

// A session is idle after a while without messages and with an unflushed range. A session with a debt is not, nor one
// that slept for a week.
func TestIdle(t *testing.T) {
	t.Parallel()
	s, db := storetest.Open(t, sqltest.URL(t))
	ctx := t.Context()
	idle := func(owner sessions.ReplicaID) string {
		t.Helper()
		var keys []sessions.Key
		for after := (memory.FlushCandidate{}); ; { // one by one: each list goes on behind the last
			idle, err := s.Flushes.Idle(ctx, owner, 30*time.Minute, after, 1)
			if err != nil {
				t.Fatal(err)
			}
			if len(idle) == 0 {
				return fmt.Sprint(keys)
			}
			after = idle[0]
			keys = append(keys, after.Key)
		}
	}
	rests := func(key sessions.Key, rest string) {
		t.Helper()
		if _, err := db.Exec(ctx, `UPDATE dingtalk_sessions SET last_active_at = now() - $2::text::interval WHERE session_key = $1`, key, rest); err != nil {
			t.Fatal(err)
		}
	}
	var chats []*storetest.Chat
	for _, name := range []sessions.ConversationID{"talks", "rests", "rests for longer", "owes", "flushed", "sleeps", "chatters", "tells"} {
		chats = append(chats, storetest.NewChat(t, s, name, "u", false))
	}
	for i, n := range map[int]int{6: memory.IdleEvents/2 - 1, 7: memory.IdleEvents / 2} { // each with its answer, none marked
		for chats[i].Said < n {
			chats[i].Say("u", "the database is in Shanghai")
		}
	}
	unmarked := []string{string(chats[6].Reader.Key), string(chats[7].Reader.Key)}
	if _, err := db.Exec(ctx, `UPDATE dingtalk_sessions SET candidates = 1 WHERE session_key <> ALL($1)`, unmarked); err != nil {
		t.Fatal(err)
	}
	for i, rest := range []string{"29 minutes", "31 minutes", "2 hours", "2 hours", "2 hours", "8 days", "2 hours", "3 hours"} {
		rests(chats[i].Reader.Key, rest)
	}
	if err := s.Flushes.Owe(ctx, chats[3].Lease, memory.Debt{Through: 2, Failures: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Flushes.Flush(ctx, chats[4].Lease, memory.Flush{Through: 2, Last: true}); err != nil {
		t.Fatal(err)
	}
	if got, want := idle("a"), fmt.Sprint([]sessions.Key{chats[7].Reader.Key, chats[2].Reader.Key, chats[1].Reader.Key}); got != want {
		t.Errorf("idle: %s, want %s", got, want)
	}
	if _, err := s.Leases.Beat(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	if got := idle("b"); got != "[]" {
		t.Errorf("idle for another replica: %s", got)
	}
}

// A turn marks what looks worth remembering; a flush forgets the marks up to where it read.
func TestCandidates(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	ctx := t.Context()
	c := storetest.NewChat(t, s, "cid", "u", false)
	report := func(mark bool) {
		t.Helper()
		c.Said++
		a, err := s.Inbox.Accept(ctx, "a", c.Reader.Key, sessions.Message{ID: sessions.MessageID(fmt.Sprint("m", c.Said)), SenderID: "u", Text: "words"})
		if err != nil {
			t.Fatal(err)
		}
		turn := sessions.TurnResult{Taken: []int64{a.EventID}, TakenTokens: []int{1}}
		if mark {
			turn.Marked = turn.Taken
		}
		if _, err := s.Turns.Commit(ctx, c.Lease, turn); err != nil {
			t.Fatal(err)
		}
	}
	candidates := func(want int) {
		t.Helper()
		st, err := s.Sessions.Session(ctx, c.Reader.Key)
		if err != nil || st.Candidates != want {
			t.Errorf("%d candidates, %v, want %d", st.Candidates, err, want)
		}
		v, err := s.Turns.Begin(ctx, c.Lease, 0)
		if err != nil || v.Session.Candidates != want {
			t.Errorf("the view has %d candidates, %v, want %d", v.Session.Candidates, err, want)
		}
	}
	report(true)
	report(false)
	report(true)
	candidates(2)
	if _, err := s.Flushes.Flush(ctx, c.Lease, memory.Flush{Through: 4, Last: true}); err != nil {
		t.Fatal(err)
	}
	candidates(1)
	if _, err := s.Flushes.Flush(ctx, c.Lease, memory.Flush{From: 4, Through: 5, Last: true}); err != nil {
		t.Fatal(err)
	}
	candidates(0)
}

// The values of a fact are read by its number, former ones too, within the reader's rights. A private statement is
// never read in a group, though it was corrected there.
func TestValues(t *testing.T) {
	t.Parallel()
	s, db := storetest.Open(t, sqltest.URL(t))
	ctx := t.Context()
	group, other, private := storetest.NewChat(t, s, "group", "u", false), storetest.NewChat(t, s, "other", "v", false), storetest.NewChat(t, s, "private", "u", true)
	of := memory.GroupID(storetest.Robot, "group")
	fact := func(c *storetest.Chat, scope memory.Scope, id, source, content string) int64 {
		t.Helper()
		return c.Save(memory.Draft{Scope: scope, ScopeID: id, Kind: memory.KindFact, Content: content, SourceGroup: source, SaidBy: "u"}).Saved[0]
	}
	corrects := func(by, old int64) {
		t.Helper()
		if _, err := db.Exec(ctx, `UPDATE memories SET superseded_by = $1, superseded_at = now() WHERE id = $2`, by, old); err != nil {
			t.Fatal(err)
		}
	}
	first := fact(group, memory.ScopeGroup, of, of, "the launch is planned for 3 May")
	second := fact(group, memory.ScopeGroup, of, of, "the launch is planned for 9 June")
	corrects(second, first)
	mine := fact(private, memory.ScopeUser, "u", "", "I live in Hangzhou near the lake")
	here := fact(group, memory.ScopeUser, "u", of, "I live in Shanghai near the river")
	corrects(here, mine)
	for _, c := range []struct {
		name   string
		reader memory.Reader
		id     int64
		want   []int64
	}{
		{"the newer", group.Reader, second, []int64{first, second}},
		{"the older", group.Reader, first, []int64{first, second}},
		{"another group", other.Reader, second, nil},
		{"in private", private.Reader, here, []int64{mine, here}},
		{"in the group", group.Reader, here, []int64{here}},
		{"a private one in the group", group.Reader, mine, nil},
		{"of another group", other.Reader, here, nil},
		{"no such", group.Reader, 1 << 40, nil},
	} {
		if !c.reader.Private {
			c.reader.Users = nil
		}
		got, err := s.Facts.Values(ctx, c.reader, c.id)
		var ids []int64
		for _, m := range got {
			ids = append(ids, m.ID)
		}
		if err != nil || fmt.Sprint(ids) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, %v, want %v", c.name, ids, err, c.want)
		}
	}
}
