package erasure_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// An erasure that waits for a reader's session has locked none of that session's replies, and no memory. A claim of a reply
// and a save of facts lock the session first, so that the other order would be a deadlock.
func TestErasureLocksReadersFirst(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	c.Exchange(storetest.ZhangID, "暗号是 "+storetest.Secret, "好") // 3 and 4
	id := flush(c, 4, storetest.SaidBy(c, "暗号是 "+storetest.Secret, storetest.ZhangID, 3)).Saved[0]
	day := "那天定的暗号是 " + storetest.Secret
	digest(t, pool, c, day, 0) // it goes before the fact, in the same transaction
	reader := &storetest.Chat{T: t, Store: s, Reader: memory.Reader{
		Key: sessions.NewKey(storetest.Robot, "cid", storetest.LiID), Robot: storetest.Robot, Conversation: "cid", Users: []sessions.UserID{storetest.LiID},
	}}
	asked := reader.Speak("l1", storetest.LiID, "李娜", "那天定了什么？", nil)
	storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), reader.Lease, sessions.Turn{
		Taken: []int64{asked.EventID}, TakenTokens: []int{5},
		Reply: &sessions.Reply{Text: "日报：" + day, Nonce: "n", Target: sessions.Target{RobotCode: storetest.Robot, ConversationID: "cid"}}, ReplyWaits: true,
	}))

	claim := storetest.Must[pgx.Tx](t)(pool.Begin(t.Context()))
	defer func() { _ = claim.Rollback(t.Context()) }()
	if _, err := claim.Exec(t.Context(), "SELECT FROM dingtalk_sessions WHERE session_key = $1 FOR SHARE", string(reader.Reader.Key)); err != nil {
		t.Fatal(err)
	}
	forget := c.Speak("z2", storetest.ZhangID, storetest.ZhangNick, fmt.Sprint("/forget #", id), nil)
	forgotten := make(chan error, 1)
	go func() {
		_, err := s.Erasure.ForgetMemory(t.Context(), id, memory.Asking{Lease: forget.Lease, Event: forget.EventID})
		forgotten <- err
	}()
	storetest.AwaitBlocked(t, pool)
	for what, row := range map[string]string{
		"an open reply of the reader": "SELECT FROM outbox WHERE session_key = $1 FOR UPDATE NOWAIT",
		"a memory":                    "SELECT FROM memories WHERE source_session <> $1 FOR UPDATE NOWAIT",
	} {
		tag, err := claim.Exec(t.Context(), row, string(reader.Reader.Key))
		if err != nil || tag.RowsAffected() == 0 {
			t.Fatalf("%s was locked before the session of the reader: %v, %v", what, tag, err)
		}
	}
	if err := claim.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-forgotten; err != nil {
		t.Fatal(err)
	}
	storetest.WantGone(t, pool, storetest.Secret)
}

// Erasures lock the sessions that read the forgotten facts together with their own, in the order of the keys. Each one here waits for
// the first of them, and must not hold a later one meanwhile: erasures at the same time would wait for each other.
func TestErasuresLockSessionsInOneOrder(t *testing.T) {
	t.Parallel()
	for name, erase := range map[string]func(s *sql.Store, c *storetest.Chat, fact int64) func() error{
		"person": func(s *sql.Store, c *storetest.Chat, _ int64) func() error {
			return func() error {
				_, err := s.Erasure.ForgetPerson(t.Context(), memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID})
				return err
			}
		},
		"person, asking": func(s *sql.Store, c *storetest.Chat, _ int64) func() error {
			ask := c.Speak("ask", storetest.ZhangID, storetest.ZhangNick, "/forget me", nil)
			return func() error {
				_, err := s.Erasure.ForgetPerson(t.Context(), memory.Forget{
					Robot: storetest.Robot, Person: storetest.ZhangID, Self: true, From: memory.Asking{Lease: ask.Lease, Event: ask.EventID},
				})
				return err
			}
		},
		"fact": func(s *sql.Store, c *storetest.Chat, fact int64) func() error {
			ask := c.Speak("ask", storetest.ZhangID, storetest.ZhangNick, fmt.Sprint("/forget #", fact), nil)
			return func() error {
				_, err := s.Erasure.ForgetMemory(t.Context(), fact, memory.Asking{Lease: ask.Lease, Event: ask.EventID})
				return err
			}
		},
		"session": func(s *sql.Store, c *storetest.Chat, _ int64) func() error {
			return func() error {
				_, err := s.Erasure.ForgetSession(t.Context(), c.Reader.Key)
				return err
			}
		},
		"events": func(s *sql.Store, c *storetest.Chat, _ int64) func() error {
			return func() error {
				_, err := s.Erasure.Erase(t.Context(), c.Reader.Key, []int64{3, 4})
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := storetest.Open(t, sqltest.URL(t))
			first := storetest.NewChat(t, s, "room0", "u", false)
			c := storetest.NewChat(t, s, "room1", "u", false)
			c.Exchange(storetest.ZhangID, "暗号是 "+storetest.Secret, "好") // 3 and 4
			fact := flush(c, 4, storetest.SaidBy(c, "暗号是 "+storetest.Secret, storetest.ZhangID, 3)).Saved[0]
			storetest.Execute(t, pool, "UPDATE memories SET scope = 'team', scope_id = $1", string(storetest.Robot)) // both read it

			run := erase(s, c, fact)
			turn := storetest.Must[pgx.Tx](t)(pool.Begin(t.Context()))
			defer func() { _ = turn.Rollback(t.Context()) }()
			const lock = "SELECT FROM dingtalk_sessions WHERE session_key = $1 FOR UPDATE NOWAIT"
			if _, err := turn.Exec(t.Context(), lock, string(first.Reader.Key)); err != nil {
				t.Fatal(err)
			}
			erased := make(chan error, 1)
			go func() { erased <- run() }()
			storetest.AwaitBlocked(t, pool)
			if tag, err := turn.Exec(t.Context(), lock, string(c.Reader.Key)); err != nil || tag.RowsAffected() != 1 {
				t.Errorf("a later session is locked by an erasure that waits for an earlier one: %v, %v", tag, err)
			}
			if err := turn.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-erased; err != nil {
				t.Fatal(err)
			}
		})
	}
}
