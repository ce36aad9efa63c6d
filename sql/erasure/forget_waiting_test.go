package erasure_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// waits signals each wait of an erasure for open work.
type waits chan struct{}

// waitLog reads the log of an erasure in a turn, whose lines have its session and term.
type waitLog struct {
	t     *testing.T
	waits waits
}

func (w waitLog) Write(line []byte) (int, error) {
	if text := string(line); strings.Contains(text, "Erasure waits") {
		for _, key := range []string{"session", "term"} {
			if strings.Count(text, `"`+key+`":`) != 1 {
				w.t.Errorf("the key %s is not there once: %s", key, text)
			}
		}
		w.waits <- struct{}{}
	}
	return len(line), nil
}

// watched is a context whose erasures signal their waits.
func watched(t *testing.T) (context.Context, waits) {
	t.Helper()
	w := make(waits, 100)
	return zerolog.New(waitLog{t, w}).With().Str("session", "asking").Int64("term", 7).Logger().WithContext(t.Context()), w
}

// spareWork makes the next erasure wait for the open turn or upkeep of a session.
func spareWork(t *testing.T, pool *pgxpool.Pool, key sessions.Key) {
	t.Helper()
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET cut_turns = $2::int, cut_upkeep = $2::int WHERE session_key = $1::text", string(key), sessions.MaxCuts)
}

// forgetting starts ForgetMemory, and waits until it waits for open work.
func forgetting(t *testing.T, s *sql.Store, id int64) <-chan memory.Forgotten {
	t.Helper()
	ctx, waits := watched(t)
	done := make(chan memory.Forgotten, 1)
	go func() {
		f, err := s.Erasure.ForgetMemory(ctx, id, memory.Asking{})
		if err != nil {
			t.Error(err)
		}
		done <- f
	}()
	select {
	case <-waits:
	case <-done:
		t.Fatal("the erasure did not wait")
	}
	return done
}

// A flush that an erasure waits for has read the message, and saves the fact again in another scope: it goes too.
func TestForgetReachesFactOfSparedFlush(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	const content = "财务室保险柜的密码是海棠八号"
	c.Exchange(storetest.ZhangID, content, "好") // 3 and 4
	id := c.Save(storetest.SaidBy(c, content, storetest.ZhangID, 3)).Saved[0]
	spareWork(t, pool, c.Reader.Key)
	if err := s.Jobs.MarkUpkeep(t.Context(), c.Lease, time.Minute); err != nil {
		t.Fatal(err)
	}
	done := forgetting(t, s, id)
	own := storetest.FactAbout(storetest.ZhangID, content)
	own.SourceGroup, own.StartSeq, own.EndSeq = memory.GroupID(storetest.Robot, c.Reader.Conversation), 3, 3
	flush(c, 4, own)
	if f := <-done; f.Memories != 2 || f.Messages != 2 {
		t.Errorf("forgetting gave %+v, want both facts, the message and its answer", f)
	}
	storetest.WantGone(t, pool, "海棠")
}

// The messages of a turn get their places while an erasure waits for it: the source of the fact that it saved goes too.
func TestForgetReachesMessageOfSparedTurn(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	asked := c.Speak("z1", storetest.ZhangID, storetest.ZhangNick, "记住：暗号是 "+storetest.Secret, nil)
	if _, err := s.Turns.Begin(t.Context(), c.Lease, 1); err != nil {
		t.Fatal(err)
	}
	d := storetest.GroupFact(c, "门禁的口令以 "+storetest.Secret[:2]+" 开头")
	d.SaidBy = storetest.ZhangID
	id := c.Save(d).Saved[0]
	spareWork(t, pool, c.Reader.Key)
	done := forgetting(t, s, id)
	c.Turn(storetest.ZhangID, storetest.ZhangNick, "记住了", asked)
	if f := <-done; f.Memories != 1 || f.Messages != 2 {
		t.Errorf("forgetting gave %+v, want the fact, the message and its answer", f)
	}
	storetest.WantGone(t, pool, storetest.Secret, "记住了")
}

// Erasures of people that wait for a flush do not delay erasures of other people.
func TestForgetPersonWaitsWithoutAPlace(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	ctx, waits := watched(t)
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	const busy = 3 // more than are forgotten at a time
	var leases []sessions.Lease
	var ended []chan error
	for i := range busy {
		one := make(chan error, 1)
		ended = append(ended, one)
		person := sessions.UserID(fmt.Sprint("u", i))
		c := storetest.NewChat(t, s, sessions.ConversationID(fmt.Sprint("cid", i)), person, false)
		spareWork(t, pool, c.Reader.Key)
		if err := s.Jobs.MarkUpkeep(ctx, c.Lease, time.Minute); err != nil {
			t.Fatal(err)
		}
		leases = append(leases, c.Lease)
		go func() {
			_, err := s.Erasure.ForgetPerson(ctx, memory.Forget{Robot: storetest.Robot, Person: person})
			one <- err
		}()
		select {
		case <-waits:
		case err := <-one:
			t.Fatal("the erasure did not wait: ", err)
		case <-ctx.Done():
			t.Fatal("the erasure was not begun")
		}
	}
	storetest.NewChat(t, s, "quiet", "other", false)
	if p, err := s.Erasure.PreviewForget(ctx, memory.Forget{Robot: storetest.Robot, Person: "other"}); err != nil || p.Messages == 0 {
		t.Errorf("the preview of another person gave %+v, %v", p, err)
	}
	for _, l := range leases {
		if err := s.Jobs.MarkUpkeep(ctx, l, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range ended {
		if err := <-one; err != nil {
			t.Error(err)
		}
	}
}

// Turns of two groups that each ask for an erasure of a team fact wait for no turn that waits itself.
func TestForgetByTwoTurnsAtOnce(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	type request struct {
		id    int64
		asked sessions.Accepted
	}
	var requests []request
	for i, content := range []string{"保险柜放在三楼档案室里", "食堂的后门十二点开"} {
		c := storetest.NewChat(t, s, sessions.ConversationID(fmt.Sprint("cid", i)), "u", false)
		id := storetest.Must[memory.Memory](t)(s.Rights.Promote(t.Context(), c.Save(storetest.SaidBy(c, content, "u", 1)).Saved[0], "admin")).ID
		requests = append(requests, request{id, c.Speak("ask", "u", "u", "/forget", nil)})
		if _, err := s.Turns.Begin(t.Context(), c.Lease, 1); err != nil {
			t.Fatal(err)
		}
		spareWork(t, pool, c.Reader.Key)
	}
	ended := make(chan error, len(requests))
	for _, r := range requests {
		go func() {
			_, err := s.Erasure.ForgetMemory(ctx, r.id, memory.Asking{Lease: r.asked.Lease, Event: r.asked.EventID})
			ended <- err
		}()
	}
	done := 0
	for range requests {
		switch err := <-ended; {
		case err == nil:
			done++
		case !errors.Is(err, sessions.ErrLeaseLost): // the other erasure ended this turn, which begins again
			t.Error(err)
		}
	}
	if done == 0 {
		t.Error("no erasure was done")
	}
}
