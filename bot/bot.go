package bot

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"text/template"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/lease"
	"ebb/sessions/serial"
)

// Config is what a Bot needs. The zero value of a duration or a limit means its default, in brackets.
type Config struct {
	Store     sessions.Store
	Memory    memory.Store
	Keeper    memory.Keeper     // nil: nothing is tidied up
	Rights    memory.Rights     // nil: /memory, /forget and /export say that they can't at the moment
	Reporter  sessions.Reporter // nil: the account of a process is in its log alone
	Elector   sessions.Elector  // nil: no replica leads
	Transport Transport
	Model     Model
	Tools     []Tool
	Counter   *tokens.Counter
	Metrics   prometheus.Registerer // nil: a registry of its own

	Replica  sessions.ReplicaID // new at every start
	LeaseTTL time.Duration      // as the store was opened with [5 s]

	Name     string // how the bot calls itself [Ebb]
	Language string // of fixed words where the message does not tell: zh or en [zh]
	// Languages are those of single conversations: there all fixed words are in it, whatever the message's language.
	Languages map[sessions.ConversationID]string
	Prompt    string // further instructions for the model
	Location  *time.Location
	Admins    []sessions.UserID

	OneStream     bool // only the replica that leads runs the transport; needs Elector
	PerMember     bool // a session for each member of a group, instead of one for the group
	AloneEach     bool // answer waiting messages one by one
	MaxMerged     int  // messages answered in one turn [20]
	MaxToolRounds int  // [8]
	MaxConcurrent int  // calls of the model under way at once; four times as many turns [32]
	StaleAfter    time.Duration
	Gather        time.Duration // from a message to its turn, for others that are sent with it; 0: none
	TurnTimeout   time.Duration
	CommitTimeout time.Duration // of one try to commit [5 s]

	// Compaction says how conversations are compacted, Groups how single ones are instead.
	Compaction      compaction.Settings
	Groups          map[sessions.ConversationID]compaction.Settings
	Own             Own           // resolves what a conversation keeps of its own; nil: nothing
	SummaryModel    string        // empty: the default model
	SummaryRetries  int           // requests for one summary, in all [3]
	SummaryBackoff  time.Duration // before the second one; each later pause is that much longer [1 s]
	InlineDeadline  time.Duration
	CompactDeadline time.Duration
	CompactNotify   bool // people read a short notice of an automatic compaction

	Remember Remember
	// DigestAt is the time of day, such as 04:00 in Location, from which the day before is told; empty: no digests.
	DigestAt string

	Drain time.Duration // for turns in flight at a stop [20 s]
	Flush time.Duration // for flushing active sessions after that [8 s]

	// Watch, where set, returns what receives a turn's text as it is streamed; nil for turns that nobody watches.
	Watch func(sessions.Key) func(text string, reset bool)
}

func (c *Config) defaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.LeaseTTL, 5*time.Second)
	def(&c.StaleAfter, 30*time.Minute)
	def(&c.TurnTimeout, 5*time.Minute)
	def(&c.CommitTimeout, 5*time.Second)
	def(&c.SummaryBackoff, time.Second)
	def(&c.InlineDeadline, 20*time.Second)
	def(&c.CompactDeadline, 2*time.Minute)
	def(&c.Drain, 20*time.Second)
	def(&c.Flush, 8*time.Second)
	num := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	num(&c.MaxMerged, 20)
	num(&c.MaxToolRounds, 8)
	num(&c.MaxConcurrent, 32)
	num(&c.SummaryRetries, 3)
	str := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	str(&c.Name, "Ebb")
	str(&c.Language, "zh")
	if c.Location == nil {
		c.Location = time.UTC
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
}

func (c *Config) mergeLimit() int {
	if c.AloneEach {
		return 1
	}
	return c.MaxMerged
}

// Bot is one replica of the gateway. Make it with [New], run it with Run, once.
type Bot struct {
	cfg          Config
	store        sessions.Store
	memory       memory.Store
	model        Model
	tools        map[string]Tool
	frame        *frame
	counter      *tokens.Counter
	counted      *counted
	engine       *compaction.Engine
	flusher      *memory.Flusher
	consolidator *memory.Consolidator
	metrics      *metrics
	leases       *lease.Holder
	upkeepLock   *locks
	resolved     resolved
	spare        *semaphore.Weighted // bounds maintenance over all sessions
	draining     chan struct{}
	gate         *gated // bounds the calls of the model; it is the model
	inHand       *fair  // bounds the turns, each of which holds a view
	suspects     *suspects
	stream       *stream
	last         *lastFlush
	left         chan sessions.Key // sessions that wait for work which this replica does not begin any more
	told         told
	tally        ledger
	gathering    gathering
	idle         idleBacklogs

	turns  *serial.Mailboxes // steps 3 to 8
	upkeep *serial.Mailboxes // steps 9 to 11
	outbox *outbox
}

//go:embed prompts/system.md
var systemPrompt string

