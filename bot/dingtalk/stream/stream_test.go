package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/dingtalk/transporttest"
	"ebb/sessions"
)

func TestMessageIsAcknowledgedOnceItIsStored(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	storing, stored := make(chan struct{}), make(chan struct{})
	g := start(t, s, func(context.Context, sessions.Message) error {
		close(storing)
		<-stored
		return nil
	})
	id := s.Say(inGroup)
	<-storing
	if n := s.State().Unacked; n != 1 {
		t.Errorf("acknowledged before it was stored")
	}
	close(stored)
	ack, err := s.WaitAck(testContext(t), id)
	if err != nil || ack.Code != 200 || ack.Data != `{"response":null}` {
		t.Errorf("the ack is %+v, %v", ack, err)
	}
	g.Next(t)
	await(t, "the count", func() bool { return g.Stats().Accepted == 1 })
	noViolations(t, s)
}

func TestMessageThatIsNotStoredIsNotAcknowledgedWith200(t *testing.T) {
	t.Parallel()
	for name, accept := range map[string]func(context.Context, sessions.Message) error{
		"an error":   func(context.Context, sessions.Message) error { return errors.New("pq: secret table is gone") },
		"a panic":    func(context.Context, sessions.Message) error { panic("secret") },
		"a deadline": func(ctx context.Context, _ sessions.Message) error { <-ctx.Done(); return ctx.Err() },
		"ignorance":  func(ctx context.Context, _ sessions.Message) error { <-ctx.Done(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := simulator(t)
			tr := newStream(s.URL)
			tr.timing.accept = 200 * time.Millisecond
			run(t, s, tr, accept)
			ack, err := s.WaitAck(testContext(t), s.Say(inGroup))
			if err != nil || ack.Code != 500 || strings.Contains(ack.Message+ack.Data, "secret") {
				t.Errorf("the ack is %+v, %v", ack, err)
			}
			if !tr.Ready() {
				t.Error("the connection is gone")
			}
			noViolations(t, s)
		})
	}
}

// The default times: a store that hangs is given up early enough for an ack within DingTalk's three seconds.
func TestSlowStorageIsRefusedInTime(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	start(t, s, func(ctx context.Context, _ sessions.Message) error { <-ctx.Done(); return ctx.Err() })
	ack, err := s.WaitAck(testContext(t), s.Say(inGroup))
	if err != nil || ack.Code != 500 {
		t.Errorf("the ack is %+v, %v", ack, err)
	}
	noViolations(t, s)
}

func TestARedeliveredMessageIsAcceptedAgain(t *testing.T) {
	t.Parallel()
	opts := dingtalktest.Fast()
	opts.RetryOnError, opts.RedeliverAfter = true, 50*time.Millisecond
	s := dingtalktest.NewServer(t, opts)
	var tries atomic.Int64
	g := start(t, s, func(context.Context, sessions.Message) error {
		if tries.Add(1) < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	id := s.Say(inGroup)
	if m := g.Next(t); string(m.ID) != id {
		t.Errorf("stored %q", m.ID)
	}
	s.Redeliver(id, dingtalktest.RedeliverOptions{})
	if m := g.Next(t); string(m.ID) != id {
		t.Errorf("stored %q", m.ID)
	}
	if n := g.Stats(); n.Frames != 4 || n.Rejected != 2 {
		t.Errorf("counted %+v", n)
	}
}

// A burst larger than the intake waits for its turn instead of being dropped.
func TestABurstIsStoredWhole(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	var mu sync.Mutex
	now, most := 0, 0
	g := start(t, s, func(context.Context, sessions.Message) error {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		<-time.After(2 * time.Millisecond) // duration of a commit
		mu.Lock()
		now--
		mu.Unlock()
		return nil
	})
	const n = 500
	for _, id := range s.Burst(n, 50, 0) {
		if ack, err := s.WaitAck(testContext(t), id); err != nil || ack.Code != 200 {
			t.Fatalf("the ack of %s is %+v, %v", id, ack, err)
		}
	}
	if len(g.Got) != n || most > maxAccepts {
		t.Errorf("%d of %d stored, %d at once", len(g.Got), n, most)
	}
	noViolations(t, s)
}

func TestMalformedFramesDoNoHarm(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	g := start(t, s, nil)
	for _, data := range []string{"", "null", "[]", "{", `{"msgId":"x"}`, `{"conversationId":"x"}`, strings.Repeat("x", 1<<20)} {
		s.SayRaw(data)
	}
	s.PlayMalformed("cidRoom")
	id := s.Say(inGroup)
	for m := g.Next(t); string(m.ID) != id; m = g.Next(t) {
		continue
	}
	if ack, err := s.WaitAck(testContext(t), id); err != nil || ack.Code != 200 {
		t.Errorf("the ack is %+v, %v", ack, err)
	}
	await(t, "the unreadable frames", func() bool { return g.Stats().Unreadable >= 7 })
	if strings.Contains(g.Log.String(), "xxxxxxxx") {
		t.Error("the content of a frame is in the log")
	}
}

func TestFirstStartIsTriedUntilItSucceeds(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"503", "unavailable", "auth-failed", "expired-ticket", "empty-endpoint", "dead-endpoint", "html", "reset-before"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s := simulator(t)
			s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteOpen, Count: 3, Action: dingtalktest.Do(fault)})
			g := start(t, s, nil)
			if n := g.Stats(); n.ConnectionsFailed < 3 || n.ConnectionsOpened != 1 {
				t.Errorf("counted %+v", n)
			}
			s.Say(inGroup)
			g.Next(t)
			log := g.Log.String()
			if operator := strings.Contains(log, "an operator must correct"); operator != (fault == "auth-failed") {
				t.Errorf("the log says: %s", log)
			}
			if strings.Contains(log, transporttest.Secret) || strings.Contains(log, "ticket=") {
				t.Errorf("the log holds a secret: %s", log)
			}
		})
	}
}

