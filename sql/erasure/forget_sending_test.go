package erasure_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/pg"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// sendingWord is in a message of a member, in a fact and in a reply that is being sent.
const sendingWord = "hunter7742x"

// erasing is a kind of erasure of sendingWord in a chat, whose fact has an id. asked is a command of the member.
type erasing struct {
	name string
	do   func(ctx context.Context, s *sql.Store, c *storetest.Chat, fact int64, asked sessions.Accepted) error
}

// erasings are all kinds of erasure.
func erasings(message int64) []erasing {
	asking := func(a sessions.Accepted) memory.Asking {
		return memory.Asking{Lease: a.Lease, Event: a.EventID, Language: "zh"}
	}
	person := memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID}
	return []erasing{
		{"the last message", func(ctx context.Context, s *sql.Store, _ *storetest.Chat, _ int64, a sessions.Accepted) error {
			_, err := s.Erasure.ForgetMessage(ctx, message, asking(a))
			return err
		}},
		{"the member who asks", func(ctx context.Context, s *sql.Store, _ *storetest.Chat, _ int64, a sessions.Accepted) error {
			f := person
			f.Self, f.From = true, asking(a)
			_, err := s.Erasure.ForgetPerson(ctx, f)
			return err
		}},
		{"a person", func(ctx context.Context, s *sql.Store, _ *storetest.Chat, _ int64, _ sessions.Accepted) error {
			_, err := s.Erasure.ForgetPerson(ctx, person)
			return err
		}},
		{"a fact, by a member", func(ctx context.Context, s *sql.Store, _ *storetest.Chat, fact int64, a sessions.Accepted) error {
			_, err := s.Erasure.ForgetMemory(ctx, fact, asking(a))
			return err
		}},
		{"a fact", func(ctx context.Context, s *sql.Store, _ *storetest.Chat, fact int64, _ sessions.Accepted) error {
			_, err := s.Erasure.ForgetMemory(ctx, fact, memory.Asking{})
			return err
		}},
		{"the facts of a session", func(ctx context.Context, s *sql.Store, c *storetest.Chat, _ int64, _ sessions.Accepted) error {
			_, err := s.Erasure.ForgetSession(ctx, c.Reader.Key)
			return err
		}},
		{"events", func(ctx context.Context, s *sql.Store, c *storetest.Chat, _ int64, _ sessions.Accepted) error {
			_, err := s.Erasure.Erase(ctx, c.Reader.Key, []int64{3, 4})
			return err
		}},
		{"a session", func(ctx context.Context, s *sql.Store, c *storetest.Chat, _ int64, _ sessions.Accepted) error {
			_, err := s.Erasure.Delete(ctx, c.Reader.Key)
			return err
		}},
	}
}

// sendingChat is a chat with a reply that is being sent, in a turn that may ask for an erasure. The sender lives, and its
// try is fresh, for the whole test.
func sendingChat(t *testing.T) (*sql.Store, *pgxpool.Pool, *storetest.Chat, sessions.Outgoing, sessions.Accepted, int64) {
	t.Helper()
	s, pool, c := storetest.OpenChat(t)
	const fact = "入口的口令是 " + sendingWord
	c.Exchange(storetest.ZhangID, fact, "好") // 3 and 4
	id := flush(c, 4, storetest.SaidBy(c, fact, storetest.ZhangID, 3)).Saved[0]
	reply := sending(t, s, c, "已记住：“"+fact+"”。")
	storetest.Execute(t, pool, "UPDATE replicas SET heartbeat_at = now() + interval '1 hour'")
	storetest.Execute(t, pool, "UPDATE outbox SET next_at = now() + interval '1 hour' WHERE in_flight")
	asked := c.Speak("command", storetest.ZhangID, storetest.ZhangNick, "/forget", nil)
	storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), asked.Lease, 1))
	return s, pool, c, reply, asked, id
}

// sending commits a reply, whose first try begins.
func sending(t *testing.T, s *sql.Store, c *storetest.Chat, text string) sessions.Outgoing {
	t.Helper()
	a := c.Speak(fmt.Sprint("asks", c.Said), storetest.LiID, "李娜", "记住了吗", nil)
	done := storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), a.Lease, sessions.TurnResult{
		Taken: []int64{a.EventID}, TakenTokens: []int{5}, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: text, Tokens: 9}},
		Reply: &sessions.Reply{Text: text, Nonce: "ebb-sending", Target: sessions.Target{RobotCode: storetest.Robot, ConversationID: c.Reader.Conversation}},
	}))
	return done.Replies[0]
}

