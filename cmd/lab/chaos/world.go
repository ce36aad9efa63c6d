package chaos

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"ebb/bot/config"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/openai/openaitest"
	"ebb/cmd/lab/rig"
	"ebb/sql/inspect"
	"ebb/sql/localpg"
	"ebb/sql/sqltest"
)

// world runs gateways as processes on one PostgreSQL and injects faults while people talk. The promises of check.go
// must hold.
type world struct {
	opt     Command
	dir     string    // temporary, with all that is written
	logs    io.Closer // log file of the gateways, if any
	program string
	out     io.Writer
	began   time.Time
	middle  time.Time // half of the talk is over
	ended   time.Time // end of the talk

	sim       *dingtalktest.Server
	model     *openaitest.Server
	mind      *chaosModel
	book      *logRecord
	talk      *talkers
	eye       *inspect.Inspector
	slots     []*slot
	plan      []fault
	lives     lives
	erasures  erasures
	reminders reminders
	months    months

	leaving sync.WaitGroup // processes asked to stop

	mu      sync.Mutex
	private *localpg.Server // nil while it is stopped
	url     string
	done    map[string]int // faults by kind
	apart   []rig.Interval // trouble with the database, in which a living replica may be taken for dead
	rough   []rig.Interval // statements were cut off, hung or slow
	broken  []string       // promises broken before the end
	crashes []crash
	calmed  map[string]figures // figures of each gateway without work, before its stop
	samples []sample
	took    string // durations of the run's phases
}

func (w *world) addBroken(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.broken) < maxBroken {
		w.broken = append(w.broken, fmt.Sprintf(format, args...))
	}
}

type fault struct {
	at   time.Duration // since the beginning
	kind string
	slot int           // index of the gateway
	d    time.Duration // duration
	n    int           // variant, or a number of objects
}

// chaosKind is a kind of fault with its relative frequency.
type chaosKind struct {
	kind   string
	weight int
	make   func(injector, context.Context, fault) error
}

type injector struct{ *world }

// apartFor is how long a process may wait for answers after its connection to the database was cut.
const apartFor = 5 * time.Second

// erasure is one request to erase words permanently.
type erasure struct {
	kind    string   // forget last, forget me, forget fact
	words   []string // numbers of facts, which must not appear after the receipt
	touched []string // conversations whose sessions may lose their owners
	gone    []string // deleted threads
	begun   time.Time
	receipt time.Time // zero: not yet
	heard   string    // last other reply to the requester
}

type erasures struct {
	running sync.WaitGroup
	mu      sync.Mutex
	all     []*erasure
	open    int // running scripts
	people  int // scripted persons so far
}

// months are the times in which DingTalk refuses all counted calls.
type months struct {
	running sync.WaitGroup
	over    chan struct{} // closed when the trouble ends
	mu      sync.Mutex
	refused int // faults that have not ended
	spans   []rig.Interval
}

// slot is the place of consecutive processes, each with its own name.
type slot struct {
	*world
	name  string
	child *rig.Process
	link  *sqltest.Link
	runs  int
}

// life is the history of one process.
type life struct {
	slot           string
	started, ended time.Time
	stopRequested  time.Time // time of the request
	twice          bool      // a second request ends it at once
	killed         time.Time
	apart          []rig.Interval // it stood still or could not reach the database
	exit           error          // exit error
}

// lives has all processes by name.
type lives struct {
	mu sync.Mutex
	of map[string]*life
}

// figures are a gateway's own metrics.
type figures struct {
	resident          float64 // bytes
	goroutines, files int
	turns             int // committed
}

// sample is the usage at one moment.
type sample struct {
	at       time.Duration
	turns    int // committed
	gateways map[string]figures
	tables   map[string]inspect.TableSize
}

// remark is one message of a person, and its state at DingTalk.
type remark struct {
	mark      string // the message's id; in the text, unless that is a command
	who       string // staff id of the member
	place     string // the conversation
	thread    string // the session: the conversation, or one of its members
	command   bool
	scheduled bool   // a schedule made it
	fact      string // fact in it to remember
	wiped     bool   // it may be erased
	gone      bool   // its row may be deleted too
	harm      bool   // its member means harm
	attached  attachment
	wants     wantedCall

	sent          time.Time // createAt, by DingTalk's clock
	pushed, acked time.Time // first; zero before it
	answeredAt    time.Time // first answer
	wordedAt      time.Time // first words of an answer on a card; zero without
}