func TestDisconnectsLeaveNoGap(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	g := start(t, s, nil)
	for i := range 6 {
		if n := s.Disconnect(dingtalktest.DisconnectOptions{NoMessageID: i%2 == 0}); n != 1 {
			t.Fatalf("round %d: %d connections were live", i, n)
		}
		if err := s.WaitFor(testContext(t), "one connection at rest", func(st dingtalktest.State) bool {
			return st.Live == 1 && len(st.Connections) == 1
		}); err != nil {
			t.Fatal(err)
		}
		s.Say(inGroup)
		g.Next(t)
	}
	if deaf := s.State().Apps[0].Deaf; deaf > time.Second {
		t.Errorf("deaf for %s in six rotations", deaf)
	}
	if n := g.Stats(); n.Rotations != 6 || n.ConnectionsOpened != 7 || n.ConnectionsLost != 0 {
		t.Errorf("counted %+v", n)
	}
	noViolations(t, s)
}

// The new connection is there before the old one goes, and what was pushed to the old one is acknowledged on it.
func TestDisconnectWaitsForAcksOnTheOldConnection(t *testing.T) {
	t.Parallel()
	opts := dingtalktest.Fast()
	opts.DisconnectGrace = 20 * time.Second // the client is to end it
	s := dingtalktest.NewServer(t, opts)
	storing, stored := make(chan struct{}), make(chan struct{})
	start(t, s, func(_ context.Context, m sessions.Message) error {
		if m.Text == "slow" {
			close(storing)
			<-stored
		}
		return nil
	})
	old := s.Connections()[0].ID
	id := s.Say(dingtalktest.Message{Conversation: "cidRoom", Text: "slow"})
	<-storing
	s.Disconnect(dingtalktest.DisconnectOptions{})
	if err := s.WaitFor(testContext(t), "a new connection beside the old", func(st dingtalktest.State) bool {
		return st.Live == 1 && len(st.Connections) == 2
	}); err != nil {
		t.Fatal(err)
	}
	if ack, err := s.WaitAck(testContext(t), s.Say(inGroup)); err != nil || ack.Conn == old {
		t.Errorf("the ack is %+v, %v", ack, err)
	}
	close(stored)
	if ack, err := s.WaitAck(testContext(t), id); err != nil || ack.Conn != old || ack.Code != 200 {
		t.Errorf("the ack is %+v, %v", ack, err)
	}
	if err := s.WaitFor(testContext(t), "the old connection's end", func(st dingtalktest.State) bool {
		return st.Live == 1 && len(st.Connections) == 1
	}); err != nil {
		t.Fatal(err)
	}
	noViolations(t, s)
}

