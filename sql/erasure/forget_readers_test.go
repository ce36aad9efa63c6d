package erasure_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A running turn or compaction that has read the fact writes nothing. This holds in the private chats of its person,
// and in the other sessions of the group. Conversations that can't read it go on.
func TestForgettingAFactEndsItsReaders(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	readers := map[string]*storetest.Chat{"private chat": storetest.NewChat(t, s, "dm", "u", true), "session of another member": {T: t, Store: s, Reader: memory.Reader{
		Key: sessions.NewKey(storetest.Robot, "cid", "v"), Robot: storetest.Robot, Conversation: "cid", Users: []sessions.UserID{"v"},
	}}}
	others := map[string]*storetest.Chat{"another group": storetest.NewChat(t, s, "elsewhere", "u", false), "another's private chat": storetest.NewChat(t, s, "dm2", "v", true)}
	d := storetest.FactAbout("u", "u keeps 3 turtles")
	d.SourceGroup = memory.GroupID(storetest.Robot, "cid")
	id := c.Save(d).Saved[0]
	leases := map[*storetest.Chat]sessions.Lease{}
	for _, list := range []map[string]*storetest.Chat{readers, others} {
		for _, r := range list {
			r.Say(r.Reader.Users[0], "wait")
			leases[r] = r.Lease
		}
	}
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1' WHERE conversation_id LIKE 'dm%'")
	if _, err := s.Erasure.ForgetMemory(t.Context(), id, memory.Asking{}); err != nil {
		t.Fatal(err)
	}
	pinned := &sessions.Pinned{Text: "- u keeps 3 turtles"}
	for name, r := range readers {
		if _, err := s.Turns.Commit(t.Context(), leases[r], sessions.TurnResult{Pinned: pinned}); !errors.Is(err, sessions.ErrLeaseLost) {
			t.Errorf("a turn under way in the %s ended with %v", name, err)
		}
		if _, err := s.Compactions.Compact(t.Context(), leases[r], sessions.Compaction{Pinned: pinned}); !errors.Is(err, sessions.ErrLeaseLost) {
			t.Errorf("a compaction under way in the %s ended with %v", name, err)
		}
	}
	for name, r := range others {
		if _, err := s.Turns.Begin(t.Context(), leases[r], 0); err != nil {
			t.Errorf("in %s a turn ended with %v", name, err)
		}
	}
	storetest.WantGone(t, pool, "turtles")
}

// One forgotten fact of the team wakes the sessions in which a message waits, and no other, however many have a lease. The
// messages that arrive meanwhile are accepted in time.
func TestForgettingATeamFactWakesFew(t *testing.T) {
	t.Parallel()
	const leased, waiting, ackTime = 20000, 3, 2500 * time.Millisecond
	url := sqltest.URL(t)
	s, pool := storetest.Open(t, url)
	c := storetest.NewChat(t, s, "cid", "u", false)
	id := storetest.Must[memory.Memory](t)(s.Rights.Promote(t.Context(), c.Save(storetest.SaidBy(c, "保险柜放在三楼档案室里", "u", 1)).Saved[0], "admin")).ID
	storetest.Execute(t, pool, `INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, lease_owner)
		SELECT $1::text || '/g' || i, $1::text, 'g' || i, '2', 'a' FROM generate_series(1, $2::int) i`, string(storetest.Robot), leased)
	for i := range waiting {
		storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), "a", sessions.NewKey(storetest.Robot, sessions.ConversationID(fmt.Sprintf("g%d", i+1)), ""), sessions.Message{
			RobotCode: storetest.Robot, ConversationID: sessions.ConversationID(fmt.Sprintf("g%d", i+1)), ConversationType: sessions.Group, ID: "m", SenderID: "v", Text: "hello",
		}))
	}
	conn := storetest.Must[*pgx.Conn](t)(pgx.Connect(t.Context(), url))
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	if _, err := conn.Exec(t.Context(), "LISTEN ebb"); err != nil {
		t.Fatal(err)
	}

	// The plain write of the same rows is the yardstick of a loaded machine: a message waits for the erasure's writes.
	terms := storetest.Number(t, pool, "SELECT sum(lease_term) FROM dingtalk_sessions WHERE conversation_id LIKE 'g%'")
	plain := time.Now()
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET view_version = view_version + 1 WHERE conversation_id LIKE 'g%'")
	limit := max(ackTime, 20*time.Since(plain))

	// Messages go on arriving meanwhile, at a steady rate.
	arriving, stop := context.WithCancel(t.Context())
	slowest := make(chan time.Duration, 1)
	go func() {
		var most time.Duration
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for i := 0; arriving.Err() == nil; i++ {
			began := time.Now()
			_, err := s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{
				RobotCode: storetest.Robot, ConversationID: "cid", ConversationType: sessions.Group, ID: sessions.MessageID(fmt.Sprint("late", i)), SenderID: "v", Text: "hi",
			})
			if err != nil {
				t.Errorf("a message was not accepted: %v", err)
			}
			most = max(most, time.Since(began))
			<-tick.C
		}
		slowest <- most
	}()
	began := time.Now()
	if _, err := s.Erasure.ForgetMemory(t.Context(), id, memory.Asking{}); err != nil {
		t.Error(err)
	}
	took := time.Since(began)
	stop()
	most := <-slowest
	t.Logf("forgetting took %s; of the messages that arrived meanwhile the slowest took %s to accept, with a limit of %s", took, most, limit)
	if most > limit {
		t.Errorf("a message was accepted after %s, too late for its acknowledgement", most)
	}
	if n := storetest.Number(t, pool, "SELECT sum(lease_term) FROM dingtalk_sessions WHERE lease_owner = 'a' AND conversation_id LIKE 'g%'"); n != terms+leased {
		t.Errorf("the terms of %d sessions that may have read the fact add up to %d, want each to be ended once, from %d on", leased, n, terms)
	}
	storetest.Execute(t, pool, "SELECT pg_notify('ebb', 'last')")
	var woken []string
	for {
		n := storetest.Must[*pgconn.Notification](t)(conn.WaitForNotification(t.Context()))
		if n.Payload == "last" {
			break
		}
		if n.Payload != "|"+string(c.Reader.Key) { // in the session where it was said messages wait, too
			woken = append(woken, n.Payload)
		}
	}
	slices.Sort(woken)
	if len(woken) != waiting {
		t.Errorf("%d sessions were woken, want the %d in which a message waits: %.200q", len(woken), waiting, woken)
	}
}

