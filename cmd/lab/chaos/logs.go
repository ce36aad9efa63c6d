package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"ebb/sessions"
)

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
