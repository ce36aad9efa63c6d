package bot_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/bot/off"
	"ebb/bot/reload"
	"ebb/compaction"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sql"
)

// patience is how long a test waits for what must come, on a busy machine.
const patience = 30 * time.Second

// step is one call of the storage by which a compaction goes on, with the statements that it took.
type step struct {
	op         string
	statements int
}

// pgStore is the PostgreSQL storage of one bot. The steps of a compaction go over a link of their own, which counts
// their statements alone.
type pgStore struct {
	*sql.Store
	stepping *sql.Store
	link     *link

	beating sync.Mutex
	silent  bool

	mu       sync.Mutex
	steps    []step                       // done so far
	failed   map[string]error             // the last error of each operation
	views    []sessions.View              // that maintenance read
	before   func(op string, n int) error // asked before a step, with its number from 0 on; nil: all is well
	after    func(op string, n int) error // asked when a step has done its work: its answer gets lost
	accepted func() error                 // asked when a message is stored
	begin    func() error                 // asked before a turn or upkeep reads the conversation
	began    func(views int)              // called when maintenance has read the view a number of times
}

func stepOf[T any](s *pgStore, op string, f func() (T, error)) (T, error) {
	s.mu.Lock()
	n, before, after := len(s.steps), s.before, s.after
	s.mu.Unlock()
	var none T
	s.link.watch(0, false)
	if before != nil {
		if err := before(op, n); err != nil {
			return none, err
		}
	}
	v, err := f()
	s.mu.Lock()
	s.steps = append(s.steps, step{op, s.link.statements()})
	if err != nil {
		s.failed[op] = err
	}
	s.mu.Unlock()
	if err == nil && after != nil {
		if err := after(op, n); err != nil {
			return none, err
		}
	}
	return v, err
}

// ports are the stores of the bot. Steps, and some calls besides, are the test's.
func (s *pgStore) ports() sessions.Stores {
	p := s.Ports()
	p.Inbox, p.Turns, p.Leases = pgInbox{p.Inbox, s}, pgTurns{p.Turns, s}, pgLeases{p.Leases, s}
	p.Jobs, p.Compactions = pgJobs{s.stepping.Jobs, s}, pgCompactions{p.Compactions, s}
	return p
}

func (s *pgStore) memory() memory.Stores {
	m := s.Memory()
	m.Flushes = pgFlushes{m.Flushes, s}
	return m
}

type (
	pgInbox struct {
		sessions.Inbox
		s *pgStore
	}
	pgTurns struct {
		sessions.Turns
		s *pgStore
	}
	pgLeases struct {
		sessions.Leases
		s *pgStore
	}
	pgJobs struct {
		sessions.Jobs
		s *pgStore
	}
	pgCompactions struct {
		sessions.Compactor
		s *pgStore
	}
	pgFlushes struct {
		memory.Flushes
		s *pgStore
	}
)

func (p pgInbox) AcceptHere(
	ctx context.Context, o sessions.ReplicaID, k sessions.Key, m sessions.Message, among []sessions.Key,
) (sessions.Accepted, error) {
	a, err := p.Inbox.AcceptHere(ctx, o, k, m, among)
	p.s.mu.Lock()
	accepted := p.s.accepted
	p.s.mu.Unlock()
	if err == nil && accepted != nil {
		return sessions.Accepted{}, accepted()
	}
	return a, err
}

func (p pgJobs) OpenJob(ctx context.Context, l sessions.Lease, j sessions.Job) (sessions.Source, error) {
	return stepOf(p.s, "open", func() (sessions.Source, error) { return p.Jobs.OpenJob(ctx, l, j) })
}

func (p pgJobs) StageJob(ctx context.Context, l sessions.Lease, j sessions.Job, staged []byte, paid sessions.Spending) error {
	_, err := stepOf(p.s, "stage", func() (struct{}, error) { return struct{}{}, p.Jobs.StageJob(ctx, l, j, staged, paid) })
	return err
}

func (p pgCompactions) Compact(ctx context.Context, l sessions.Lease, c sessions.Compaction) (sessions.Compacted, error) {
	return stepOf(p.s, "compact", func() (sessions.Compacted, error) { return p.s.stepping.Compactions.Compact(ctx, l, c) })
}

func (p pgFlushes) Flush(ctx context.Context, l sessions.Lease, f memory.Flush) (memory.Receipt, error) {
	return stepOf(p.s, "flush", func() (memory.Receipt, error) { return p.s.stepping.Flushes.Flush(ctx, l, f) })
}

