package robots

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"ebb/bot/chat"
	"ebb/sessions"
)

// wire is a transport that records its calls.
type wire struct {
	ready, failing bool
	frame          sessions.RobotCode // that a message names
	err            error
	ran            atomic.Int64
	sent           []sessions.RobotCode
	downloaded     []sessions.RobotCode
	uploaded       []sessions.RobotCode
	clicked        func(context.Context, chat.Click) chat.Clicked
}

func (w *wire) Run(ctx context.Context, accept chat.Accept) error {
	w.ran.Add(1)
	if w.err != nil {
		return w.err
	}
	if err := accept(ctx, sessions.Message{RobotCode: w.frame, ID: sessions.MessageID("of " + w.frame)}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func (w *wire) Send(_ context.Context, o sessions.Outgoing) (chat.Sent, error) {
	w.sent = append(w.sent, o.Reply.Target.RobotCode)
	return chat.Sent{}, nil
}
func (w *wire) Download(_ context.Context, robot sessions.RobotCode, _ sessions.Attachment, _ *os.File, _ int64) error {
	w.downloaded = append(w.downloaded, robot)
	return nil
}
func (w *wire) Upload(_ context.Context, robot sessions.RobotCode, _ sessions.File) (string, error) {
	w.uploaded = append(w.uploaded, robot)
	return "@media", nil
}
func (w *wire) Ready() bool                                              { return w.ready }
func (w *wire) Failing() bool                                            { return w.failing }
func (w *wire) AwaitReceived(context.Context, sessions.ConversationID)   {}
func (w *wire) OnClick(f func(context.Context, chat.Click) chat.Clicked) { w.clicked = f }
func outgoing(robot sessions.RobotCode) sessions.Outgoing {
	return sessions.Outgoing{Reply: sessions.Reply{Target: sessions.Target{RobotCode: robot}}}
}

// Each call goes to the transport of its robot; one of a robot that is not configured any more goes to the first.
func TestCallsGoToTheirRobot(t *testing.T) {
	t.Parallel()
	a, b := &wire{}, &wire{}
	r := New([]Robot{{Code: "a", Transport: a}, {Code: "b", Transport: b}}, nil)
	for _, code := range []sessions.RobotCode{"b", "a", "gone", "b"} {
		if _, err := r.Send(t.Context(), outgoing(code)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(a.sent, []sessions.RobotCode{"a", "gone"}) || !slices.Equal(b.sent, []sessions.RobotCode{"b", "b"}) {
		t.Errorf("a sent %q, b sent %q", a.sent, b.sent)
	}
	if err := r.Download(t.Context(), "b", sessions.Attachment{}, nil, 0); err != nil || len(a.downloaded) > 0 || len(b.downloaded) != 1 {
		t.Errorf("a file of b was asked of a %d times, of b %d times: %v", len(a.downloaded), len(b.downloaded), err)
	}
	if _, err := r.Upload(t.Context(), "b", sessions.File{}); err != nil || len(a.uploaded) > 0 || len(b.uploaded) != 1 {
		t.Errorf("a file of b was uploaded %d times by a, %d times by b: %v", len(a.uploaded), len(b.uploaded), err)
	}
	r.OnClick(func(context.Context, chat.Click) chat.Clicked { return chat.Clicked{Hide: true} })
	if a.clicked == nil || !b.clicked(t.Context(), chat.Click{}).Hide {
		t.Error("clicks of a robot have no receiver")
	}
}

// A robot that fails stops none of the others. One that still connects is awaited: its messages would have no receiver.
func TestReadyWithoutARefusedRobot(t *testing.T) {
	t.Parallel()
	up, down, refused := &wire{ready: true}, &wire{}, &wire{failing: true}
	for _, c := range []struct {
		name string
		a, b *wire
		want bool
	}{
		{"both up", up, up, true}, {"one connects", up, down, false}, {"the second is refused", up, refused, true},
		{"both are refused", refused, refused, false}, {"the first is refused", refused, up, true}, {"both connect", down, down, false},
	} {
		r := New([]Robot{{Code: "a", Transport: c.a}, {Code: "b", Transport: c.b}}, nil)
		if got := r.Ready(); got != c.want {
			t.Errorf("%s: ready %t", c.name, got)
		}
	}
	r := New([]Robot{{Code: "a", Transport: &wire{failing: true}}, {Code: "b", Transport: &wire{ready: true}}}, nil)
	if got := r.First(); got != "b" {
		t.Errorf("%s writes to administrators", got)
	}
}

// A message belongs to the robot whose connection brought it. The code in a frame may be another one: the settings and credentials of that
// robot, or of none, are not for it.
func TestMessagesBelongToTheirConnection(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	got := make(chan sessions.Message, 2)
	ended := make(chan error, 1)
	go func() {
		ended <- New([]Robot{{Code: "a", Transport: &wire{frame: "b"}}, {Code: "b", Transport: &wire{frame: "normal"}}}, nil).
			Run(ctx, func(_ context.Context, m sessions.Message) error { got <- m; return nil })
	}()
	codes := map[sessions.RobotCode]sessions.MessageID{}
	for range 2 {
		m := <-got
		codes[m.RobotCode] = m.ID
	}
	stop()
	if err := <-ended; err != nil || codes["a"] != "of b" || codes["b"] != "of normal" {
		t.Errorf("messages are of %v, %v", codes, err)
	}
}

// All run until the end, whatever one of them returns. Only the failure of all ends the run.
func TestRunGoesOnWithoutOne(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	a, b := &wire{err: broken}, &wire{}
	ctx, stop := context.WithCancel(t.Context())
	accepted := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- New([]Robot{{Code: "a", Transport: a}, {Code: "b", Transport: b}}, nil).Run(ctx, func(context.Context, sessions.Message) error { close(accepted); return nil })
	}()
	<-accepted
	select {
	case err := <-ended:
		t.Fatalf("the run ended with %v", err)
	default:
	}
	stop()
	if err := <-ended; err != nil || a.ran.Load() != 1 {
		t.Errorf("the run ended with %v", err)
	}
	if err := New([]Robot{{Transport: &wire{err: broken}}, {Transport: &wire{err: broken}}}, nil).Run(t.Context(), nil); !errors.Is(err, broken) {
		t.Errorf("the run of two broken robots ended with %v", err)
	}
}

// screen is a display that counts turns.
type screen struct{ shown, queued int }

func (s *screen) Show(context.Context, chat.Shown) chat.Live { s.shown++; return nil }
func (s *screen) Queue(context.Context, chat.Shown) func() {
	s.queued++
	return func() {}
}

// Turns are shown by the display of their session's robot, and those of a robot that is not configured by none.
func TestDisplayOfTheRobot(t *testing.T) {
	t.Parallel()
	s := &screen{}
	r := New([]Robot{{Code: "b", Transport: &wire{}, Display: s}, {Code: "a", Transport: &wire{}, Display: chat.NoDisplay{}}}, nil)
	d := r.Display()
	for _, robot := range []sessions.RobotCode{"a", "b", "b", "gone"} {
		shown := chat.Shown{Lease: sessions.Lease{Key: sessions.NewKey(robot, "c", "")}}
		if live := d.Show(t.Context(), shown); live != nil {
			t.Errorf("robot %s: %v", robot, live)
		}
		d.(chat.Queuer).Queue(t.Context(), shown)()
		d.(chat.Acknowledger).Acknowledge(t.Context(), shown.Lease, sessions.Event{})
	}
	if s.shown != 2 || s.queued != 2 {
		t.Errorf("%d turns shown, %d queued", s.shown, s.queued)
	}
	if d := New([]Robot{{Code: "a", Transport: &wire{}, Display: chat.NoDisplay{}}}, nil).Display(); d != (chat.NoDisplay{}) {
		t.Errorf("a display without any: %v", d)
	}
}
