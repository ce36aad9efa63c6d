package dingtalktest_test

import (
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"ebb/bot/dingtalk/dingtalktest"
)

func readEnd(t *testing.T, c raw) error {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	for {
		if _, _, err := c.ReadMessage(); err != nil {
			return err
		}
	}
}

func TestDropEndsTheConnectionAsConfigured(t *testing.T) {
	t.Parallel()
	isTimeout := func(err error) bool { var n net.Error; return errors.As(err, &n) && n.Timeout() }
	for name, tc := range map[string]struct {
		how  dingtalktest.DropOptions
		want func(error) bool
	}{
		"reset":     {dingtalktest.DropOptions{}, func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }},
		"fin":       {dingtalktest.DropOptions{How: dingtalktest.DropFIN}, func(err error) bool { return websocket.IsCloseError(err, 1006) }},
		"code 1000": {dingtalktest.DropOptions{Code: 1000}, func(err error) bool { return websocket.IsCloseError(err, 1000) }},
		"code 1001": {dingtalktest.DropOptions{Code: 1001}, func(err error) bool { return websocket.IsCloseError(err, 1001) }},
		"code 1008": {dingtalktest.DropOptions{Code: 1008}, func(err error) bool { return websocket.IsCloseError(err, 1008) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := dingtalktest.NewServer(t, still())
			c := dial(t, s)
			if n := s.Drop(tc.how); n != 1 {
				t.Fatalf("dropped %d", n)
			}
			if err := readEnd(t, c); !tc.want(err) || isTimeout(err) {
				t.Errorf("the client saw %v", err)
			}
			if err := s.WaitNoConns(ctx(t)); err != nil {
				t.Error(err)
			}
			noViolations(t, s)
		})
	}
}

func TestDisconnectVariants(t *testing.T) {
	t.Parallel()
	o := still()
	o.Routing = dingtalktest.RouteRoundRobin
	s := dingtalktest.NewServer(t, o)

	drained := dial(t, s)
	s.Disconnect(dingtalktest.DisconnectOptions{NoMessageID: true, Grace: 100 * time.Millisecond, Reason: "persistent connection is timeout"})
	f := drained.read()
	if _, has := f.Headers["messageId"]; f.Headers["topic"] != "disconnect" || has || !strings.Contains(f.Data, "timeout") {
		t.Errorf("the frame is %+v", f)
	}
	drained.write(`{"code":200,"headers":{"messageId":"","contentType":"application/json"},"message":"ok","data":""}`)
	if s.Say(dingtalktest.Text("nobody hears this")); s.State().Unacked != 1 {
		t.Error("the message was delivered to a draining connection")
	}
	if err := readEnd(t, drained); !websocket.IsCloseError(err, 1006) {
		t.Errorf("after the grace the client saw %v", err)
	}

	kept := dial(t, s)
	id := s.Connections()[0].ID
	s.Disconnect(dingtalktest.DisconnectOptions{Grace: dingtalktest.Never, KeepDelivering: true})
	if f := kept.read(); f.Headers["messageId"] == "" {
		t.Errorf("the frame is %+v", f)
	}
	s.Say(dingtalktest.Text("hello"))
	kept.ack(kept.read())
	if err := s.WaitFor(ctx(t), "the ack on the draining connection", func(st dingtalktest.State) bool {
		return st.Connections[0].ID == id && st.Connections[0].Acked == 1
	}); err != nil {
		t.Error(err)
	}
	noViolations(t, s)
}

func TestRestartRefusesToOpenForAWhile(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	a, b := dial(t, s), dial(t, s)
	s.Restart(time.Second)
	for _, c := range []raw{a, b} {
		if f := c.read(); f.Headers["topic"] != "disconnect" {
			t.Errorf("got %+v", f)
		}
	}
	if status, _ := request(t, "POST", s.URL+"/v1.0/gateway/connections/open", openBody, nil); status != 503 {
		t.Errorf("open answered %d during the restart", status)
	}
	poll(t, "open to work again", func() bool {
		status, _ := request(t, "POST", s.URL+"/v1.0/gateway/connections/open", openBody, nil)
		return status == 200
	})
}

func poll(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited for %s", what)
		}
	}
}

