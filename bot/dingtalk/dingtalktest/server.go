package dingtalktest

import (
	crand "crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is one simulated DingTalk: the stream gateway, the open API and the session webhooks on one address. Any
// goroutine may call its methods.
type Server struct {
	*core
	*people
	*posts
	*webhooks
	*faults
	*stream
	*messages
	*openAPI
	*media
	*logins
	*cards

	ln   *listener
	http *http.Server
}

type core struct {
	// URL is the base of both api_base and oapi_base, without a trailing slash.
	URL string

	opts    Options
	done    chan struct{}
	wg      sync.WaitGroup
	summary func() string // for errors of waits

	mu         sync.Mutex
	changed    chan struct{} // closed and replaced at every change that a wait looks for
	waiters    int           // waits that hold or are about to take `changed`
	closed     bool
	offset     time.Duration // simulator's clock less the machine's
	rng        *rand.Rand
	timers     map[*timer]struct{}
	sends      map[string][]time.Time // rate windows: webhook per conversation, API per application, opens
	transcript []Entry
	seq        int
	violations []Violation
}

func newCore(opts Options, url string) *core {
	return &core{
		URL: url, opts: opts, done: make(chan struct{}), changed: make(chan struct{}),
		rng: rand.New(rand.NewPCG(opts.Seed, opts.Seed)), timers: map[*timer]struct{}{}, sends: map[string][]time.Time{},
	}
}

// New starts a simulator, which the caller closes. It panics when it can't listen, like httptest.NewServer.
func New(opts Options) *Server {
	s, err := Start(opts)
	if err != nil {
		panic(err)
	}
	return s
}

// Start is New with an error for a chosen address.
func Start(opts Options) (*Server, error) {
	opts = opts.withDefaults()
	ln, err := listen(opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("starting the DingTalk simulator on %s: %w", opts.Addr, err)
	}
	s := newServer(newCore(opts, "http://"+ln.Addr().String()))
	s.ln = ln
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	s.wg.Go(func() {
		_ = s.http.Serve(ln) // always ends with an error: closed
	})
	return s, nil
}

func newServer(c *core) *Server {
	s := &Server{core: c}
	s.people = newPeople(c)
	s.posts = &posts{core: c, posted: map[string]int{}, lastSaid: map[string]time.Time{}}
	s.webhooks = &webhooks{
		core: c, people: s.people, posts: s.posts,
		sessions: map[string]*session{}, uuids: map[string]bool{}, blocked: map[string]time.Time{},
	}
	s.faults = &faults{core: c, people: s.people}
	s.stream = &stream{core: c, people: s.people, faults: s.faults, tickets: map[string]*ticket{}, frames: map[string][]*push{}}
	s.messages = &messages{
		core: c, people: s.people, posts: s.posts, webhooks: s.webhooks, stream: s.stream, deliveries: map[deliveryKey]*delivery{},
	}
	s.stream.connected = s.messages.replayLocked
	s.openAPI = &openAPI{
		core: c, people: s.people, posts: s.posts, messages: s.messages,
		tokens: map[string]*token{}, keys: map[string]*sentMessage{}, emotions: map[string][]string{}, emotionTry: map[string]int{}, uploads: map[string]*file{},
		callsByCard: map[string]int{},
	}
	s.media = &media{core: c, people: s.people, openAPI: s.openAPI, files: map[string]*file{}}
	s.logins = &logins{core: c, people: s.people, openAPI: s.openAPI, codes: map[string]*loginCode{}, userTokens: map[string]*userToken{}}
	s.cards = newCards(c, s.people, s.posts, s.stream, s.openAPI)
	c.summary = s.describe
	return s
}

// Close waits until nothing of the simulator runs. It may be called twice.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
		for t := range s.timers {
			t.t.Stop()
		}
		clear(s.timers)
	}
	conns := append([]*conn(nil), s.conns...)
	s.mu.Unlock()
	for _, c := range conns {
		c.end("the simulator closes", false)
	}
	_ = s.http.Close()
	_ = s.ln.Close()
	s.wg.Wait()
}

// begin registers work that Close waits for; false: the server is closed.
func (s *core) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Add(1)
	return true
}

// Close waits for f.
func (s *core) spawnLocked(f func()) {
	if s.closed {
		return
	}
	s.wg.Go(func() {
		f()
	})
}

type timer struct{ t *time.Timer }

// afterLocked calls f after d without s.mu, unless the timer or the server stops first.
func (s *core) afterLocked(d time.Duration, f func()) *timer {
	if s.closed {
		return nil
	}
	t := &timer{}
	t.t = time.AfterFunc(d, func() {
		s.mu.Lock()
		_, live := s.timers[t]
		delete(s.timers, t)
		if !live || s.closed {
			s.mu.Unlock()
			return
		}
		s.wg.Add(1)
		s.mu.Unlock()
		defer s.wg.Done()
		f()
	})
	s.timers[t] = struct{}{}
	return t
}

