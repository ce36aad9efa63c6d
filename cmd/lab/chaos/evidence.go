package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/cmd/lab/rig"
	"ebb/sessions"
	"ebb/sql/inspect"
)

// evidence is the record of a run, as plain data.
type evidence struct {
	broken []string // promises broken before the end

	// Messages of people, and the record of DingTalk.
	said      map[string]remark // by mark
	scheduled int               // messages of schedules among them
	reminders []reminder
	ended     time.Time // end of the talk
	took      []time.Duration
	replies   []dingtalktest.Reply // in their order
	cards     []dingtalktest.Card
	marks     []string                 // messages with a thinking mark at the end
	strange   []dingtalktest.Violation // violations of the protocol

	// Stored data.
	log      []inspect.Logged
	standing []inspect.Standing
	terms    []sessions.Lease
	letters  []inspect.Letter
	facts    []inspect.Kept
	gaps     []string
	open     inspect.Undone
	accounts []sessions.Restart

	// Logs and fates of gateways.
	turns  []turnLine
	panics []string
	again  map[letterID]time.Time // time of each reply that a gateway sent again by its log, and that may have arrived
	unsure map[letterID]time.Time // time of each end of a reply's card that had no answer
	both   []overlap
	asked  []inquiry
	online map[string]time.Time // first connection to DingTalk by process
	lives  map[string]life      // by process
	away   []rig.Interval       // outages of the database
	erased []erasure
	// By word: the last request with it, and the tables that have it.
	requests map[string]wordSeen
	remains  map[string][]string
	months   []rig.Interval // DingTalk refused all counted calls
	crashes  []crash
	// Words of pictures and files in the last request with a message, by its mark and the process, and the times of faults of downloads.
	content   map[string]map[string][]string
	spoiled   []time.Time
	effects   []effect              // executed calls of tools
	results   map[string]callResult // the last one that the model read, by call
	approvals []sessions.Approval
	illegal   []string       // faults of requests, each once
	rough     []rig.Interval // DingTalk or its network was so slow or broken that turns may have failed
}