// talkers are people in groups and private chats, and their messages at DingTalk.
type talkers struct {
	sim    *dingtalktest.Server
	people []rig.Person // the ordinary members
	close  func()       // ends the reading of the transcript
	noisy  bool         // with bursts, copies, commands and long messages
	member bool         // each member of a group has their own session

	mu    sync.Mutex
	rng   *rand.Rand
	order []string           // marks in the order of sending
	said  map[string]*remark // by mark
	open  int                // unacknowledged messages
	took  []time.Duration    // from the first push to the first answer
	// spoiled are the times of downloads that met a fault.
	spoiled []time.Time
}

// Command is lab chaos: fault injection.
type Command struct {
	For      time.Duration `default:"30m" help:"How long to make trouble."`
	Seed     uint64        `help:"Seed of the plan, which is the same for the same seed and length; 0: a new one."`
	Replicas int           `default:"3" help:"Gateways on one PostgreSQL."`
	Rate     float64       `default:"8" help:"Messages a second."`
	Every    time.Duration `default:"5s" help:"Between one trouble and the next, on average."`
	Erase    time.Duration `default:"4s" help:"Between one erasure and the next, on average; 0: none."`
	Remind   time.Duration `default:"2s" help:"Between one reminder and the next, on average; 0: none."`
	Attach   time.Duration `default:"2s" help:"Between one picture or file and the next, on average; 0: none."`
	Tools    time.Duration `default:"2s" help:"Between one call of a tool and the next, on average; 0: none."`
	Cards    bool          `default:"true" negatable:"" help:"Show replies on cards, with their troubles."`
	Harm     time.Duration `default:"0" help:"Between one act of members who mean harm and the next, on average, in the second half; 0: none."`
	Calm     bool          `help:"Make no trouble: only talk, and watch what the gateways take."`
	Database string        `placeholder:"URL" help:"Use this empty database in place of a private server, whose troubles are left out. On a Citus cluster the tables are distributed."`
	NodeStop string        `placeholder:"COMMAND" help:"Stop a node of the cluster by this shell command, as a trouble."`
	NodeUp   string        `placeholder:"COMMAND" help:"Start that node again."`
	Logs     string        `type:"path" placeholder:"FILE" help:"Write the logs of the gateways to this file."`
}

const maxBroken = 100

// databaseURL is PostgreSQL's latest address.
func (w *world) databaseURL() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.url
}

// gatewayConfig has small limits, so that flush and compaction come soon.
func (w *world) gatewayConfig(name, database string) (string, error) {
	type object = map[string]any
	limits := object{"compactions_per_day": 0} // an administrator asks for many, and each is answered
	if w.opt.Harm > 0 {
		limits["person_turns_per_minute"] = harmTurns
	}
	c := object{
		"dingtalk": object{
			"client_id": rig.RobotCode, "client_secret": rig.AppSecret, "api_base": w.sim.URL, "oapi_base": w.sim.URL, "replies_per_minute": 0,
			"connections": w.connectionCount(), "api_calls_per_month": callsOfRun,
		},
		"llm": object{"models": []object{{
			"name": "main", "model": "scripted", "base_url": w.model.URL, "api_key": name, "timeout": "4s", "retries": 2, "max_output": 2048,
		}}},
		"agent": object{
			"timezone": chaosZone.String(), "session_scope": map[bool]string{false: "group", true: "member"}[w.perMember()], "admins": []string{chaosAdmin.ID},
			"stale_after": "1h", "turn_timeout": chaosTurn.String(),
			"compaction": object{
				"auto_compact_threshold": 6000, "context_window": 16000, "reserve_tokens": 4096, "max_history_share": 0.2625, "inline_deadline": "5s",
			},
			"memory": object{"digest": "", "max_per_scope": 100_000},
			"limits": limits,
		},
		"cluster":  object{"replica_id": name, "lease_ttl": chaosTTL.String()},
		"database": object{"url": database, "max_conns": 8},
		"shutdown": object{"drain": chaosDrain.String(), "flush": "5s"},
		"admin":    object{"listen": "127.0.0.1:0"},
		"log":      object{"level": "info", "format": "json"},
	}
	if w.opt.Tools > 0 {
		servers, err := w.toolServers(name)
		if err != nil {
			return "", err
		}
		c["tools"] = servers
	}
	if w.opt.Cards {
		d, _ := c["dingtalk"].(object)
		d["reply"], d["card_template_id"], d["card_interval"] = "card", dingtalktest.DefaultCardTemplate, "100ms"
		d["reaction"] = config.ReactionOn
	}
	return rig.WriteConfig(w.dir, name, c)
}
