package leader

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/sessions"
	"ebb/sessions/lease"
	"ebb/sessions/periodic"
	"ebb/sessions/retry"
)

const (
	checkInterval = 500 * time.Millisecond
	// handOverTime bounds the wait of a stopping leader for the next connection.
	handOverTime     = 3 * time.Second
	handOverInterval = 25 * time.Millisecond
	// takeOverAfter is how long a leader may be disconnected before another replica connects and leads.
	takeOverAfter = 10 * time.Second
	// minConfirmations is the number of consecutive checks that must find another connected leader before this replica
	// disconnects. A replica that was suspended may announce a connection that it has lost.
	minConfirmations = 3
)

// Stream holds one stream connection among several replicas. Correctness does not depend on one connection: with two,
// each message arrives at one of them and is stored once. So a replica disconnects only when another is connected.
type Stream struct {
	cfg    Config
	leases *lease.Holder
	accept chat.Accept

	leader  atomic.Pointer[sessions.Leader] // at the last check; nil: never checked
	changed chan struct{}                   // another replica announced a change

	// The fields below belong to the goroutine of Receive.
	cancel        context.CancelFunc // nil while the transport does not run
	ended         chan error
	startedAt     time.Time
	stored        sessions.ReplicaStatus
	answeredAt    time.Time // last answer of the storage about the leader
	connectedAt   time.Time // when the leader was last known to be connected
	confirmations int       // consecutive checks that found another connected leader
}

// Config has the settings of a [Stream].
type Config struct {
	Elector   sessions.Elector
	LeaseTTL  time.Duration
	OneStream bool // only the leader runs the transport
	Transport chat.Transport
}

// New returns a stream that passes its messages to accept.
func New(cfg Config, leases *lease.Holder, accept chat.Accept) *Stream {
	return &Stream{cfg: cfg, leases: leases, accept: accept, changed: make(chan struct{}, 1)}
}

// Changed triggers a check at once.
func (s *Stream) Changed() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Leads reports whether this replica was the leader at the last check.
func (s *Stream) Leads() bool {
	l := s.leader.Load()
	return l != nil && l.Replica == s.leases.Owner()
}

// StandsBy reports whether another replica was the leader at the last check: this one needs no connection.
func (s *Stream) StandsBy() bool {
	l := s.leader.Load()
	return l != nil && l.Replica != "" && l.Replica != s.leases.Owner()
}

// Receive accepts messages until ctx ends: all the time, or while this replica leads. Before it returns it tries to
// announce that this replica drains; Leave repeats that. The error is the transport's.
func (s *Stream) Receive(ctx context.Context) error {
	if !s.cfg.OneStream {
		return s.receiveAlways(ctx)
	}
	s.ended, s.connectedAt, s.answeredAt = make(chan error, 1), time.Now(), time.Now()
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		s.check(ctx)
		wait := tick.C
		if s.cancel != nil && !s.stored.Connected && time.Since(s.startedAt) < handOverTime { // other replicas wait for the connection
			wait = time.After(handOverInterval)
		}
		select {
		case <-ctx.Done():
		case <-s.changed:
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

func (s *Stream) receiveAlways(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- s.cfg.Transport.Run(ctx, s.accept) }()
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			_ = s.storeStatus(context.WithoutCancel(ctx), sessions.ReplicaStatus{Draining: true})
			return err
		case <-tick.C:
		}
		if ctx.Err() == nil {
			_ = s.storeStatus(ctx, sessions.ReplicaStatus{Connected: s.cfg.Transport.Ready()})
		}
	}
}

// check connects or disconnects. While the storage is unavailable nothing changes for LeaseTTL and takeOverAfter, the
// time in which another replica takes over. A replica without trusted leases can't accept messages then, and
// disconnects until the storage answers.
func (s *Stream) check(ctx context.Context) {
	_ = s.storeStatus(ctx, sessions.ReplicaStatus{Connected: s.cancel != nil && s.cfg.Transport.Ready()})
	l, err := s.readLeader(ctx)
	log := zerolog.Ctx(ctx)
	if err != nil {
		if s.cancel != nil && time.Since(s.answeredAt) > s.cfg.LeaseTTL+takeOverAfter && !s.leases.Trusted() {
			log.Warn().Msg("Database unreachable for too long: disconnecting from DingTalk")
			s.disconnectNow(ctx)
		}
		return
	}
	s.answeredAt = time.Now()
	if l.Connected {
		s.connectedAt = time.Now()
	}
	elsewhere := l.Connected && l.Replica != s.leases.Owner()
	if s.confirmations++; !elsewhere {
		s.confirmations = 0
	}
	switch {
	case s.cancel == nil && l.Replica == s.leases.Owner():
		log.Info().Msg("Leading: connecting to DingTalk")
		s.connect(ctx)
	case s.cancel == nil && l.Replica != "" && time.Since(s.connectedAt) > takeOverAfter:
		log.Warn().Str("leader", string(l.Replica)).Msg("The leader is not connected: connecting to DingTalk in its place")
		s.connect(ctx)
	case s.cancel != nil && s.confirmations >= minConfirmations:
		log.Info().Str("leader", string(l.Replica)).Msg("Another replica leads: standing by")
		s.disconnectNow(ctx)
	}
}

func (s *Stream) readLeader(ctx context.Context) (sessions.Leader, error) {
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

func (s *Stream) storeStatus(ctx context.Context, st sessions.ReplicaStatus) error {
	if st == s.stored {
		return nil
	}
	one, stop := context.WithTimeout(ctx, s.cfg.LeaseTTL)
	defer stop()
	if err := s.cfg.Elector.Mark(one, s.leases.Owner(), st); err != nil {
		periodic.LogFailure(ctx, err, "Failed to store the status of this replica")
		return err
	}
	s.stored = st
	return nil
}

func (s *Stream) connect(ctx context.Context) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a stop hands over first
	s.cancel, s.startedAt, s.confirmations = cancel, time.Now(), 0
	go func() { s.ended <- s.cfg.Transport.Run(running, s.accept) }()
}

func (s *Stream) disconnect() error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	s.cancel = nil
	return <-s.ended
}

func (s *Stream) disconnectNow(ctx context.Context) {
	if err := s.disconnect(); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to close the stream connection")
	}
}

// Leave announces after Receive that this replica accepts no more messages. It is repeated until it is stored or ctx
// ends, since other replicas may wait for it.
func (s *Stream) Leave(ctx context.Context) { s.announce(ctx, sessions.ReplicaStatus{Draining: true}) }

func (s *Stream) announce(ctx context.Context, st sessions.ReplicaStatus) {
	_ = retry.Do(ctx, retry.Pauses{First: handOverInterval, Max: checkInterval}, func() error { // storeStatus logs its errors
		return s.storeStatus(ctx, st)
	})
}

// handOver gives up the lead, and keeps the connection until the next leader's: no message arrives without a
// receiver.
func (s *Stream) handOver(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, handOverTime)
	defer stop()
	began := time.Now()
	s.announce(ctx, sessions.ReplicaStatus{Connected: s.stored.Connected, Draining: true})
	if s.cancel == nil || !s.stored.Draining {
		return
	}
	_ = periodic.Poll(ctx, handOverInterval, func() (bool, error) { // it only fails at the end of ctx
		l, err := s.readLeader(ctx)
		if err != nil || l.Replica == "" || l.Connected {
			zerolog.Ctx(ctx).Info().Str("to", string(l.Replica)).Dur("took_ms", time.Since(began)).Msg("Stream handed over")
			return true, nil //nolint:nilerr // without a readable lead it is another replica's
		}
		return false, nil
	})
}
