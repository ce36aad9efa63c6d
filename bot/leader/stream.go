package leader

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/periodic"
	"ebb/sessions"
	"ebb/sessions/lease"
)

const (
	// LookEvery is how often it is asked who leads, besides each time that another replica tells of a change.
	LookEvery = 500 * time.Millisecond
	// HandOverTime is how long a leader that stops keeps its connection for the next one to be connected.
	HandOverTime = 3 * time.Second
	// handOverLook is how often it looks meanwhile.
	handOverLook = 25 * time.Millisecond
	// HelpAfter is how long a leader may be without a connection before another replica connects too, and leads then.
	HelpAfter = 10 * time.Second
	// sureAfter is how often in a row another replica must be seen to lead and be connected before the own connection is
	// given up: one that was away tells of a connection that it may not have any more, until it looks itself.
	sureAfter = 3
)

// Stream is this replica's part in holding one stream connection among several replicas: the one that leads holds it, and
// the others stand by. Nothing depends on there being one: two deliver each message to one of them, and each message is
// stored once anyway. So a connection is given up only when another is there.
type Stream struct {
	cfg    Config
	leases *lease.Holder
	accept chat.Accept

	leader atomic.Pointer[sessions.Leader] // as last heard; nil: never
	poke   chan struct{}                   // another replica told of a change

	// Of Run's goroutine alone.
	cancel   context.CancelFunc // ends the transport; nil where it does not run
	ended    chan error         // the transport's end
	began    time.Time          // when the transport last did
	marked   sessions.ReplicaStatus
	answered time.Time // when the storage last said who leads
	covered  time.Time // when the leader was last known to be connected
	sure     int       // looks in a row that saw another one lead and connected
}

// Config is what a stream needs.
type Config struct {
	Elector   sessions.Elector // nil: no replica leads
	LeaseTTL  time.Duration
	OneStream bool // only the replica that leads runs the transport
	Transport chat.Transport
}

func New(cfg Config, leases *lease.Holder, accept chat.Accept) *Stream {
	return &Stream{cfg: cfg, leases: leases, accept: accept, poke: make(chan struct{}, 1)}
}

// Changed has it asked anew who leads.
func (s *Stream) Changed() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// Leads reports whether this replica was the leader when it last looked.
func (s *Stream) Leads() bool {
	l := s.leader.Load()
	return l != nil && l.Replica == s.leases.Owner()
}

// StandsBy reports whether another replica was the leader then: this one needs no connection.
func (s *Stream) StandsBy() bool {
	l := s.leader.Load()
	return l != nil && l.Replica != "" && l.Replica != s.leases.Owner()
}

// Receive takes messages in until ctx ends: all the time, or while this replica leads. Before it returns others know
// that it leads no more, if the storage takes it; else leave tells them.
func (s *Stream) Receive(ctx context.Context) error {
	if !s.cfg.OneStream {
		err := s.cfg.Transport.Run(ctx, s.accept)
		s.mark(context.WithoutCancel(ctx), sessions.ReplicaStatus{Draining: true})
		return err
	}
	s.ended, s.covered, s.answered = make(chan error, 1), time.Now(), time.Now()
	tick := time.NewTicker(LookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		s.look(ctx)
		wait := tick.C
		if s.cancel != nil && !s.marked.Connected && time.Since(s.began) < HandOverTime { // others wait for it
			wait = time.After(handOverLook)
		}
		select {
		case <-ctx.Done():
		case <-s.poke:
		case <-wait:
		case err := <-s.ended:
			s.cancel()
			return err
		}
	}
	life := context.WithoutCancel(ctx)
	s.handOver(life)
	return s.disconnect()
}

