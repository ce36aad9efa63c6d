package erasure_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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
	storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), reader.Lease, sessions.TurnResult{
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

			wantOneOrder(t, pool, first.Reader.Key, c.Reader.Key, erase(s, c, fact))
		})
	}
}

// wantOneOrder runs an erasure that waits for the first of two sessions, and must not hold the later one meanwhile.
func wantOneOrder(t *testing.T, pool *pgxpool.Pool, first, later sessions.Key, erase func() error) {
	t.Helper()
	turn := storetest.Must[pgx.Tx](t)(pool.Begin(t.Context()))
	defer func() { _ = turn.Rollback(t.Context()) }()
	const lock = "SELECT FROM dingtalk_sessions WHERE session_key = $1 FOR UPDATE NOWAIT"
	if _, err := turn.Exec(t.Context(), lock, string(first)); err != nil {
		t.Fatal(err)
	}
	erased := make(chan error, 1)
	go func() { erased <- erase() }()
	storetest.AwaitBlocked(t, pool)
	if tag, err := turn.Exec(t.Context(), lock, string(later)); err != nil || tag.RowsAffected() != 1 {
		t.Errorf("a later session is locked by an erasure that waits for an earlier one: %v, %v", tag, err)
	}
	if err := turn.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-erased; err != nil {
		t.Fatal(err)
	}
}

// member opens a member's session of a group, in which the member says something.
func member(t *testing.T, s *sql.Store, who sessions.UserID) *storetest.Chat {
	t.Helper()
	c := &storetest.Chat{T: t, Store: s, Reader: memory.Reader{
		Key: sessions.NewKey(storetest.Robot, "room1", who), Robot: storetest.Robot, Conversation: "room1", Users: []sessions.UserID{who},
	}}
	c.Exchange(who, "我住在一楼", "好") // 1 and 2
	return c
}

// An erasure deletes more than the person's own facts: all of their private chat, and digests of the erased messages. Facts about a
// person are read in other sessions of their group, too.
func TestErasuresLockAllReadersInOneOrder(t *testing.T) {
	t.Parallel()
	forgetZhang := func(t *testing.T, s *sql.Store) func() error {
		return func() error {
			_, err := s.Erasure.ForgetPerson(t.Context(), memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID})
			return err
		}
	}
	t.Run("private chat", func(t *testing.T) {
		t.Parallel()
		s, pool := storetest.Open(t, sqltest.URL(t))
		first := storetest.NewChat(t, s, "room0", "u", false)
		c := &storetest.Chat{T: t, Store: s, Reader: memory.Reader{
			Key: sessions.NewKey(storetest.Robot, "room1", ""), Robot: storetest.Robot, Conversation: "room1", Private: true,
		}}
		c.Exchange(storetest.ZhangID, "李娜负责网关", "好") // 1 and 2
		d := storetest.OfPerson(storetest.LiID, "李娜负责网关")
		d.StartSeq, d.EndSeq = 1, 1
		flush(c, 2, d)
		storetest.Execute(t, pool, "UPDATE memories SET scope = 'team', scope_id = $1", string(storetest.Robot)) // both read it
		wantOneOrder(t, pool, first.Reader.Key, c.Reader.Key, forgetZhang(t, s))
	})
	t.Run("group of the source", func(t *testing.T) {
		t.Parallel()
		s, pool := storetest.Open(t, sqltest.URL(t))
		first, c := member(t, s, storetest.LiID), member(t, s, storetest.ZhangID)
		d := storetest.InGroup(c, storetest.FactAbout(storetest.ZhangID, "我住在一楼"))
		d.StartSeq, d.EndSeq = 1, 1
		flush(c, 2, d)
		wantOneOrder(t, pool, first.Reader.Key, c.Reader.Key, forgetZhang(t, s))
	})
	for name, erase := range map[string]func(t *testing.T, s *sql.Store, c *storetest.Chat) func() error{
		"person": func(t *testing.T, s *sql.Store, _ *storetest.Chat) func() error { return forgetZhang(t, s) },
		"fact": func(t *testing.T, s *sql.Store, c *storetest.Chat) func() error {
			d := storetest.SaidBy(c, "暗号是 "+storetest.Secret, storetest.ZhangID, 3)
			d.Scope, d.ScopeID = memory.ScopeSession, string(c.Reader.Key) // no other session reads it
			fact := flush(c, 4, d).Saved[0]
			return func() error {
				_, err := s.Erasure.ForgetMemory(t.Context(), fact, memory.Asking{})
				return err
			}
		},
		"message": func(t *testing.T, s *sql.Store, c *storetest.Chat) func() error {
			ask := c.Speak("ask", storetest.ZhangID, storetest.ZhangNick, "/forget last", nil)
			said := storetest.Must[[]sessions.Event](t)(s.Erasure.MessagesBefore(t.Context(), c.Reader.Key, storetest.ZhangID, ask.EventID, 1))[0]
			return func() error {
				_, err := s.Erasure.ForgetMessage(t.Context(), said.ID, memory.Asking{Lease: ask.Lease, Event: ask.EventID})
				return err
			}
		},
	} {
		t.Run("digest, "+name, func(t *testing.T) {
			t.Parallel()
			s, pool := storetest.Open(t, sqltest.URL(t))
			c := storetest.NewChat(t, s, "room1", "u", false)
			c.Exchange(storetest.ZhangID, "暗号是 "+storetest.Secret, "好") // 3 and 4
			digest(t, pool, c, "那天定了暗号", 0)
			first, leased := member(t, s, "a"), member(t, s, "b") // they read the digest
			said := first.Speak("open", "a", "a", "在吗", nil)
			storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), first.Lease, sessions.TurnResult{
				Taken: []int64{said.EventID}, TakenTokens: []int{5},
				Reply: &sessions.Reply{Text: "在", Nonce: "n", Target: sessions.Target{RobotCode: storetest.Robot, ConversationID: "room1"}}, ReplyWaits: true,
			}))
			run := erase(t, s, c)
			storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET lease_owner = NULL WHERE session_key = $1", string(first.Reader.Key))
			wantOneOrder(t, pool, first.Reader.Key, leased.Reader.Key, run)
		})
	}
}
