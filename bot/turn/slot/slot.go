// Package slot gives a turn its place, one at a time per session and a bounded number together, with the waiting messages under a lease.
// It knows the turns that run here, and finds the commands that stop them, before they begin and while they run.
package slot

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/gate"
	"ebb/bot/parts"
	"ebb/bot/turn/choice"
	"ebb/bot/turn/persist"
	"ebb/sessions"
	"ebb/sessions/guard"
	"ebb/sessions/llm"
)

// ErrHeartbeat means that this replica can't be sure of its leases until its next heartbeat.
var ErrHeartbeat = errors.New("heartbeat is overdue: leases can't be trusted")

// Config has the dependencies and settings of [Slots]. All but Display and Receiver are required.
type Config struct {
	Shared   *parts.Shared
	Turns    Turns
	Waiting  Waiting
	Cards    Cards
	Notices  Notices
	Outbox   Outbox
	Commands choice.Commands
	Chooser  *choice.Chooser
	Display  chat.Display
	Receiver chat.Receiver

	MaxTurns  int           // concurrent turns
	MaxMerged int           // messages answered in one turn
	Gather    time.Duration // wait of a turn for further messages; 0: none
	BusyNote  time.Duration // a longer turn is announced once; 0: never
}

// Slots gives turns their places. Its fields know the turns that wait and run.
type Slots struct {
	cfg       Config
	Gathering *Gathering
	Running   *Running
	Inbox     Inbox
	Screen    Screen
	Watch     Watch

	queue queue
}

// New returns slots that are all free.
func New(cfg Config) *Slots {
	p, running := cfg.Shared, &Running{}
	inbox := Inbox{cfg.Waiting, cfg.Commands, running, p.CommitTimeout}
	screen := Screen{cfg.Display, running, cfg.Outbox, cfg.Chooser.Kinds, p.Now}
	return &Slots{
		cfg: cfg, Gathering: &Gathering{wait: cfg.Gather, draining: p.Draining, receiver: cfg.Receiver}, Running: running, Inbox: inbox, Screen: screen,
		Watch: Watch{p, cfg.Cards, cfg.Notices, cfg.Outbox, inbox, screen, running, cfg.BusyNote},
		queue: queue{
			free: gate.NewFairSemaphore(cfg.MaxTurns, p.Draining), asides: gate.NewFairSemaphore(max(1, cfg.MaxTurns/gate.TurnsPerCall), nil),
			lookers: gate.NewFairSemaphore(maxLookers, nil), suspects: &Suspects{Closed: p.Draining},
			running: running, inbox: inbox, screen: screen, commands: cfg.Commands, chooser: cfg.Chooser, now: p.Now, maxMerged: cfg.MaxMerged,
		},
	}
}

// Slot is the place of a turn, with its session's view. The waiting messages are marked under the lease.
type Slot struct {
	Lease sessions.Lease
	View  sessions.View
	Leave func() // gives the place back; never nil
	// Aside is the message that stops the turn, for a place beside the slots; 0: it is a slot, or a command's place.
	Aside int64
}

// Lease takes a session's lease, and queues the replies that an earlier owner left unsent.
func (s *Slots) Lease(ctx context.Context, key sessions.Key) (sessions.Lease, error) {
	// The timeout frees the slot when a statement hangs.
	one, stop := context.WithTimeout(ctx, s.cfg.Shared.CommitTimeout)
	defer stop()
	return s.lease(one, key)
}

func (s *Slots) lease(ctx context.Context, key sessions.Key) (sessions.Lease, error) {
	l, err := s.cfg.Shared.Leases.Get(ctx, key)
	if err != nil {
		return l, err
	}
	return l, s.cfg.Outbox.Resume(WithLease(ctx, l), l)
}

// Show shows the oldest waiting message before its turn waits. A failure does not delay the turn, which finds out itself.
func (s *Slots) Show(ctx context.Context, key sessions.Key) {
	if !s.Screen.acknowledges() {
		return
	}
	defer logPanic(ctx)
	one, stop := context.WithTimeout(ctx, s.cfg.Shared.CommitTimeout)
	defer stop()
	l, err := s.cfg.Shared.Leases.Get(one, key)
	if err != nil {
		return
	}
	pending, err := s.Inbox.newest(one, key)
	if err != nil {
		zerolog.Ctx(ctx).Debug().Err(err).EmbedObject(key).Msg("Waiting message not shown")
		return
	}
	s.Screen.acknowledge(ctx, l, pending, nil)
}