func TestServerRestartIsSurvived(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	g := start(t, s, nil)
	s.Restart(150 * time.Millisecond)
	if err := s.WaitFor(testContext(t), "a connection after the restart", func(st dingtalktest.State) bool {
		return st.Live == 1 && len(st.Connections) == 1
	}); err != nil {
		t.Fatal(err)
	}
	s.Say(inGroup)
	g.Next(t)
	noViolations(t, s)
}

func TestLostConnectionsAreReplacedAtOnce(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	tr := newStream(s.URL)
	tr.timing.young = 0 // no connection is too young
	tr.timing.pauses.First = time.Minute
	tr.timing.pauses.Max = time.Minute
	g := run(t, s, tr, nil)
	for i := range 5 {
		s.Drop(dingtalktest.DropOptions{})
		if err := s.WaitFor(testContext(t), "a new connection", func(st dingtalktest.State) bool {
			return st.Apps[0].Opens == i+2 && st.Live == 1
		}); err != nil {
			t.Fatal(err)
		}
		s.Say(inGroup)
		g.Next(t)
	}
	await(t, "readiness", tr.Ready)
	if n := g.Stats(); n.ConnectionsLost != 5 || n.Rotations != 0 {
		t.Errorf("counted %+v", n)
	}
}

// A connection that opens without an error and dies at once is not requested faster than the pauses allow.
func TestConnectionsThatDieYoungAreOpenedEverMoreSlowly(t *testing.T) {
	t.Parallel()
	tm := defaultTiming()
	var b earlyEnds
	if d := b.next(lost, time.Second, tm); d != 0 {
		t.Errorf("the first loss waits %s", d)
	}
	total, before := time.Duration(0), time.Duration(0)
	for range 10 {
		d := b.next(lost, time.Second, tm)
		if d < before/2 || d < tm.pauses.First/2 {
			t.Errorf("a wait of %s after one of %s", d, before)
		}
		total, before = total+d, d
	}
	if before < tm.pauses.Max/2 || total < 3*time.Minute {
		t.Errorf("ten young deaths take %s, the last waits %s", total, before)
	}
	if d := b.next(lost, time.Minute, tm); d != 0 {
		t.Errorf("after a connection that lived, the wait is %s", d)
	}
	for i := range 6 {
		if d := b.next(farewell, time.Second, tm); d != 0 {
			t.Errorf("disconnect %d waits %s", i, d)
		}
	}
	for range 8 {
		before = b.next(farewell, time.Second, tm)
	}
	if before < tm.pauses.First {
		t.Error("a storm of disconnects is followed without end")
	}
}

func TestADyingServerSeesFewOpens(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	tr := newStream(s.URL)
	tr.timing.pauses.First, tr.timing.pauses.Max = 50*time.Millisecond, time.Minute
	run(t, s, tr, nil)
	stop := make(chan struct{})
	var dropping sync.WaitGroup
	dropping.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.Drop(dingtalktest.DropOptions{})
			case <-stop:
				return
			}
		}
	})
	await(t, "five deaths", func() bool { return tr.Stats().ConnectionsLost >= 5 })
	// 0 + 50 + 100 + 200 ms, each three quarters at least, and those on their way then
	if n := s.State().Apps[0].Opens; n > 8 {
		t.Errorf("%d opens for five deaths", n)
	}
	close(stop)
	dropping.Wait()
}

func TestHalfOpenConnectionIsNoticedByTheKeepalive(t *testing.T) {
	t.Parallel()
	opts := dingtalktest.Fast()
	opts.PingInterval = dingtalktest.Never
	s := dingtalktest.NewServer(t, opts)
	tr := newStreamEvery(s.URL, time.Millisecond) // raised to 3 s
	g := run(t, s, tr, nil)
	s.HalfOpen("")
	if err := s.WaitFor(testContext(t), "a connection that works", func(st dingtalktest.State) bool { return st.Live == 1 }); err != nil {
		t.Fatal(err)
	}
	s.Say(inGroup)
	for m := g.Next(t); m.Text != "hi"; m = g.Next(t) {
		continue
	}
}