// P93: a reply that is being sent has its text from before the erasure. Each kind of erasure ends after the outcome of the
// try, so that no erased word arrives after the receipt. Neither waits for the other.
func TestErasuresAwaitRepliesThatAreSent(t *testing.T) {
	t.Parallel()
	for i, e := range erasings(0) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			s, pool, c, reply, asked, fact := sendingChat(t)
			e := erasings(eventAt(t, pool, 3))[i]
			awaitsTry(t, s, reply, func(ctx context.Context) error { return e.do(ctx, s, c, fact, asked) })
		})
	}
}

// awaitsTry runs an erasure, ends the try of a reply while the erasure waits for it, and checks their order.
func awaitsTry(t *testing.T, s *sql.Store, reply sessions.Outgoing, erase func(context.Context) error) {
	t.Helper()
	ctx, waits := watched(t)
	ended := make(chan error, 1)
	go func() { ended <- erase(ctx) }()
	select {
	case <-waits:
	case err := <-ended:
		t.Fatalf("the erasure did not wait: %v", err)
	}
	select {
	case err := <-ended:
		t.Fatalf("the erasure ended before the try: %v", err)
	default:
	}
	if err := s.Outbox.Settle(t.Context(), sessions.SendOutcome{Key: reply.Key, ID: reply.ID, Attempt: reply.Attempts, Sent: true}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// A fact that a reply of another session quotes goes after the outcome of that reply's try, too.
func TestForgettingAFactAwaitsItsReaders(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	const words = "张伟伟住在静安寺旁边"
	here, there := storetest.NewChat(t, s, "here", storetest.LiID, false), storetest.NewChat(t, s, "there", storetest.LiID, false)
	here.Exchange(storetest.ZhangID, words, "好的")
	fact := storetest.GroupFact(here, words)
	fact.Scope, fact.ScopeID, fact.SaidBy, fact.StartSeq, fact.EndSeq = memory.ScopeTeam, string(storetest.Robot), storetest.ZhangID, 3, 3
	id := here.Save(fact).Saved[0]
	reply := sending(t, s, there, "队里的记忆："+words)
	storetest.Execute(t, pool, "UPDATE replicas SET heartbeat_at = now() + interval '1 hour'")
	storetest.Execute(t, pool, "UPDATE outbox SET next_at = now() + interval '1 hour' WHERE in_flight")
	awaitsTry(t, s, reply, func(ctx context.Context) error {
		_, err := s.Erasure.ForgetMemory(ctx, id, memory.Asking{})
		return err
	})
}

// An erasure waits for no try whose outcome may never come: one that took longer than a try can. A reply that waits for its try, and a notice before its first, need no wait either: their claims read the rest.
func TestErasuresDoNotAwaitLostTries(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *sql.Store, *pgxpool.Pool, *storetest.Chat, sessions.Outgoing){
		"an old try": func(t *testing.T, _ *sql.Store, pool *pgxpool.Pool, _ *storetest.Chat, _ sessions.Outgoing) {
			t.Helper()
			storetest.Execute(t, pool, "UPDATE outbox SET next_at = now() + interval '1 second' * $1::float8 WHERE in_flight", (pg.ClaimTime - sessions.SendTime).Seconds())
		},
		"a reply that waits": func(t *testing.T, s *sql.Store, _ *pgxpool.Pool, _ *storetest.Chat, o sessions.Outgoing) {
			t.Helper()
			err := s.Outbox.Settle(t.Context(), sessions.SendOutcome{Key: o.Key, ID: o.ID, Attempt: o.Attempts, Error: "busy", NextAt: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
		},
		"a notice before its first try": func(t *testing.T, s *sql.Store, _ *pgxpool.Pool, c *storetest.Chat, o sessions.Outgoing) {
			t.Helper()
			if err := s.Outbox.Settle(t.Context(), sessions.SendOutcome{Key: o.Key, ID: o.ID, Attempt: o.Attempts, Sent: true}); err != nil {
				t.Fatal(err)
			}
			storetest.Must[[]sessions.Outgoing](t)(s.Outbox.Announce(t.Context(), c.Lease, sessions.Reply{Text: sendingWord, Nonce: "ebb-notice"}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool, c, reply, _, _ := sendingChat(t)
			lose(t, s, pool, c, reply)
			ctx, waits := watched(t)
			if _, err := s.Erasure.Erase(ctx, c.Reader.Key, []int64{3, 4, 5, 6}); err != nil {
				t.Fatal(err)
			}
			if len(waits) > 0 {
				t.Error("the erasure waited for it")
			}
		})
	}
}

// An erasure that is broken off while it waits erases nothing.
func TestErasureBrokenOffBeforeATryEnds(t *testing.T) {
	t.Parallel()
	s, pool, c, _, asked, fact := sendingChat(t)
	for _, e := range erasings(eventAt(t, pool, 3)) {
		ctx, waits := watched(t)
		ctx, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- e.do(ctx, s, c, fact, asked) }()
		<-waits
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got error %v", e.name, err)
		}
	}
	stays(t, pool, sendingWord)
}
