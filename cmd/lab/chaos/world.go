package chaos

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/openai/openaitest"
	"ebb/cmd/lab/rig"
	"ebb/sql/inspect"
	"ebb/sql/localpg"
	"ebb/sql/sqltest"
)

// world runs gateways as processes on one PostgreSQL and kills, stops and cuts them off while people talk. The promises
// of check.go must hold all the same.
type world struct {
	opt     Command
	dir     string    // temporary, with all that is written
	logs    io.Closer // the file of the gateways' logs, if any
	program string
	out     io.Writer
	began   time.Time

	sim      *dingtalktest.Server
	model    *openaitest.Server
	mind     *chaosModel
	book     *logRecord
	talk     *talkers
	eye      *inspect.Inspector
	slots    []*slot
	plan     []fault
	lives    lives
	erasures erasures
	months   months

	leaving sync.WaitGroup // processes that were asked to stop

	mu      sync.Mutex
	private *localpg.Server // nil while it is stopped
	url     string
	done    map[string]int     // troubles made, by kind
	apart   []rig.Interval     // while the database was in trouble: a living replica may be taken for dead then
	rough   []rig.Interval     // while statements were cut off, hung or took long
	broken  []string           // promises that were seen broken before the end
	calmed  map[string]figures // figures of each gateway when all work was done, before its stop
	samples []sample
	took    string // times of the run's phases
}

// addBroken notes that a promise was broken.
func (w *world) addBroken(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.broken) < maxBroken {
		w.broken = append(w.broken, fmt.Sprintf(format, args...))
	}
}

// fault is one thing that goes wrong.
type fault struct {
	at   time.Duration // since the beginning
	kind string
	slot int           // number of the gateway
	d    time.Duration // for how long
	n    int           // which of its kinds, or how many
}

// chaosKind is one kind of trouble, which comes as often as its weight says.
type chaosKind struct {
	kind   string
	weight int
	make   func(injector, context.Context, fault) error
}

// injector makes the faults of a run.
type injector struct{ *world }

// apartFor is how long after its way to the database was cut a process may still wait for answers that never come.
const apartFor = 5 * time.Second

// erasure is one request to erase, with the words that it removes permanently.
type erasure struct {
	kind    string   // forget last, forget me, forget fact
	words   []string // numbers of facts: none may be seen after the receipt
	touched []string // conversations whose sessions it may take from their owners
	gone    []string // threads that are deleted as a whole
	begun   time.Time
	receipt time.Time // when the requester learnt that it is done; zero: not yet
	heard   string    // the last reply to the requester that was no receipt
}

// erasures are those of a run.
type erasures struct {
	running sync.WaitGroup
	mu      sync.Mutex
	all     []*erasure
	open    int // scripts that have not ended
	people  int // scripted persons so far
}

// months are the times in which DingTalk refuses all counted calls.
type months struct {
	running sync.WaitGroup
	over    chan struct{} // closed when the trouble ends
	mu      sync.Mutex
	refused int // troubles that have not ended
	spans   []rig.Interval
}

// slot is the place of one gateway: processes come and go in it, each under a name of its own.
type slot struct {
	*world
	name  string
	child *rig.Process
	link  *sqltest.Link
	runs  int
}

// life is what became of one process of a slot.
type life struct {
	slot           string
	started, ended time.Time
	stopRequested  time.Time // asked to stop
	twice          bool      // and asked again: it leaves at once
	killed         time.Time
	apart          []rig.Interval // while it stood still or could not reach the database
	exit           error          // how it ended
}

// lives are the processes that ever ran, by name.
type lives struct {
	mu sync.Mutex
	of map[string]*life
}

// figures are what a gateway says that it takes of the machine.
type figures struct {
	resident          float64 // bytes
	goroutines, files int
	turns             int // that it committed
}

// sample is what everything takes at one moment.
type sample struct {
	at       time.Duration
	turns    int // committed so far
	gateways map[string]figures
	tables   map[string]inspect.TableSize
}

// remark is one message of a person, and its state at DingTalk.
type remark struct {
	mark    string // stands in the text, unless that is a command; it is the message's id too
	place   string // the conversation
	thread  string // the session: the conversation, or one member of it
	command bool
	fact    string // fact in it to remember
	wiped   bool   // an erasure is about it: its words may be gone
	gone    bool   // its row may be gone too

	sent          time.Time // by DingTalk's clock: what createAt says
	pushed, acked time.Time // first; zero where not yet
	answered      bool
}

// talkers is people who talk in groups and in private chats, and what DingTalk knows of each of their messages.
type talkers struct {
	sim    *dingtalktest.Server
	stop   context.CancelFunc
	ended  chan struct{}
	noisy  bool // bursts, copies, commands and long messages too
	member bool // each member of a group has a session of their own

	mu    sync.Mutex
	rng   *rand.Rand
	order []string           // marks, in the order in which they were said
	said  map[string]*remark // by mark
	open  int                // said and not acknowledged
	took  []time.Duration    // from the first push of a message to its first answer
}

// Command is lab chaos: it runs fault injection and checks that nothing was lost.
type Command struct {
	For      time.Duration `default:"30m" help:"How long to make trouble."`
	Seed     uint64        `help:"Seed of the plan, which is the same for the same seed and length; 0: a new one."`
	Replicas int           `default:"3" help:"Gateways on one PostgreSQL."`
	Rate     float64       `default:"8" help:"Messages a second."`
	Every    time.Duration `default:"5s" help:"Between one trouble and the next, on average."`
	Erase    time.Duration `default:"4s" help:"Between one erasure and the next, on average; 0: none."`
	Cards    bool          `default:"true" negatable:"" help:"Show replies on cards, with their troubles."`
	Calm     bool          `help:"Make no trouble: only talk, and watch what the gateways take."`
	Logs     string        `type:"path" placeholder:"FILE" help:"Write the logs of the gateways to this file."`
}

// maxBroken bounds the list: one broken promise is enough.
const maxBroken = 100