// maxUpkeep is how many sessions are flushed or compacted at once.
const maxUpkeep = 8

// New checks the configuration and puts the parts together; nothing runs yet.
func New(cfg Config) (*Bot, error) {
	cfg.defaults()
	if err := cfg.Compaction.Validate(); err != nil {
		return nil, fmt.Errorf("compaction: %w", err)
	}
	for id, own := range cfg.Groups {
		if err := own.Validate(); err != nil {
			return nil, fmt.Errorf("compaction of group %s: %w", id, err)
		}
	}
	if _, _, err := memory.ClockOf(cfg.DigestAt); err != nil && cfg.DigestAt != "" {
		return nil, fmt.Errorf("daily digest: %w", err)
	}
	b := &Bot{
		cfg: cfg, store: cfg.Store, memory: cfg.Memory, tools: map[string]Tool{},
		counter: cfg.Counter, counted: &counted{counter: cfg.Counter, known: map[string]int{}},
		leases:     lease.NewHolder(cfg.Store, cfg.Replica, cfg.LeaseTTL),
		upkeepLock: &locks{held: map[sessions.Key]chan struct{}{}},
		spare:      semaphore.NewWeighted(maxUpkeep), draining: make(chan struct{}),
	}
	b.gate, b.inHand = newGated(cfg.Model, cfg.MaxConcurrent), newFair(turnsPerCall*cfg.MaxConcurrent, b.draining)
	b.suspects = &suspects{over: b.draining}
	b.model = b.gate
	b.stream = &stream{Bot: b, poke: make(chan struct{}, 1)}
	b.last, b.left = newLastFlush(), make(chan sessions.Key, sweepLimit)
	if cfg.OneStream && cfg.Elector == nil {
		return nil, errors.New("one stream connection: there is nothing to agree by on who holds it")
	}
	if err := b.makeFrame(); err != nil {
		return nil, err
	}
	window := cfg.Compaction.Window.Context
	b.engine = &compaction.Engine{Summarizer: &compaction.Summarizer{
		Model: plainModel{b.model, KindSummary}, Counter: cfg.Counter, Name: cfg.SummaryModel, Context: window, Language: cfg.Language,
		Location: cfg.Location, Retries: cfg.SummaryRetries, Backoff: cfg.SummaryBackoff,
	}}
	b.flusher = &memory.Flusher{
		Store: cfg.Memory, Model: plainModel{b.model, KindFlush}, Name: cfg.SummaryModel, Language: cfg.Language, Context: window, Count: cfg.Counter.Count,
		Location: cfg.Location, TaskTTL: cfg.Remember.TaskTTL,
		Render: compaction.Scribe{Counter: cfg.Counter, Location: cfg.Location}.Write, Fence: compaction.Fence,
		Talk: b.talk, Clean: compaction.Clean,
	}
	b.consolidator = &memory.Consolidator{
		Store: cfg.Keeper, Model: plainModel{b.model, KindConsolidation}, Name: cfg.SummaryModel, Fence: compaction.Fence, Count: cfg.Counter.Count,
		Language: cfg.Language, Context: window,
	}
	return b, nil
}

// makeFrame writes the system prompt and sorts the tools, once: they are the same in every request.
func (b *Bot) makeFrame() error {
	t, err := template.New("system.md").Parse(systemPrompt)
	if err != nil {
		return fmt.Errorf("read system prompt: %w", err)
	}
	var sys bytes.Buffer
	if err := t.Execute(&sys, map[string]any{"Chinese": b.cfg.Language != "en", "Name": b.cfg.Name, "Extra": b.cfg.Prompt}); err != nil {
		return fmt.Errorf("write system prompt: %w", err)
	}
	f := &frame{name: b.cfg.Name, system: strings.TrimSpace(sys.String()), order: b.cfg.Remember.Order, loc: b.cfg.Location}
	if len(f.order) == 0 {
		f.order = DefaultOrder()
	}
	if err := f.order.Check(); err != nil {
		return fmt.Errorf("order of a request: %w", err)
	}
	f.tokens = b.counter.Count(f.system) + tokens.MessageOverhead
	for _, tool := range b.cfg.Tools {
		spec := tool.Spec()
		schema, err := json.Marshal(spec)
		if err != nil {
			return fmt.Errorf("schema of tool %s: %w", spec.Name, err)
		}
		f.tokens += b.counter.Count(string(schema))
		f.tools, b.tools[spec.Name] = append(f.tools, spec), tool
	}
	slices.SortFunc(f.tools, func(x, y ToolSpec) int { return strings.Compare(x.Name, y.Name) })
	b.frame = f
	return nil
}