// gatherEvidence runs after the end of all gateways.
func (w *world) gatherEvidence(ctx context.Context) (*evidence, error) {
	e := &evidence{
		replies: w.sim.Replies(""), cards: w.sim.Cards(""), marks: w.sim.EmotionsLeft(),
		// Violations that no correct gateway commits under any fault.
		strange: w.sim.Violations(append(slices.Clone(cardViolations),
			dingtalktest.AckUnknown, dingtalktest.AckTwice, dingtalktest.AckMalformed, dingtalktest.AckWrongConnection,
			dingtalktest.ReplyWrongPlace, dingtalktest.MentionNotInText, dingtalktest.WebhookUnknown, dingtalktest.OpenMalformed,
		)...),
		both: w.mind.copyOverlaps(), asked: w.mind.copyInquiries(), lives: w.lives.copyAll(),
		erased: w.erasures.copyAll(), reminders: w.reminders.copyAll(), ended: w.ended, requests: w.mind.wordsSeen(), content: w.mind.contentShown(), spoiled: w.talk.copySpoiled(), results: w.mind.copyResults(), illegal: w.mind.copyIllegal(),
	}
	e.said, e.took = w.talk.copyAll()
	e.months = w.months.copyAll()
	w.book.copyInto(e)
	w.mu.Lock()
	e.broken, e.away, e.rough, e.crashes = slices.Clone(w.broken), slices.Clone(w.apart), slices.Clone(w.rough), slices.Clone(w.crashes)
	w.mu.Unlock()
	var err error
	for _, read := range []func() error{
		func() error { e.log, err = w.eye.Log(ctx); return err },
		func() error { e.standing, err = w.eye.Sessions(ctx); return err },
		func() error { e.terms, err = w.eye.Terms(ctx); return err },
		func() error { e.letters, err = w.eye.Replies(ctx); return err },
		func() error { e.facts, err = w.eye.Facts(ctx); return err },
		func() error { e.gaps, err = w.eye.Gaps(ctx); return err },
		func() error { e.open, err = w.eye.Undone(ctx); return err },
		func() error { e.accounts, err = w.eye.Restarts(ctx); return err },
		func() error { e.remains, err = w.eye.Words(ctx, markedWords.String()); return err },
		func() error { e.effects, err = w.readEffects(); return err },
		func() error { e.approvals, err = w.eye.Approvals(ctx); return err },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	e.dropErased()
	e.log = slices.DeleteFunc(e.log, isClick)
	e.dropSilent()
	e.noteScheduled()
	e.placeNotices()
	return e, nil
}

// loggedTurn is one turn of the log.
type loggedTurn struct {
	key   sessions.Key
	asked []string // marks
	text  string
}

// turnsOf splits the log into questions and the answer behind them, the last of a turn's texts.
func turnsOf(log []inspect.Logged) []loggedTurn {
	var turns []loggedTurn
	answered := true
	for _, e := range log {
		switch {
		case e.Seq == 0:
		case e.Role == sessions.RoleUser:
			if answered || turns[len(turns)-1].key != e.Key {
				turns = append(turns, loggedTurn{key: e.Key})
			}
			t := &turns[len(turns)-1]
			t.asked, answered = append(t.asked, string(e.MsgID)), false
		case len(turns) > 0:
			t := &turns[len(turns)-1]
			if e.Content != "" && !isWiped(t.text) { // words beside calls of tools precede the answer
				t.text = e.Content
			}
			answered = true
		}
	}
	return turns
}

// processOf is the name of a replica's process, which precedes the random part.
func processOf(r sessions.ReplicaID) string {
	name := string(r)
	return name[:max(0, strings.LastIndexByte(name, '-'))]
}

type findings struct {
	broken []string // broken promises

	said, acked, answered, commands, apologies, dead, perhaps, doubled              int
	erasures, wiped, cards, closed, meanwhile, reminders, reminded, shown, unread   int
	turns, compactions, flushes, facts, accounts, grants, resumed, redelivered      int
	effects, results, failedCalls, unknownCalls, asked, approved, rejected, expired int
	p50, p99                                                                        time.Duration
	recoveries                                                                      []recovery
}

func shorten(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	rs := []rune(line)
	return string(rs[:min(len(rs), 80)])
}

var endOfTime = time.Unix(1<<40, 0)

func (f *findings) addBroken(format string, args ...any) {
	if len(f.broken) < maxBroken {
		f.broken = append(f.broken, fmt.Sprintf(format, args...))
	}
}

func countOverlaps(spans []rig.Interval, in rig.Interval) (n int) {
	for _, s := range spans {
		if s.From.Before(in.To) && in.From.Before(s.To) {
			n++
		}
	}
	return n
}

func describeReply(r dingtalktest.Reply) string {
	return fmt.Sprintf("%s by %s %q", r.Time.Format("15:04:05.000"), r.Via, shorten(r.Text))
}

func isWiped(text string) bool { return strings.Contains(text, sessions.ErasedText) }

// logRecord keeps the parts of all gateways' logs that the checks need.
type logRecord struct {
	copy   io.Writer // receives all lines
	mu     sync.Mutex
	turns  []turnLine
	tails  map[string][]string // by process: the newest lines
	counts map[string]int      // warnings and errors by message
	panics []string
	again  map[letterID]time.Time // replies that a gateway sent again by its log, and that may have arrived before
	unsure map[letterID]time.Time // replies whose card DingTalk may have ended without an answer
	admin  map[string]string      // address of the metrics by process
	online map[string]time.Time   // first connection to DingTalk by process
}

// turnLine is a committed turn in a gateway's log.
type turnLine struct {
	process, session, msgID, kind string
	term                          int64
	from, to                      time.Time
}

type letterID struct {
	key sessions.Key
	id  int64
}

func newChaosBook(logs io.Writer) *logRecord {
	return &logRecord{
		copy: logs, tails: map[string][]string{}, counts: map[string]int{}, again: map[letterID]time.Time{}, unsure: map[letterID]time.Time{}, admin: map[string]string{}, online: map[string]time.Time{},
	}
}

const mayBeDoubled = "Reply may have arrived before, sent it again"

func (b *logRecord) ReadLog(process string, r io.Reader) error {
	for in := bufio.NewReader(r); ; {
		raw, err := in.ReadString('\n')
		if raw = strings.TrimSpace(raw); raw != "" {
			b.addLine(process, raw)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the log of gateway %s: %w", process, err)
		}
	}
}

func (b *logRecord) addLine(process, raw string) {
	var l struct {
		Level, Message, Session, Kind, Admin string
		MsgID                                string `json:"msg_id"`
		Error                                string
		Time                                 time.Time
		Term, Reply                          int64
		Repeated                             int
		Took                                 float64 `json:"took_ms"`
		Panic                                any
	}
	isJSON := json.Unmarshal([]byte(raw), &l) == nil
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintln(b.copy, process, raw)
	tail := append(b.tails[process], raw)
	b.tails[process] = tail[max(0, len(tail)-5):]
	switch {
	case !isJSON && (strings.HasPrefix(raw, "panic:") || strings.HasPrefix(raw, "fatal error:")), l.Panic != nil:
		b.panics = append(b.panics, process+": "+raw)
	case l.Message == "Turn committed":
		b.turns = append(b.turns, turnLine{
			process: process, session: l.Session, msgID: l.MsgID, kind: l.Kind, term: l.Term,
			from: l.Time.Add(-time.Duration(l.Took * float64(time.Millisecond))), to: l.Time,
		})
	case l.Message == mayBeDoubled:
		b.again[letterID{sessions.Key(l.Session), l.Reply}] = l.Time
	case l.Message == "Reply did not arrive" && strings.HasPrefix(l.Error, "updating a card") && strings.Contains(l.Error, "deadline exceeded"):
		b.unsure[letterID{sessions.Key(l.Session), l.Reply}] = l.Time
	case l.Message == "Admin server listens":
		b.admin[process] = l.Admin
	case l.Message == "Stream connection open" && b.online[process].IsZero():
		b.online[process] = l.Time
	}
	if l.Level == "warn" || l.Level == "error" {
		b.counts[l.Message] += max(1, l.Repeated)
	}
}

func (b *logRecord) newestLines(process string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.tails[process]...)
}

func (b *logRecord) adminOf(process string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.admin[process]
}

func (b *logRecord) copyInto(e *evidence) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e.turns, e.panics, e.again, e.online = slices.Clone(b.turns), slices.Clone(b.panics), maps.Clone(b.again), maps.Clone(b.online)
	e.unsure = maps.Clone(b.unsure)
}
