package facts_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/memory/show"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// spoke makes a group that said n things yesterday.
func spoke(t *testing.T, s *sql.Store, pool *pgxpool.Pool, conversation sessions.ConversationID, n int) *storetest.Chat {
	t.Helper()
	c := storetest.NewChat(t, s, conversation, "u1", false)
	for i := range n - 1 {
		c.Say("u2", fmt.Sprintf("point %d", i))
	}
	storetest.Execute(t, pool, "UPDATE dingtalk_session_events SET created_at = $1 WHERE session_key = $2", storetest.Yesterday().From.Add(9*time.Hour), c.Reader.Key)
	return c
}

func dueNow(t *testing.T, s *sql.Store, owner sessions.ReplicaID) []memory.DigestDue {
	t.Helper()
	due, err := s.Digests.DigestsDue(t.Context(), owner, []memory.Day{storetest.Yesterday()}, memory.DigestDue{})
	if err != nil {
		t.Fatal(err)
	}
	return due
}

func digestRows(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	return storetest.Collect(t, pool, `SELECT session_key || ' ' || attempts || ' ' || done || ' ' || (memory_id IS NOT NULL) || ' ' || error
		FROM memory_digests ORDER BY session_key`, pgx.RowTo[string])
}

func TestDigestIsReadUnderItsDay(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := spoke(t, s, pool, "busy", 6)
	for i := range 4 {
		spoke(t, s, pool, sessions.ConversationID(fmt.Sprint("a-quiet", i)), memory.DigestLeast-1)
	}
	due := dueNow(t, s, "a")
	if len(due) != 1 || due[0].Key != c.Reader.Key || due[0].FirstSeq != 1 || due[0].LastSeq != 12 {
		t.Fatalf("due are %+v, want the one group that said enough", due)
	}
	if rows := digestRows(t, pool); len(rows) != 4 || !strings.HasPrefix(rows[0], "robot/a-quiet0 0 true false") {
		t.Errorf("quiet days are not settled: %q", rows)
	}
	events, err := s.Digests.DigestEvents(t.Context(), due[0], 2, 100)
	if err != nil || len(events) != 10 || events[0].Content != "point 0" || events[0].Message == nil {
		t.Errorf("the day after event 2 is %+v (%v)", events, err)
	}
	id, err := s.Digests.StoreDigest(t.Context(), c.Lease, storetest.DigestOf(c, "# 2026-11-20\n- 决定周五发布\n- budget is 38"))
	if err != nil || id == 0 {
		t.Fatalf("storing gave %d, %v", id, err)
	}
	if due := dueNow(t, s, "a"); len(due) != 0 {
		t.Errorf("a summarized day is due again: %+v", due)
	}
	for who, want := range map[string]int{"busy": 1, "a-quiet0": 0} {
		r := memory.Reader{Key: sessions.NewKey(storetest.Robot, sessions.ConversationID(who), ""), Robot: storetest.Robot, Conversation: sessions.ConversationID(who)}
		if got, err := s.Digests.DigestsOf(t.Context(), r, storetest.Yesterday().From, storetest.Yesterday().To); err != nil || len(got) != want {
			t.Errorf("%s reads %+v (%v), want %d digests", who, got, err, want)
		}
		if want == 1 {
			text, err := show.Get(t.Context(), storetest.Library{Store: s.Facts, Digests: s.Digests}, r, "memory/group/"+storetest.Yesterday().Date+".md", 1, show.LogReader{Location: time.UTC})
			if err != nil || !strings.Contains(text, "决定周五发布") {
				t.Errorf("the day's path reads %q (%v)", text, err)
			}
		}
	}
	if pinned, err := s.Facts.Pinned(t.Context(), c.Reader, 10); err != nil || len(pinned) != 0 {
		t.Errorf("a view pins %+v (%v)", pinned, err)
	}
	if hits := c.Search("决定发布"); len(hits) == 0 || !strings.HasPrefix(hits[0].Path, "memory/group/"+storetest.Yesterday().Date) {
		t.Errorf("a search finds %+v", hits)
	} else if text, err := show.Get(t.Context(), storetest.Library{Store: s.Facts, Digests: s.Digests}, c.Reader, hits[0].Path, 1, show.LogReader{Location: time.UTC}); err != nil || !strings.Contains(text, "决定周五发布") {
		t.Errorf("the path of the find reads %q (%v)", text, err)
	}
	if one, err := s.Sessions.Session(t.Context(), c.Reader.Key); err != nil || one.SpentToday != 42 {
		t.Errorf("spent today are %d (%v), want 42", one.SpentToday, err)
	}
	if _, err := s.Erasure.Delete(t.Context(), c.Reader.Key); err != nil {
		t.Fatal(err)
	}
	if rows := digestRows(t, pool); len(rows) != 4 {
		t.Errorf("a deleted session leaves %q", rows)
	}
}