func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	c := dial(t, s)
	s.RefuseConnections(time.Second)
	nc, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err == nil {
		nc.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialling gave %v", err)
	}
	s.Say(dingtalktest.Text("open connections stay"))
	c.ack(c.read())
	poll(t, "the listener to come back", func() bool {
		nc, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err == nil {
			nc.Close()
		}
		return err == nil
	})
}

func TestHalfOpenSwallowsPingsAndMessages(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	c := dial(t, s)
	ponged := make(chan string, 2)
	c.SetPongHandler(func(data string) error { ponged <- data; return nil })
	ping := func(data string) {
		if err := c.WriteControl(websocket.PingMessage, []byte(data), time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	go func() { _, _, _ = c.ReadMessage() }()
	ping("before")
	if got := <-ponged; got != "before" {
		t.Errorf("pong %q", got)
	}
	s.HalfOpen("")
	ping("after")
	id := s.Say(dingtalktest.Text("hello"))
	must[dingtalktest.Entry](t)(s.WaitEntry(ctx(t), "the message to be lost", func(e dingtalktest.Entry) bool { return e.Kind == "lost" && e.MsgID == id }))
	select {
	case p := <-ponged:
		t.Errorf("a half-open connection answered the ping %q", p)
	default:
	}
	if st := s.State(); st.Live != 0 || len(st.Connections) != 1 || st.Connections[0].State != dingtalktest.HalfOpen {
		t.Errorf("the state is %+v", st)
	}
}

func TestZombieAnswersPingsAndLosesMessages(t *testing.T) {
	t.Parallel()
	o := still()
	o.RedeliverAfter = 50 * time.Millisecond
	s := dingtalktest.NewServer(t, o)
	c := dial(t, s)
	s.Zombie("")
	lost := s.Say(dingtalktest.Text("hello"))
	must[dingtalktest.Entry](t)(s.WaitEntry(ctx(t), "the message to be lost", func(e dingtalktest.Entry) bool { return e.Kind == "lost" && e.MsgID == lost }))
	s.Ping()
	if f := c.read(); f.Headers["topic"] != "ping" {
		t.Errorf("got %+v", f)
	}
	noViolations(t, s)
}

func TestLoseNextLosesOnlyThat(t *testing.T) {
	t.Parallel()
	o := still()
	o.RedeliverAfter = dingtalktest.Never
	s := dingtalktest.NewServer(t, o)
	c := dial(t, s)
	s.LoseNext("", 1)
	s.Say(dingtalktest.Message{MsgID: "first"})
	s.Say(dingtalktest.Message{MsgID: "second"})
	if p := c.msg(); p["msgId"] != "second" {
		t.Errorf("got %v", p)
	}
}

func TestSameMessageForTwoRobotsIsTwoMessages(t *testing.T) {
	t.Parallel()
	o := still()
	o.Apps = []dingtalktest.App{
		{ClientID: "dingsimapp0001", ClientSecret: "sim-secret", RobotCode: "bot1"},
		{ClientID: "dingsimapp0001b", ClientSecret: "sim-secret", RobotCode: "bot2"},
	}
	s := dingtalktest.NewServer(t, o)
	c := dial(t, s)
	id := s.Say(dingtalktest.Message{Text: "both", Robots: []string{"bot1", "bot2"}})
	p := c.msg()
	if p["msgId"] != id || p["robotCode"] != "bot1" || len(p["atUsers"].([]any)) != 2 {
		t.Errorf("got %v", p)
	}
	must[dingtalktest.Entry](t)(s.WaitEntry(ctx(t), "the second robot's push to be dropped", func(e dingtalktest.Entry) bool {
		return e.Kind == "dropped" && e.MsgID == id
	}))
}

func TestCopiesGoToDifferentConnections(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	a, b := dial(t, s), dial(t, s)
	id := s.Say(dingtalktest.Message{Text: "twice", Copies: 2})
	fa, fb := a.read(), b.read()
	if fa.Data != fb.Data || fa.Headers["messageId"] == fb.Headers["messageId"] || !strings.Contains(fa.Data, id) {
		t.Errorf("got %+v and %+v", fa, fb)
	}
	a.ack(fa)
	b.ack(fb)
	must[dingtalktest.Ack](t)(s.WaitAck(ctx(t), id))
	noViolations(t, s)
}

func TestBacklogIsReplayedOnConnect(t *testing.T) {
	t.Parallel()
	o := still()
	o.Backlog, o.RedeliverAfter = time.Minute, dingtalktest.Never
	s := dingtalktest.NewServer(t, o)
	want := []string{s.Say(dingtalktest.Text("1")), s.Say(dingtalktest.Text("2"))}
	c := dial(t, s)
	for _, id := range want {
		if p := c.msg(); p["msgId"] != id {
			t.Errorf("got %v, want %s", p["msgId"], id)
		}
	}
}

func TestShuffledMessagesArriveOutOfOrder(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	c := dial(t, s)
	ids := s.SayShuffled(dingtalktest.Text("1"), dingtalktest.Text("2"), dingtalktest.Text("3"), dingtalktest.Text("4"))
	var got []string
	created := map[string]float64{}
	for range ids {
		p := c.msg()
		got = append(got, p["msgId"].(string))
		created[p["msgId"].(string)] = p["createAt"].(float64)
	}
	if slices.Equal(got, ids) {
		t.Error("the messages arrived in the order of their creation")
	}
	for i := 1; i < len(ids); i++ {
		if created[ids[i]] <= created[ids[i-1]] {
			t.Error("createAt does not rise with the order of creation")
		}
	}
}

func TestBurstReachesEveryConversation(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	c := dial(t, s)
	ids := s.Burst(150, 5, 100*time.Millisecond)
	seen := map[string]int{}
	for range ids {
		f := c.read()
		c.ack(f)
		conversation, _, _ := strings.Cut(f.Data[strings.Index(f.Data, `"cidBurst`)+1:], `"`)
		seen[conversation]++
	}
	if len(seen) != 5 || seen["cidBurst1"] != 30 {
		t.Errorf("the burst went to %v", seen)
	}
}

func TestStrangeFramesExpectNoParticularAck(t *testing.T) {
	t.Parallel()
	o := still()
	o.AckDeadline, o.ConnectedFrames = time.Millisecond, true
	s := dingtalktest.NewServer(t, o)
	c := dial(t, s)
	for _, topic := range []string{"CONNECTED", "REGISTERED"} {
		if f := c.read(); f.Headers["topic"] != topic {
			t.Errorf("got %+v", f)
		}
	}
	s.PushFrame(dingtalktest.Frame{Type: "MYSTERY", Topic: "/v9/none", Data: "{}", Headers: map[string]string{"time": "", "extra": "1"}})
	f := c.read()
	if _, has := f.Headers["time"]; f.Type != "MYSTERY" || has || f.Headers["extra"] != "1" {
		t.Errorf("got %+v", f)
	}
	c.write(`{"code":404,"headers":{"messageId":"` + f.Headers["messageId"] + `","contentType":"application/json"},"message":"","data":""}`)
	must[dingtalktest.Entry](t)(s.WaitEntry(ctx(t), "the 404", func(e dingtalktest.Entry) bool { return e.Kind == "ack" && e.Status == 404 }))
	s.PushFrame(dingtalktest.Frame{Type: "CALLBACK", Topic: "/not/subscribed", Data: "{}"})
	c.read()
	s.Advance(time.Minute)
	noViolations(t, s)
}

func TestDeafTimeIsMeasured(t *testing.T) {
	t.Parallel()
	o := still()
	o.MaxDeaf = time.Minute
	s := dingtalktest.NewServer(t, o)
	dial(t, s)
	s.Drop(dingtalktest.DropOptions{})
	s.Advance(2 * time.Minute)
	dial(t, s)
	waitViolation(t, s, dingtalktest.DeafTooLong)
	if st := s.State(); st.Apps[0].Deaf < 2*time.Minute || st.Apps[0].MaxLive != 1 {
		t.Errorf("the state is %+v", st.Apps)
	}
}

func TestWaitsSayWhatWasExpected(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	_, err := s.WaitReply(expired(), "cidRelease", "hello")
	for _, word := range []string{"hello", "cidRelease", "0 live of 0 connections", "canceled"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the error is %v, without %q", err, word)
		}
	}
}