// Run serves until ctx ends, then drains and returns nil. Another error says why the bot can't work.
func (b *Bot) Run(ctx context.Context) error {
	began := time.Now()
	// What is in hand outlives ctx: it finishes after the signal, and ends with the drain.
	life := context.WithoutCancel(ctx)
	work, cancelWork := context.WithCancelCause(life)
	defer cancelWork(ErrStop)
	spare, cancelUpkeep := context.WithCancelCause(life)
	defer cancelUpkeep(ErrStop)
	send, cancelSend := context.WithCancelCause(life)
	defer cancelSend(ErrStop)
	b.turns = serial.NewMailboxes(work, b.turn)
	b.upkeep = serial.NewMailboxes(spare, b.maintain)
	b.outbox = &outbox{
		ctx: send, answer: b.turns.Wake, store: b.store, transport: b.cfg.Transport, settle: b.cfg.CommitTimeout, now: b.now,
		leases: b.leases, queues: map[conversation]*queue{}, resumed: map[sessions.Key]int64{},
	}
	b.metrics = newMetrics(b.cfg.Metrics, b)
	b.gate.metrics = b.metrics.models
	b.outbox.metrics, b.outbox.tally = b.metrics, &b.tally
	if !b.firstBeat(ctx) {
		return nil // told to stop before there was anything to stop
	}
	keep, stopKeep := context.WithCancel(life) // the heart beats until the last flush
	defer stopKeep()
	var background errgroup.Group
	background.Go(func() error { b.leases.Keep(keep); return nil })
	background.Go(func() error { b.sweep(keep); return nil })
	background.Go(func() error { b.listen(keep); return nil })
	background.Go(func() error { b.reports(keep); return nil })
	low, stopLow := context.WithCancelCause(life)
	defer context.AfterFunc(ctx, func() { stopLow(ErrStop) })()
	defer stopLow(ErrStop)
	background.Go(func() error { b.every(low, settleEvery, b.settle); return nil })
	background.Go(func() error { b.every(low, time.Minute, b.rest); return nil })
	background.Go(func() error { b.keep(low); return nil })
	background.Go(func() error { b.digests(low); return nil })

	err := b.receive(ctx)
	if ctx.Err() != nil {
		err = nil
	}
	stopLow(ErrStop)
	background.Go(func() error { b.stream.leave(keep); return nil })
	b.drain(life, stops{turns: cancelWork, upkeep: cancelUpkeep, outbox: cancelSend})
	stopKeep()
	err = errors.Join(err, background.Wait())
	stored := b.endReport(life)
	err = errors.Join(err, b.resign(life))
	b.closeReport(life, began, stored)
	return err
}

// firstBeat says that the replica lives, and waits for a database that is away. It reports false where ctx ends before.
func (b *Bot) firstBeat(ctx context.Context) bool {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		one, stop := context.WithTimeout(ctx, b.cfg.CommitTimeout)
		err := b.leases.Beat(one)
		stop()
		if err == nil || ctx.Err() != nil {
			return err == nil
		}
		zerolog.Ctx(ctx).Warn().Err(err).Msg("First heartbeat not written, trying again")
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// Draining is closed when a stop has begun.
func (b *Bot) Draining() <-chan struct{} { return b.draining }

// Quiet returns when no session has a turn, a reply or maintenance in hand, or with ctx's cause. Measurements wait for
// it between messages.
func (b *Bot) Quiet(ctx context.Context) error {
	t := time.NewTicker(time.Millisecond)
	defer t.Stop()
	for b.turns.Live() > 0 || b.outbox.waiting() > 0 || b.upkeep.Live() > 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.C:
		}
	}
	return nil
}

// The sweep makes up for every wake-up that was lost.
const (
	sweepEvery = time.Second
	sweepLimit = 200
)

// sweep wakes the sessions that have work waiting, those of dead replicas too.
func (b *Bot) sweep(ctx context.Context) {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		b.sweepOnce(ctx)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

func (b *Bot) sweepOnce(ctx context.Context) {
	one, stop := context.WithTimeout(ctx, b.cfg.CommitTimeout)
	defer stop()
	keys, err := b.store.Waiting(one, b.leases.Owner(), sweepLimit)
	if err != nil {
		if ctx.Err() == nil {
			zerolog.Ctx(ctx).Warn().Err(err).Msg("Sweep for waiting sessions did not come through")
		}
		return
	}
	for _, key := range keys {
		if b.turns.Busy(key) {
			continue // its messages are being answered
		}
		b.outbox.doubt(key)
		b.turns.Wake(key)
	}
}

// listen passes on the wake-ups of other replicas, and reconnects for as long as ctx lives: at once where it had listened,
// and with pauses where it can't.
func (b *Bot) listen(ctx context.Context) {
	const first, last = 50 * time.Millisecond, time.Second
	var heard atomic.Bool
	for pause := first; ctx.Err() == nil; pause = min(2*pause, last) {
		err := b.store.Listen(ctx, b.leases.Owner(), func(key sessions.Key) {
			heard.Store(true)
			if key == "" {
				b.stream.changed()
				go b.sweepOnce(ctx)
				return
			}
			b.wake(key)
		})
		if ctx.Err() != nil {
			return
		}
		if heard.Swap(false) {
			pause = first
		}
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Notifications broke off, listening again")
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