// look asks who leads, and connects or disconnects accordingly. While the storage does not say, all stays as it is, for as
// long as another replica takes to connect where it is this one alone that does not reach it. One that has lost its leases
// by then can take no message in, and gives up the connection until it is told again who leads.
func (s *Stream) look(ctx context.Context) {
	s.mark(ctx, sessions.ReplicaStatus{Connected: s.cancel != nil && s.cfg.Transport.Ready()})
	l, err := s.ask(ctx)
	log := zerolog.Ctx(ctx)
	if err != nil {
		if s.cancel != nil && time.Since(s.answered) > s.cfg.LeaseTTL+HelpAfter && !s.leases.Trusted() {
			log.Warn().Msg("The storage has been away for long: disconnecting from DingTalk")
			s.disconnectNow(ctx)
		}
		return
	}
	s.answered = time.Now()
	if l.Connected {
		s.covered = time.Now()
	}
	elsewhere := l.Connected && l.Replica != s.leases.Owner()
	if s.sure++; !elsewhere {
		s.sure = 0
	}
	switch {
	case s.cancel == nil && l.Replica == s.leases.Owner():
		log.Info().Msg("Leading: connecting to DingTalk")
		s.connect(ctx)
	case s.cancel == nil && l.Replica != "" && time.Since(s.covered) > HelpAfter:
		log.Warn().Str("leader", string(l.Replica)).Msg("The leader is not connected: connecting to DingTalk in its place")
		s.connect(ctx)
	case s.cancel != nil && s.sure >= sureAfter:
		log.Info().Str("leader", string(l.Replica)).Msg("Another replica leads: standing by")
		s.disconnectNow(ctx)
	}
}

// ask keeps the storage's word of who leads.
func (s *Stream) ask(ctx context.Context) (sessions.Leader, error) {
	one, stop := context.WithTimeout(ctx, s.cfg.LeaseTTL)
	defer stop()
	l, err := s.cfg.Elector.Leader(one)
	if err != nil {
		periodic.LogFailure(ctx, err, "Which replica leads is not known")
		return l, err
	}
	if old := s.leader.Swap(&l); old == nil || old.Replica != l.Replica {
		zerolog.Ctx(ctx).Info().Str("leader", string(l.Replica)).Bool("self", s.Leads()).Msg("Replica leads the stream")
	}
	return l, nil
}

// mark tells others how this replica stands, where that is new.
func (s *Stream) mark(ctx context.Context, st sessions.ReplicaStatus) {
	if s.cfg.Elector == nil || st == s.marked {
		return
	}
	one, stop := context.WithTimeout(ctx, s.cfg.LeaseTTL)
	defer stop()
	if err := s.cfg.Elector.Mark(one, s.leases.Owner(), st); err != nil {
		periodic.LogFailure(ctx, err, "Others were not told how this replica stands")
		return
	}
	s.marked = st
}

// connect has the transport run, until disconnect.
func (s *Stream) connect(ctx context.Context) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a stop hands over first
	s.cancel, s.began, s.sure = cancel, time.Now(), 0
	go func() { s.ended <- s.cfg.Transport.Run(running, s.accept) }()
}

// disconnect ends the transport and waits for what it has in hand.
func (s *Stream) disconnect() error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	s.cancel = nil
	return <-s.ended
}

// disconnectNow is disconnect, where the replica goes on.
func (s *Stream) disconnectNow(ctx context.Context) {
	if err := s.disconnect(); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Stream connection did not end well")
	}
}

// Leave tells others that this replica takes nothing in any more, once receive has ended. They may be waiting for that
// word alone, so it is said until it is heard, or ctx ends.
func (s *Stream) Leave(ctx context.Context) { s.tell(ctx, sessions.ReplicaStatus{Draining: true}) }

// tell marks until others know, or ctx ends.
func (s *Stream) tell(ctx context.Context, st sessions.ReplicaStatus) {
	for pause := handOverLook; s.cfg.Elector != nil; pause = min(2*pause, LookEvery) {
		if s.mark(ctx, st); s.marked == st {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// handOver gives up the lead, and keeps the connection until the next leader has one: no message comes at a moment at
// which nobody is there.
func (s *Stream) handOver(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, HandOverTime)
	defer stop()
	began := time.Now()
	s.tell(ctx, sessions.ReplicaStatus{Connected: s.marked.Connected, Draining: true})
	if s.cancel == nil || !s.marked.Draining {
		return
	}
	tick := time.NewTicker(handOverLook)
	defer tick.Stop()
	for {
		l, err := s.ask(ctx)
		if err != nil || l.Replica == "" || l.Connected {
			zerolog.Ctx(ctx).Info().Str("to", string(l.Replica)).Dur("took_ms", time.Since(began)).Msg("Stream handed over")
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