func (p pgTurns) Begin(ctx context.Context, l sessions.Lease, limit int) (sessions.View, error) {
	s := p.s
	s.mu.Lock()
	begin := s.begin
	s.mu.Unlock()
	if begin != nil {
		if err := begin(); err != nil {
			return sessions.View{}, err
		}
	}
	v, err := p.Turns.Begin(ctx, l, limit)
	if err != nil || limit > 0 {
		return v, err
	}
	s.mu.Lock()
	kept := v
	kept.Tail = slices.Clone(v.Tail)
	s.views = append(s.views, kept)
	n, began := len(s.views), s.began
	s.mu.Unlock()
	if began != nil {
		began(n)
	}
	return v, nil
}

func (p pgLeases) Beat(ctx context.Context, o sessions.ReplicaID) (time.Time, error) {
	p.s.beating.Lock()
	defer p.s.beating.Unlock()
	if p.s.silent {
		return time.Time{}, bottest.ErrAway
	}
	return p.Leases.Beat(ctx, o)
}

// silence stops the heart; no beat is on its way any more when it returns.
func (s *pgStore) silence() { s.beating.Lock(); defer s.beating.Unlock(); s.silent = true }

func (s *pgStore) read() (views []sessions.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.views)
}

func (s *pgStore) done() []step { s.mu.Lock(); defer s.mu.Unlock(); return slices.Clone(s.steps) }

func (s *pgStore) errorOf(op string) error { s.mu.Lock(); defer s.mu.Unlock(); return s.failed[op] }

// place is a database with its conversations.
type place struct {
	t     *testing.T
	url   string
	talk  dialogue
	facts *atomic.Int64 // saved by flushes so far: no two are the same
	conn  *pgx.Conn
	store *sql.Store // store of the test itself
}

// dialogue is who says what, and by which policy it is compacted.
type dialogue struct {
	settings compaction.Settings
	words    func(i int) string // text of the message with the number i
}

// message is the message with the number i.
func (p *place) message(i int) sessions.Message {
	return bottest.Said(fmt.Sprintf("m%d", i), "alice", p.talk.words(i))
}

// db is a connection of the test's own.
func (p *place) db() *pgx.Conn {
	p.t.Helper()
	if p.conn != nil {
		return p.conn
	}
	conn, err := pgx.Connect(p.t.Context(), p.url)
	if err != nil {
		p.t.Fatal(err)
	}
	p.conn = conn
	p.t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(p.t.Context())) })
	return conn
}

// reader is a storage of the test's own.
func (p *place) reader() *sql.Store {
	p.t.Helper()
	if p.store == nil {
		s, err := sql.Open(p.t.Context(), sql.Options{URL: p.url, MaxConns: 1})
		if err != nil {
			p.t.Fatal(err)
		}
		p.store = s
		p.t.Cleanup(s.Close)
	}
	return p.store
}

// replica is one bot on a database.
type replica struct {
	t     *testing.T
	place *place
	bot   *bot.Bot
	store *pgStore
	wire  *bottest.Wire
	model *bottest.Script
	links []*link
	stop  func() // as a signal does; waits for the end
	begin func() // the signal alone

	dying atomic.Bool // set before the first link is cut
	dead  chan struct{}
	die   func() // cuts the bot off from storage and network, as a dead process is
}

// run starts a bot on the database, which runs until the test ends. arrange may change it before.
func (p *place) run(name sessions.ReplicaID, arrange func(*replica, *bot.Config)) *replica {
	p.t.Helper()
	r := &replica{t: p.t, place: p, wire: &bottest.Wire{Running: make(chan struct{})}, model: &bottest.Script{}, dead: make(chan struct{})}
	r.die = sync.OnceFunc(func() {
		r.dying.Store(true)
		r.store.silence()
		for _, l := range r.links {
			l.sever()
		}
		r.begin()
		close(r.dead)
	})
	r.wire.Deliver = func(context.Context, sessions.Outgoing) (chat.Sent, error) {
		if r.isDead() {
			return chat.Sent{}, bottest.ErrAway
		}
		return chat.Sent{Via: "webhook", Part: 1}, nil
	}
	main, stepping := r.open(3), r.open(1)
	r.store = &pgStore{Store: main, stepping: stepping, link: r.links[1], failed: map[string]error{}}
	r.model.Chat = chatOfTest
	r.model.Flush = func(context.Context, llm.Request) (llm.Response, error) {
		return bottest.SaveCall(fmt.Sprintf("Fact number %d.", p.facts.Add(1))), nil
	}
	cfg := bot.Config{
		Stores: r.store.ports(), Memory: r.store.memory(), Transport: r.wire, Counter: bottest.Counter, Replica: name,
		Tools:   []chat.Tool{bottest.HandTool{Name: "fetch", Reads: true, F: fetched}},
		Values:  reload.Values{Model: r.model, Compaction: p.talk.settings, Admins: []sessions.UserID{"u-root"}},
		Metrics: prometheus.NewRegistry(), InlineDeadline: patience, Elector: main.Replicas, Parts: off.Parts(),
		Drain: 50 * time.Millisecond, Flush: 50 * time.Millisecond,
	}
	if arrange != nil {
		arrange(r, &cfg)
	}
	r.mortal()
	b, err := bot.New(cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	r.bot = b
	ctx, cancel := context.WithCancel(zerolog.Nop().WithContext(context.WithoutCancel(p.t.Context())))
	r.begin = cancel
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !r.dying.Load() {
			p.t.Errorf("Run: %v", err)
		}
		for _, l := range r.links {
			l.sever()
		}
		main.Close()
		stepping.Close()
		for _, l := range r.links {
			l.close()
		}
	})
	p.t.Cleanup(r.stop)
	select {
	case <-r.wire.Running:
	case err := <-ended:
		p.t.Fatalf("Run: %v", err)
	}
	return r
}

