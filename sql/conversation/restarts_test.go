package conversation_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// opened begins the accounts of processes that started a minute ago and whose hearts beat.
func opened(t *testing.T, s *sql.Store, db *pgxpool.Pool, owners ...sessions.ReplicaID) {
	t.Helper()
	for _, o := range owners {
		if err := s.Restarts.OpenRestart(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Leases.Beat(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Execute(t, db, "UPDATE restarts SET started_at = now() - interval '1 minute'")
}

// die makes a replica's last heartbeat half a minute old.
func die(t *testing.T, db *pgxpool.Pool, owner string) {
	t.Helper()
	storetest.Execute(t, db, "UPDATE replicas SET heartbeat_at = now() - interval '30 seconds' WHERE id = $1", owner)
}

func keepAccount(t *testing.T, s *sql.Store, owner sessions.ReplicaID, ending sessions.Ending, f sessions.RestartFigures) {
	t.Helper()
	if err := s.Restarts.KeepRestart(t.Context(), owner, ending, f); err != nil {
		t.Fatal(err)
	}
}

func ended(ctx context.Context, t *testing.T, s *sql.Store) []string {
	t.Helper()
	list, err := s.Restarts.EndedRestarts(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range list {
		out = append(out, fmt.Sprint(r.Replica, " ", r.Ending, " ", r.Figures.Answered))
	}
	return out
}

// An account keeps its last write, and the end of each process is reported once, to any caller.
func TestRestartIsReportedOnce(t *testing.T) {
	t.Parallel()
	s, db := storetest.Open(t, sqltest.URL(t))
	opened(t, s, db, "lives", "killed", "stopped")
	f := sessions.RestartFigures{Answered: 7, Drained: 1, Flushed: 2, Debt: 3, Resumed: 4, Redelivered: 5, Doubled: 6}
	keepAccount(t, s, "killed", sessions.Running, f)
	keepAccount(t, s, "stopped", sessions.Clean, sessions.RestartFigures{Answered: 9})
	if _, err := s.Leases.Resign(t.Context(), "stopped"); err != nil {
		t.Fatal(err)
	}
	die(t, db, "killed")

	var mu sync.Mutex
	var all []string
	var askers sync.WaitGroup
	for range 4 {
		askers.Go(func() {
			for range 3 {
				reported := ended(t.Context(), t, s)
				mu.Lock()
				all = append(all, reported...)
				mu.Unlock()
			}
		})
	}
	askers.Wait()
	slices.Sort(all)
	if want := []string{"killed killed 7", "stopped clean 9"}; !slices.Equal(all, want) {
		t.Errorf("reported were %q, want %q", all, want)
	}
	list, err := restartsOf(t, s)
	if err != nil || len(list) != 3 {
		t.Fatalf("%d accounts, %v", len(list), err)
	}
	for _, r := range list {
		if r.Replica == "killed" && (r.Figures != f || r.StoppedAt.IsZero() || r.StoppedAt.After(time.Now().Add(-20*time.Second))) {
			t.Errorf("the killed one's account is %+v, want the figures that it wrote and its last heartbeat", r)
		}
		if r.Replica == "lives" && (r.Ending != sessions.Running || !r.StoppedAt.IsZero()) {
			t.Errorf("the living one's account is %+v", r)
		}
	}
}

// A process that was taken for dead and wakes up is running again; its later end is reported again.
func TestRestartOfAFrozenProcess(t *testing.T) {
	t.Parallel()
	s, db := storetest.Open(t, sqltest.URL(t))
	opened(t, s, db, "frozen")
	die(t, db, "frozen")
	if got := ended(t.Context(), t, s); !slices.Equal(got, []string{"frozen killed 0"}) {
		t.Fatalf("reported were %q", got)
	}
	if _, err := s.Leases.Beat(t.Context(), "frozen"); err != nil {
		t.Fatal(err)
	}
	keepAccount(t, s, "frozen", sessions.Running, sessions.RestartFigures{Answered: 1})
	if list, err := restartsOf(t, s); err != nil || len(list) != 1 || list[0].Ending != sessions.Running || !list[0].StoppedAt.IsZero() {
		t.Errorf("awake it is %+v, %v", list, err)
	}
	if got := ended(t.Context(), t, s); len(got) != 0 {
		t.Errorf("reported while it runs: %q", got)
	}
	keepAccount(t, s, "frozen", sessions.Clean, sessions.RestartFigures{Answered: 2})
	if got := ended(t.Context(), t, s); !slices.Equal(got, []string{"frozen clean 2"}) {
		t.Errorf("reported at its end: %q", got)
	}
}

// One that has just begun has no heart yet, and is not dead for that. Opening twice changes nothing.
func TestRestartBegins(t *testing.T) {
	t.Parallel()
	s, db := storetest.Open(t, sqltest.URL(t))
	for range 2 {
		if err := s.Restarts.OpenRestart(t.Context(), "new"); err != nil {
			t.Fatal(err)
		}
		keepAccount(t, s, "new", sessions.Running, sessions.RestartFigures{Answered: 3})
	}
	if got := ended(t.Context(), t, s); len(got) != 0 {
		t.Errorf("reported at its begin: %q", got)
	}
	if list, err := restartsOf(t, s); err != nil || len(list) != 1 || list[0].Figures.Answered != 3 {
		t.Errorf("its account is %+v, %v", list, err)
	}
	storetest.Execute(t, db, "UPDATE restarts SET started_at = now() - interval '91 days'")
	if err := s.Restarts.OpenRestart(t.Context(), "next"); err != nil {
		t.Fatal(err)
	}
	if list, err := restartsOf(t, s); err != nil || len(list) != 1 || list[0].Replica != "next" {
		t.Errorf("after a quarter of a year: %+v, %v", list, err)
	}
}

// A lost message is a stored one that is missing: a row that vanished, and not the log of a deleted session, nor of one
// that was created again since.
func TestGone(t *testing.T) {
	t.Parallel()
	s, db := storetest.Open(t, sqltest.URL(t))
	var stored []sessions.Stored
	chats := map[string]*storetest.Chat{}
	for _, name := range []string{"whole", "holed", "deleted", "again"} {
		c := storetest.NewChat(t, s, sessions.ConversationID(name), "u", false)
		chats[name] = c
		storetest.Execute(t, db, "UPDATE dingtalk_sessions SET created_at = now() - interval '1 minute' WHERE session_key = $1", c.Reader.Key)
		var id int64
		if err := db.QueryRow(t.Context(), "SELECT id FROM dingtalk_session_events WHERE session_key = $1 AND role = 'user'", c.Reader.Key).Scan(&id); err != nil {
			t.Fatal(err)
		}
		stored = append(stored, sessions.Stored{Key: c.Reader.Key, EventID: id, Age: 30 * time.Second})
	}
	gone := func() int64 {
		t.Helper()
		n, err := s.Restarts.Gone(t.Context(), stored)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := gone(); n != 0 {
		t.Errorf("%d are gone, and all are there", n)
	}
	for _, name := range []string{"deleted", "again"} {
		if _, err := s.Erasure.Delete(t.Context(), chats[name].Reader.Key); err != nil {
			t.Fatal(err)
		}
	}
	chats["again"].Say("u", "hello again")
	if n := gone(); n != 0 {
		t.Errorf("%d are lost, and a member deleted them", n)
	}
	storetest.Execute(t, db, "DELETE FROM dingtalk_session_events WHERE session_key = $1", chats["holed"].Reader.Key)
	if n := gone(); n != 1 {
		t.Errorf("%d are gone, want the one that vanished", n)
	}
	if n, err := s.Restarts.Gone(t.Context(), nil); n != 0 || err != nil {
		t.Errorf("of none %d are gone, %v", n, err)
	}
}

// A range that a replica leaves unflushed is owed, without a counted failure and due at once; a debt that rests goes on
// resting. A recent range without a living owner is listed and owed too, an old one or one with a waiting message not.
func TestOweRest(t *testing.T) {
	t.Parallel()
	s, db := storetest.Open(t, sqltest.URL(t))
	owes, failed, flushed, other := storetest.NewChat(t, s, "owes", "u", false), storetest.NewChat(t, s, "failed", "u", false), storetest.NewChat(t, s, "flushed", "u", false),
		storetest.NewChat(t, s, "other", "u", false)
	left, old, waits := storetest.NewChat(t, s, "left", "u", false), storetest.NewChat(t, s, "old", "u", false), storetest.NewChat(t, s, "waits", "u", false)
	storetest.Execute(t, db, "UPDATE dingtalk_sessions SET flushed_seq = last_seq WHERE session_key = $1", flushed.Reader.Key)
	storetest.Execute(t, db, "UPDATE dingtalk_sessions SET lease_owner = 'b' WHERE session_key = $1", other.Reader.Key)
	if _, err := s.Leases.Beat(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), "a", waits.Reader.Key, sessions.Message{RobotCode: storetest.Robot, ConversationID: "waits", ConversationType: sessions.Group, ID: "m", SenderID: "u", Text: "hello"}))
	storetest.Execute(t, db, "UPDATE dingtalk_sessions SET lease_owner = NULL WHERE session_key = ANY($1)", []string{string(left.Reader.Key), string(old.Reader.Key), string(waits.Reader.Key)})
	storetest.Execute(t, db, "UPDATE dingtalk_sessions SET last_active_at = now() - interval '1 hour' WHERE session_key = $1", old.Reader.Key)
	storetest.Execute(t, db, `INSERT INTO flush_debts (session_key, from_seq, through_seq, failures, reason) VALUES ($1, 0, 1, 2, 'busy')`, failed.Reader.Key)
	if n, err := s.Flushes.OweUnflushed(t.Context(), "a", other.Reader.Key); n != 0 || err != nil {
		t.Errorf("%d sessions owe, %v; another replica has it", n, err)
	}
	if n, err := s.Flushes.OweUnflushed(t.Context(), "a", owes.Reader.Key); n != 1 || err != nil {
		t.Errorf("%d sessions owe, %v; want the one", n, err)
	}
	listed := storetest.Must[[]memory.UnflushedSession](t)(s.Flushes.Unflushed(t.Context(), "a"))
	if len(listed) != 3 || !slices.ContainsFunc(listed, func(u memory.UnflushedSession) bool { return u.Key == left.Reader.Key }) {
		t.Errorf("unflushed are %+v, want two leased sessions and the recent one without an owner", listed)
	}
	if n, err := s.Flushes.OweUnflushed(t.Context(), "a", ""); n != 3 || err != nil {
		t.Fatalf("%d sessions owe, %v; want 3", n, err)
	}
	storetest.Execute(t, db, "DELETE FROM flush_debts WHERE session_key = $1", left.Reader.Key)
	rows, err := s.Flushes.DebtsDue(t.Context(), "a", memory.FlushCandidate{}, 10)
	if err != nil || len(rows) != 1 || rows[0].Key != owes.Reader.Key || rows[0].Through != 2 || rows[0].Failures != 0 {
		t.Errorf("due are %+v, %v; want what was cut off alone", rows, err)
	}
	d, err := s.Flushes.Owed(t.Context(), failed.Reader.Key)
	if err != nil || d.Through != 2 || d.Failures != 2 || d.Reason != "busy" {
		t.Errorf("the debt that rests is %+v, %v", d, err)
	}
}

// restartsOf reads the accounts as the console does.
func restartsOf(t *testing.T, s *sql.Store) ([]sessions.Restart, error) {
	t.Helper()
	list, _, err := s.Pages().Restarts(t.Context(), pages.Page{Limit: 10})
	return list, err
}