func (s *core) stopLocked(t *timer) {
	if t == nil {
		return
	}
	t.t.Stop()
	delete(s.timers, t)
}

// sleep is false if the server or gone was closed first.
func (s *core) sleep(d time.Duration, gone <-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.done:
	case <-gone:
	}
	return false
}

// nowLocked is the simulator's clock. s.mu must be held.
func (s *core) nowLocked() time.Time { return time.Now().Add(s.offset) }

// Now is the simulator's time.
func (s *core) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nowLocked()
}

// Advance moves the simulator's clock: tickets, tokens, webhooks and rate windows age by d, and later messages carry
// the new time. Waiting (redelivery, pings, grace) keeps to real time.
func (s *core) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += d
	s.noteLocked(Entry{Kind: "clock", Detail: fmt.Sprintf("advanced by %s", d)})
}

func (s *core) latencyLocked() time.Duration {
	lo, hi := s.opts.LatencyMin, s.opts.LatencyMax
	if hi <= 0 {
		return 0
	}
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(s.rng.Int64N(int64(hi-lo)))
}

// wakeLocked makes every wait look again. s.mu must be held.
func (s *core) wakeLocked() {
	if s.waiters == 0 {
		return // usually there is no wait, and a channel for each line would cost most
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// rateLocked counts this event and those of the same name within the window.
func (s *core) rateLocked(name string, window time.Duration) int {
	now := s.nowLocked()
	kept := s.sends[name][:0]
	for _, t := range s.sends[name] {
		if now.Sub(t) < window {
			kept = append(kept, t)
		}
	}
	s.sends[name] = append(kept, now)
	return len(kept) + 1
}

func (s *core) forgetLastLocked(name string) {
	if l := s.sends[name]; len(l) > 0 {
		s.sends[name] = l[:len(l)-1]
	}
}

func (s *core) every(d time.Duration, gone <-chan struct{}, f func()) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			f()
		case <-gone:
			return
		case <-s.done:
			return
		}
	}
}

// Ids do not come from the seed: a gateway's database outlives a simulator.
func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = crand.Read(b) // never fails on the supported systems
	return b
}

func randomHex(n int) string { return hex.EncodeToString(randomBytes(n)) }

func newMsgID() string { return "msg" + base64.StdEncoding.EncodeToString(randomBytes(16)) }

func newUUID() string {
	h := randomHex(16)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func newFrameID() string {
	return randomHex(4) + "_" + randomHex(2) + "_" + randomHex(5) + "_" + randomHex(3)
}

// listener can stop for a while: clients see "connection refused".
type listener struct {
	addr net.Addr

	mu     sync.Mutex
	cur    net.Listener  // nil while refusing
	resume chan struct{} // closed when cur is set again
	closed bool
	done   chan struct{}
}

func listen(addr string) (*listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &listener{addr: ln.Addr(), cur: ln, done: make(chan struct{}), resume: make(chan struct{})}, nil
}

func (l *listener) Addr() net.Addr { return l.addr }

func (l *listener) Accept() (net.Conn, error) {
	for {
		l.mu.Lock()
		cur, resume, closed := l.cur, l.resume, l.closed
		l.mu.Unlock()
		if closed {
			return nil, net.ErrClosed
		}
		if cur == nil {
			select {
			case <-resume:
			case <-l.done:
			}
			continue
		}
		c, err := cur.Accept()
		if err == nil {
			return c, nil
		}
		l.mu.Lock()
		paused := l.cur != cur || l.closed
		l.mu.Unlock()
		if !paused {
			return nil, err
		}
	}
}

func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	close(l.done)
	if l.cur == nil {
		return nil
	}
	return l.cur.Close()
}

func (l *listener) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur == nil || l.closed {
		return
	}
	_ = l.cur.Close()
	l.cur = nil
	l.resume = make(chan struct{})
}

func (l *listener) unpause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur != nil || l.closed {
		return nil
	}
	ln, err := net.Listen("tcp", l.addr.String())
	if err != nil {
		return err
	}
	l.cur = ln
	close(l.resume)
	return nil
}

// RefuseConnections refuses new TCP connections for d; open ones stay.
func (s *Server) RefuseConnections(d time.Duration) {
	s.ln.pause()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked(Entry{Kind: "fault", Detail: fmt.Sprintf("connections refused for %s", d)})
	s.afterLocked(d, s.listenAgain)
}

func (s *Server) listenAgain() {
	err := s.ln.unpause()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil { // another process took the port: try until it is free again
		s.noteLocked(Entry{Kind: "fault", Detail: "listening again: " + err.Error()})
		s.afterLocked(100*time.Millisecond, s.listenAgain)
		return
	}
	s.noteLocked(Entry{Kind: "fault", Detail: "connections accepted again"})
}