// A session without a lease at the time of an erasure's look may take its lease before the erasure commits. It still reads
// the fact, but pins it neither by a turn nor by a compaction, whichever of the two transactions deletes or pins first.
func TestLateReadersPinNothingForgotten(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]string{
		"before the deletion": "SELECT id FROM memories FOR KEY SHARE",
		"after the deletion":  "SELECT session_key FROM dingtalk_sessions WHERE conversation_id = 'shows' FOR UPDATE",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := storetest.Open(t, sqltest.URL(t))
			c := storetest.NewChat(t, s, "cid", "u", false)
			id := storetest.Must[memory.Memory](t)(s.Rights.Promote(t.Context(), c.Save(storetest.SaidBy(c, "保险柜放在三楼档案室里", "u", 1)).Saved[0], "admin")).ID
			shows, turn, compact := storetest.NewChat(t, s, "shows", "v", false), storetest.NewChat(t, s, "turn", "v", false), storetest.NewChat(t, s, "compact", "v", false)
			read := &sessions.Pinned{Text: "- 保险柜放在三楼档案室里\n", Rows: []int64{id}}
			storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), shows.Lease, sessions.TurnResult{Pinned: read}))
			storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET lease_owner = NULL")

			tx := storetest.Must[pgx.Tx](t)(pool.Begin(t.Context()))
			if _, err := tx.Exec(t.Context(), hold); err != nil {
				t.Fatal(err)
			}
			forgotten := make(chan error, 1)
			go func() {
				_, err := s.Erasure.ForgetMemory(t.Context(), id, memory.Asking{})
				forgotten <- err
			}()
			storetest.AwaitBlocked(t, pool)
			pins := map[*storetest.Chat]func(sessions.Lease) error{
				turn: func(l sessions.Lease) error {
					_, err := s.Turns.Commit(t.Context(), l, sessions.TurnResult{Pinned: read})
					return err
				},
				compact: func(l sessions.Lease) error {
					v := storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), l, 0))
					_, err := s.Compactions.Compact(t.Context(), l, sessions.Compaction{From: v.Session.CompactedSeq, Through: v.Session.CompactedSeq, Pinned: read})
					return err
				},
			}
			for r, pin := range pins {
				l := storetest.Must[sessions.Lease](t)(s.Leases.Acquire(t.Context(), r.Reader.Key, "late"))
				if !slices.Contains(r.Known(), "保险柜放在三楼档案室里") {
					t.Error("the fact is not read before the erasure commits")
				}
				if err := pin(l); err != nil && !errors.Is(err, sessions.ErrLeaseLost) {
					t.Error(err)
				}
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-forgotten; err != nil {
				t.Fatal(err)
			}
			storetest.WantGone(t, pool, "保险柜")
			for r, pin := range pins { // one that read before the erasure and writes after it
				if err := pin(storetest.Must[sessions.Lease](t)(s.Leases.Acquire(t.Context(), r.Reader.Key, "late"))); !errors.Is(err, sessions.ErrLeaseLost) {
					t.Errorf("a forgotten fact was pinned: %v", err)
				}
			}
			storetest.WantGone(t, pool, "保险柜")
		})
	}
}

// A turn that read a memory, however often, commits while the memory is there, and not after its deletion.
func TestLateReadersRepeatNothingForgotten(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	ids := c.Save(storetest.SaidBy(c, "保险柜放在三楼档案室里", "u", 1)).Saved
	read := sessions.TurnResult{Pinned: &sessions.Pinned{Text: "- 保险柜放在三楼档案室里\n", Rows: ids}, Read: []int64{ids[0], ids[0]}}
	storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), c.Lease, read))
	storetest.Execute(t, pool, "DELETE FROM memories")
	read.Pinned = nil
	if _, err := s.Turns.Commit(t.Context(), c.Lease, read); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Errorf("a turn that read a forgotten fact ended with %v", err)
	}
	storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{}))
}