// Take waits for a place, and marks the messages that the turn begins with. A suspect waits for its place among suspects; nothing is marked
// before. Commands that come meanwhile are taken first. After [llm.ErrStop] the next owner answers the messages in the log.
func (s *Slots) Take(ctx context.Context, l sessions.Lease, rest Rest) (Slot, error) {
	taken, p, err := s.begin(ctx, l, rest, entry{})
	if err != nil || taken.View.Suspect == 0 {
		return taken, err
	}
	taken.Leave()
	l, e := taken.Lease, entry{alone: true}
	if taken.View.Suspect < choice.MaxBroken {
		one, stop := context.WithTimeout(ctx, s.cfg.Shared.CommitTimeout)
		n, err := s.cfg.Turns.Suspects(one)
		stop()
		if err != nil {
			taken.Leave = func() {}
			return taken, err
		}
		e.width = widthAmong(n, taken.View)
	}
	c := joining{begun: make(chan struct{})}
	defer close(c.begun)
	if taken.View.Width != sessions.Joined { // after a death beside others it runs alone to its end
		e.joined = func() { s.markJoined(ctx, &c) }
	}
	taken, p, err = s.begin(ctx, l, rest, e)
	if c.lease = taken.Lease; err == nil && len(taken.View.Pending) == 1 {
		c.event = taken.View.Pending[0].ID
	}
	// The attempts may be panics, and data that the storage refused.
	if err == nil && e.width > 0 && taken.View.Suspect > 0 && p.command == 0 && p.stop == 0 {
		zerolog.Ctx(ctx).Warn().EmbedObject(l.Key).Int("attempts", taken.View.Suspect).Int("width", e.width).Msg("Message of broken turns was taken alone")
	}
	return taken, err
}

// joining is a suspect that may be joined by other turns.
type joining struct {
	begun chan struct{} // closed when the fields are set
	lease sessions.Lease
	event int64 // 0: no message is marked
}

// markJoined marks the message of a suspect before others run next to it, since a death may be theirs then.
func (s *Slots) markJoined(ctx context.Context, c *joining) {
	defer logPanic(ctx)
	<-c.begun
	if c.event == 0 {
		return
	}
	err := persist.Write(ctx, s.cfg.Shared.CommitTimeout, "Suspect not marked as one beside others, trying again", func(one context.Context) error {
		_, err := s.cfg.Turns.BeginAlone(one, c.lease, 1, sessions.Alone{Event: c.event, Width: sessions.Joined})
		return err
	})
	if err != nil && !sessions.IsFinal(err) {
		zerolog.Ctx(ctx).Warn().EmbedObject(c.lease.Key).Err(err).Msg("Suspect not marked as one beside others")
	}
}

// widthAmong is half of n suspects, or less if deaths narrowed them down further.
func widthAmong(n int, v sessions.View) int {
	width := max(1, (n+1)/2)
	if v.Width == sessions.Joined {
		return 1
	}
	if v.Width > 0 {
		width = min(width, v.Width)
	}
	return width
}

// leaseTries bounds the leases of one turn; a session that loses more passes its slot on.
const leaseTries = 3

// begin enters a slot and marks messages there.
func (s *Slots) begin(ctx context.Context, l sessions.Lease, rest Rest, e entry) (taken Slot, p admission, err error) {
	p, err = s.queue.enter(ctx, l, rest, e)
	if err != nil {
		return Slot{Lease: l, Leave: func() {}}, p, llm.ErrStop
	}
	marked := false
	defer func() {
		if !marked { // during a panic: no caller gets the slot
			p.release()
		}
	}()
	taken = Slot{Lease: l, Leave: p.release, Aside: p.stop}
	taken.Lease, taken.View, err = s.mark(ctx, l, e, p)
	marked = true
	return taken, p, err
}

// mark takes a lease again that an erasure took, and keeps the slot. Otherwise frequent erasures would starve the
// turn, and no mark would count them.
func (s *Slots) mark(ctx context.Context, l sessions.Lease, e entry, p admission) (_ sessions.Lease, v sessions.View, err error) {
	if !s.cfg.Shared.Leases.Trusted() { // the wait may have been long
		return l, v, ErrHeartbeat
	}
	guard.GrowStack()
	// The timeout frees the slot when a statement hangs.
	one, stop := context.WithTimeout(ctx, s.cfg.Shared.CommitTimeout)
	defer stop()
	for tries := 1; ; tries++ {
		if e.alone || p.command != 0 {
			v, err = s.cfg.Turns.BeginAlone(one, l, s.cfg.MaxMerged, p.takes(e))
		} else {
			v, err = s.cfg.Turns.Begin(one, l, s.cfg.MaxMerged)
		}
		if !errors.Is(err, sessions.ErrLeaseLost) || tries == leaseTries {
			return l, v, err
		}
		_ = s.cfg.Shared.Leases.Check(l.Key, err)
		if l, err = s.lease(one, l.Key); err != nil {
			return l, v, err
		}
	}
}