// Digests that are not due: those of another living replica, of sessions with waiting messages, of private chats, and
// those that failed just now or too often.
func TestDigestsNotDue(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := spoke(t, s, pool, "cid", 6)
	want := func(what string, n int) {
		t.Helper()
		if due := dueNow(t, s, "b"); len(due) != n {
			t.Errorf("%s: due are %+v, want %d", what, due, n)
		}
	}
	want("held by a living replica", 0)
	storetest.Execute(t, pool, "UPDATE replicas SET heartbeat_at = now() - interval '1 hour'")
	want("held by a dead one", 1)
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET lease_owner = NULL")
	want("held by none", 1)
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET lease_owner = 'a', conversation_type = '1'")
	want("private", 0)
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '2'")
	a, err := s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{
		RobotCode: storetest.Robot, ConversationID: "cid", ConversationType: sessions.Group, ID: "late", SenderID: "u1", Text: "waits",
	})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Execute(t, pool, "UPDATE dingtalk_session_events SET created_at = $1 WHERE msg_id = 'late'", storetest.Yesterday().From)
	want("one still waits", 0)
	storetest.Execute(t, pool, "DELETE FROM dingtalk_session_events WHERE id = $1", a.EventID)
	for i := range memory.DigestAttempts {
		want(fmt.Sprint("attempt ", i), 1)
		if due := dueNow(t, s, "b"); len(due) == 1 && due[0].Attempts != i {
			t.Errorf("%d attempts are said to have been made, want %d", due[0].Attempts, i)
		}
		for _, f := range []memory.DigestFailure{
			{Date: storetest.Yesterday().Date, Reason: "busy", Counts: true, Usage: sessions.Usage{Prompt: 5}}, {Date: storetest.Yesterday().Date, Reason: "capped"},
		} {
			if err := s.Digests.PutOffDigest(t.Context(), a.Lease, f); err != nil {
				t.Fatal(err)
			}
		}
		want("put off", 0)
		storetest.Execute(t, pool, "UPDATE memory_digests SET updated_at = updated_at - $1::interval", memory.DigestRest.String())
	}
	want("given up", 0)
	if rows := digestRows(t, pool); len(rows) != 1 || rows[0] != "robot/cid 3 false false capped" {
		t.Errorf("the row of a day that was given up is %q", rows)
	}
	if one, err := s.Sessions.Session(t.Context(), c.Reader.Key); err != nil || one.SpentToday != 15 {
		t.Errorf("spent today are %d (%v), want 15", one.SpentToday, err)
	}
	stale := a.Lease
	stale.Term--
	if err := s.Digests.PutOffDigest(t.Context(), stale, memory.DigestFailure{Date: storetest.Yesterday().Date}); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Errorf("a write of an old term: %v", err)
	}
}

// All days that were counted are listed at once, by their dates and then their groups, and a list goes on behind any of
// them.
func TestDigestsDueGoOn(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	before := storetest.Yesterday()
	before.From, before.To = before.From.AddDate(0, 0, -1), before.From
	before.Date = before.From.Format(time.DateOnly)
	var wanted []string
	for i := range 3 {
		c := spoke(t, s, pool, sessions.ConversationID(fmt.Sprint("cid", i)), 6)
		if i == 2 {
			storetest.Execute(t, pool, "UPDATE dingtalk_session_events SET created_at = $1 WHERE session_key = $2", before.From.Add(time.Hour), c.Reader.Key)
			wanted = slices.Insert(wanted, 0, before.Date+" "+string(c.Reader.Key))
			continue
		}
		wanted = append(wanted, storetest.Yesterday().Date+" "+string(c.Reader.Key))
	}
	list := func(after memory.DigestDue) (due []memory.DigestDue, names []string) {
		t.Helper()
		due, err := s.Digests.DigestsDue(t.Context(), "a", []memory.Day{before, storetest.Yesterday()}, after)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range due {
			names = append(names, d.Date+" "+string(d.Key))
		}
		return due, names
	}
	due, names := list(memory.DigestDue{})
	if !slices.Equal(names, wanted) {
		t.Fatalf("due are %q, want %q", names, wanted)
	}
	for i, d := range due {
		if _, names := list(d); !slices.Equal(names, wanted[i+1:]) {
			t.Errorf("behind %s: %q, want %q", wanted[i], names, wanted[i+1:])
		}
	}
}

// However many replicas summarize a day, one digest is stored: another replica with an older term, and the same one
// twice at once.
func TestOneDigestADay(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	s, pool := storetest.Open(t, url)
	other, _ := storetest.Open(t, url)
	for round := range 10 {
		c := spoke(t, s, pool, sessions.ConversationID(fmt.Sprint("cid", round)), 6)
		storetest.Execute(t, pool, "UPDATE replicas SET heartbeat_at = now() - interval '1 hour'")
		if _, err := other.Leases.Beat(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		lease, err := other.Leases.Acquire(t.Context(), c.Reader.Key, "b")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for i, store := range []*sql.Store{s, other, other, s} {
			l := lease
			if i == 0 {
				l = c.Lease // the lease before the takeover
			}
			wg.Go(func() {
				_, errs[i] = store.Digests.StoreDigest(t.Context(), l, storetest.DigestOf(c, fmt.Sprint("written by ", i)))
			})
		}
		wg.Wait()
		stored := 0
		for i, err := range errs {
			switch {
			case err == nil && i > 0:
				stored++
			case !errors.Is(err, sessions.ErrConflict) && !errors.Is(err, sessions.ErrLeaseLost):
				t.Errorf("writer %d: %v", i, err)
			}
		}
		rows := storetest.Collect(t, pool, "SELECT id FROM memories WHERE kind = 'digest' AND scope_id = $1", pgx.RowTo[int64], string(c.Reader.Key))
		if stored != 1 || len(rows) != 1 {
			t.Errorf("%d writers stored a digest, and there are %d", stored, len(rows))
		}
	}
}