// open connects to the database through a link of its own.
func (r *replica) open(conns int) *sql.Store {
	r.t.Helper()
	l, url := newLink(r.t, r.place.url, func() { r.die() })
	r.links = append(r.links, l)
	s, err := sql.Open(r.t.Context(), sql.Options{URL: url, MaxConns: conns})
	if err != nil {
		l.close()
		r.t.Fatal(err)
	}
	return s
}

func (r *replica) isDead() bool {
	select {
	case <-r.dead:
		return true
	default:
		return false
	}
}

// mortal has the model answer nothing to a bot that is dead.
func (r *replica) mortal() {
	alive := func(f func(context.Context, llm.Request) (llm.Response, error)) func(context.Context, llm.Request) (llm.Response, error) {
		return func(ctx context.Context, q llm.Request) (llm.Response, error) {
			if r.isDead() {
				return llm.Response{}, errDead
			}
			return f(ctx, q)
		}
	}
	if r.model.Summary == nil {
		r.model.Summary = func(context.Context, llm.Request) (llm.Response, error) {
			return bottest.Text(bottest.GoodSummary), nil
		}
	}
	r.model.Chat, r.model.Flush, r.model.Summary = alive(r.model.Chat), alive(r.model.Flush), alive(r.model.Summary)
}

// errDead is a model's reply to a dead bot: it ends all retries.
var errDead = &llm.CallError{Class: llm.Denied, Err: bottest.ErrAway}

// chatOfTest fetches where it is asked to, and has little to say else.
func chatOfTest(_ context.Context, r llm.Request) (llm.Response, error) {
	last := r.Messages[len(r.Messages)-1]
	if at := strings.Index(last.Content, "fetch "); last.Role == "user" && at >= 0 {
		n := strings.Fields(last.Content[at:])[1]
		return bottest.Calls(sessions.ToolCall{ID: "c" + n, Name: "fetch", Arguments: `{"n":"` + n + `"}`}), nil
	}
	return bottest.Text("noted"), nil
}

// fetched is a large result, another one for every number.
func fetched(_ context.Context, in chat.ToolInput) (string, error) {
	return in.Arguments + " " + bottest.Prose(len(in.Arguments), 2500), nil
}

// post hands a message in, and fails the test where a living bot does not accept it. One may die while it waits: a turn takes a message
// as soon as it is stored.
func (r *replica) post(m sessions.Message) {
	r.t.Helper()
	if err := r.wire.Accept(context.WithoutCancel(r.t.Context()), m); err != nil && !r.dying.Load() {
		r.t.Fatalf("accept %s: %v", m.ID, err)
	}
}

// settle waits until the bot has answered everything, and done what follows from that, or is dead.
func (r *replica) settle() {
	r.t.Helper()
	ctx, stop := context.WithTimeout(r.t.Context(), patience)
	defer stop()
	db := r.place.db()
	await(r.t, "every message is answered", func() bool {
		return r.isDead() || one[int](r.t, db, openWork) == 0 && r.bot.AwaitIdle(ctx) == nil && one[int](r.t, db, openWork) == 0
	})
}

// openWork counts unanswered messages and unsent replies.
const openWork = `SELECT (SELECT count(*) FROM dingtalk_session_events WHERE state = 'pending') +
	(SELECT count(*) FROM outbox WHERE settled_at IS NULL)`

// await waits for what must come.
func await(t *testing.T, what string, ready func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !ready() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// one is the answer to a query of one value.
func one[T any](t *testing.T, db *pgx.Conn, query string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRow(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// forget has a bot's heartbeat be old, as a dead process's is after a while.
func (p *place) forget(name sessions.ReplicaID) {
	p.t.Helper()
	p.exec("DELETE FROM replicas WHERE id = $1", string(name))
}
