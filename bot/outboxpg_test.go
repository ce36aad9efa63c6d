package bot_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sql/sqltest"
)

// onlookers keep what a group sees: a message that is sent again under its key is known by it.
type onlookers struct {
	mu   sync.Mutex
	seen []sessions.Outgoing
}

// sends is a send function of a replica that shows its replies to them, unless limited is set: then each try gets the
// advice to come again after a pause.
func (r *onlookers) sends(limited *atomic.Bool, pause time.Duration) func(context.Context, sessions.Outgoing) (chat.Sent, error) {
	return func(_ context.Context, o sessions.Outgoing) (chat.Sent, error) {
		if limited.Load() {
			return chat.Sent{}, &chat.SendError{After: pause, Err: errors.New("130101")}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if !slices.ContainsFunc(r.seen, func(s sessions.Outgoing) bool { return s.Reply.Nonce == o.Reply.Nonce }) {
			r.seen = append(r.seen, o)
		}
		return bottest.Arrived, nil
	}
}

func (r *onlookers) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all strings.Builder
	for _, o := range r.seen {
		all.WriteString(o.Reply.Text + "\n")
	}
	return all.String()
}

// emptyPlace is a new database.
func emptyPlace(t *testing.T) *place {
	t.Helper()
	return &place{t: t, url: sqltest.URL(t), talk: dialogue{settings: bottest.SmallSettings}, facts: &atomic.Int64{}}
}

// echo has a replica's model repeat the last words.
func echo(r *replica) {
	r.model.Chat = func(_ context.Context, q llm.Request) (llm.Response, error) {
		return bottest.Text("re: " + bottest.LastWords(q)), nil
	}
}

// refused waits until a replica has tried to send n messages.
func (r *replica) refused(n int) {
	r.t.Helper()
	await(r.t, "the replies were tried", func() bool { return len(r.wire.Sends()) >= n })
}

// H1: an erased reply that waits for the rate limit is not sent, whichever process erased it.
func TestErasedWordsAreNotSent(t *testing.T) {
	t.Parallel()
	for name, erase := range map[string]func(p *place, r *replica){
		"by the person": func(_ *place, r *replica) { r.post(bottest.Said("f", "alice", "/forget last")) },
		"by an operator": func(p *place, r *replica) {
			if _, err := p.reader().Erasure.ForgetPerson(p.t.Context(), memory.Forget{Person: "u-alice"}); err != nil {
				p.t.Fatal(err)
			}
			r.post(bottest.Said("n", "bob", "and now?"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var limited atomic.Bool
			limited.Store(true)
			g, p := &onlookers{}, emptyPlace(t)
			a := p.run("a", func(r *replica, c *bot.Config) {
				echo(r)
				r.wire.Deliver = g.sends(&limited, 20*time.Millisecond)
				c.Rights, c.Erasures = r.store.Rights, r.store.Erasure
			})
			a.post(bottest.Said("m0", "bob", "good morning"))
			a.refused(1)
			a.post(bottest.Said("m1", "alice", "my code is 4711"))
			await(t, "the answer is committed", func() bool {
				return one[int](t, p.db(), "SELECT count(*) FROM outbox WHERE body LIKE '%4711%'") == 1
			})
			erase(p, a)
			await(t, "the erasure is answered", func() bool {
				return one[int](t, p.db(), `SELECT (SELECT count(*) FROM outbox WHERE body LIKE '%4711%')
					+ (SELECT count(*) FROM dingtalk_session_events WHERE state = 'pending')`) == 0
			})
			limited.Store(false)
			a.settle()
			if seen := g.text(); strings.Contains(seen, "4711") || !strings.Contains(seen, "good morning") {
				t.Errorf("the group saw %q, want the first answer and nothing that was erased", seen)
			}
			bottest.Want(t, "rows given up", one[int](t, p.db(), "SELECT count(*) FROM outbox WHERE state = 'failed'"), 1)
		})
	}
}

// H3: an erasure ends the term of a session whose replies wait in one replica, and another accepts its next message. The
// group sees each reply once, and none is in doubt.
func TestReplyOfErasedSessionIsSeenOnce(t *testing.T) {
	t.Parallel()
	var limited, free atomic.Bool
	limited.Store(true)
	g, p := &onlookers{}, emptyPlace(t)
	a := p.run("a", func(r *replica, _ *bot.Config) { echo(r); r.wire.Deliver = g.sends(&limited, 3*time.Second) })
	b := p.run("b", func(r *replica, _ *bot.Config) { echo(r); r.wire.Deliver = g.sends(&free, 0) })
	for i, text := range []string{"good morning", "question 0", "question 1", "question 2"} {
		a.post(bottest.Said(fmt.Sprint("m", i), "alice", text))
		await(t, "the answer is committed", func() bool { return one[int](t, p.db(), "SELECT count(*) FROM outbox") == i+1 })
	}
	p.exec("UPDATE outbox SET next_at = now()") // the pause is over
	if _, err := p.reader().Erasure.Erase(t.Context(), bottest.Group, []int64{1}); err != nil {
		t.Fatal(err)
	}
	limited.Store(false) // for the first owner's next attempt, seconds later
	b.post(bottest.Said("next", "bob", "question 3"))
	await(t, "all is answered and sent", func() bool { return one[int](t, p.db(), openWork) == 0 })
	await(t, "the first owner holds no reply", func() bool { return a.bot.Outbox().Waiting() == 0 })
	for i := range 4 {
		bottest.Want(t, fmt.Sprint("times that answer ", i, " was seen"), strings.Count(g.text(), fmt.Sprint("question ", i)), 1)
	}
	bottest.Want(t, "counted as perhaps doubled", a.bot.Figure("doubled")+b.bot.Figure("doubled"), 0)
}

// An operator who resumes calls ends the pauses of replies in the replica that holds them, and of those that a killed one left.
// Both go out within seconds instead of an hour. A refused reply keeps its pause.
func TestResumedCallsSendWaitingReplies(t *testing.T) {
	t.Parallel()
	var spent atomic.Bool
	spent.Store(true)
	g, p := &onlookers{}, emptyPlace(t)
	a := p.run("a", func(r *replica, _ *bot.Config) { echo(r); r.wire.Deliver = g.sends(&spent, time.Hour) })
	if _, err := p.reader().Calls.OpenCallMonth(t.Context(), "2026-11", 0); err != nil {
		t.Fatal(err)
	}
	a.post(bottest.Said("m0", "alice", "good morning"))
	a.refused(1)
	p.exec(`INSERT INTO outbox (session_key, target, body, sender, state, next_at, refusals)
		SELECT session_key, target, body || ' of a killed replica', 'killed', 'waiting', now() + interval '1 hour', 0 FROM outbox
		UNION ALL SELECT session_key, target, body || ' refused', 'killed', 'waiting', now() + interval '1 hour', 2 FROM outbox`)
	await(t, "the reply waits", func() bool {
		return one[int](t, p.db(), "SELECT count(*) FROM outbox WHERE state = 'waiting' AND next_at > now() + interval '50 minutes'") == 3
	})
	spent.Store(false)
	done, err := p.reader().Calls.ResumeCalls(t.Context(), "2026-11")
	if err != nil || done.Replies != 2 {
		t.Fatalf("resumed %+v, %v, want two replies", done, err)
	}
	await(t, "both are sent", func() bool { return one[int](t, p.db(), "SELECT count(*) FROM outbox WHERE state = 'sent'") == 2 })
	bottest.Want(t, "answers seen", strings.Count(g.text(), "good morning"), 2)
	bottest.Want(t, "refused ones seen", strings.Count(g.text(), "refused"), 0)
}