// A connection that answers pings but carries nothing is replaced after a long silence, the new one first.
func TestSilentConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	opts := dingtalktest.Fast()
	opts.PingInterval = dingtalktest.Never
	s := dingtalktest.NewServer(t, opts)
	tr := newStream(s.URL)
	tr.timing.quiet = 300 * time.Millisecond
	run(t, s, tr, nil)
	old := s.Connections()[0].ID
	s.Zombie("")
	if err := s.WaitFor(testContext(t), "the silent connection's end", func(st dingtalktest.State) bool {
		return st.Live >= 1 && len(st.Connections) == 1 && st.Connections[0].ID != old
	}); err != nil {
		t.Fatal(err)
	}
}

func TestStoppingStoresAndAcknowledgesWhatArrived(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	storing, stored := make(chan struct{}), make(chan struct{})
	g := start(t, s, func(context.Context, sessions.Message) error {
		close(storing)
		<-stored
		return nil
	})
	id := s.Say(inGroup)
	<-storing
	go g.Stop()
	select {
	case <-g.Done:
		t.Error("Run returned while a message was being stored")
	case <-time.After(100 * time.Millisecond):
	}
	close(stored)
	<-g.Done
	if ack, err := s.WaitAck(testContext(t), id); err != nil || ack.Code != 200 {
		t.Errorf("the ack is %+v, %v", ack, err)
	}
	if g.Ready() {
		t.Error("ready after the end")
	}
	if err := s.WaitNoConns(testContext(t)); err != nil {
		t.Error(err)
	}
	noViolations(t, s)
}

// Under steady traffic a stop finds a gap. Only what the server pushes at the moment of the closing can miss its ack.
func TestStoppingUnderTrafficOwesNoAcks(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	g := start(t, s, nil)
	s.Burst(100, 10, 2*time.Second) // one each 20 ms
	for range 20 {
		g.Next(t)
	}
	g.Stop()
	if v := s.Violations(dingtalktest.AckLost, dingtalktest.AckTwice, dingtalktest.AckWrongConnection); len(v) > 1 {
		t.Errorf("%d acks were lost: %v", len(v), v)
	}
}

func TestStoppingEndsEveryWait(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteOpen, Count: dingtalktest.Unlimited, Action: dingtalktest.Do("503")})
	tr := newStream(s.URL)
	tr.timing.pauses.First, tr.timing.pauses.Max = time.Minute, time.Minute
	ctx, cancel := context.WithCancel(testContext(t))
	done := make(chan error)
	go func() { done <- tr.Run(ctx, func(context.Context, sessions.Message) error { return nil }) }()
	await(t, "a failed open", func() bool { return tr.Stats().ConnectionsFailed > 0 })
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestBackoffGrowsToItsBound(t *testing.T) {
	t.Parallel()
	tm := defaultTiming()
	for failures := range 100 {
		want := min(tm.pauses.First<<min(failures, 20), tm.pauses.Max)
		if d := tm.pauses.After(failures); d < want*3/4 || d > want*5/4 {
			t.Errorf("after %d failures the wait is %s, not about %s", failures, d, want)
		}
	}
}

func TestEndsAreNamed(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprint(stopped, lost, farewell, silent); got != "stopped lost disconnect silent" {
		t.Errorf("got %q", got)
	}
}

// Frames that are read and not stored yet are bounded in bytes: the rest waits in the connection, and is stored
// afterwards.
func TestFramesThatWaitAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	tr := newStream(s.URL)
	const size, bound = 300 << 10, 1 << 20
	tr.held = semaphore.NewWeighted(bound)
	storing, stored := make(chan struct{}, 10), make(chan struct{})
	run(t, s, tr, func(context.Context, sessions.Message) error {
		storing <- struct{}{}
		<-stored
		return nil
	})
	var ids []string
	for range 10 {
		ids = append(ids, s.Say(dingtalktest.Message{Conversation: "cidRoom", Text: strings.Repeat("x", size)}))
	}
	for range bound / size {
		<-storing
	}
	await(t, "the frame that waits for room", func() bool { return tr.Stats().Frames == bound/size+1 })
	select {
	case <-storing:
		t.Error("a frame over the bound was decoded and handed in")
	case <-time.After(50 * time.Millisecond):
	}
	close(stored)
	for _, id := range ids {
		if ack, err := s.WaitAck(testContext(t), id); err != nil || ack.Code != 200 {
			t.Fatalf("the ack is %+v, %v", ack, err)
		}
	}
}
