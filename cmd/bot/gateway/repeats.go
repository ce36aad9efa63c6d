package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

const (
	// repeatEvery is the least time between two lines of one failure.
	repeatEvery = time.Minute
	// maxRepeats bounds the failures that are remembered. Beyond it each line is written.
	maxRepeats = 256
)

// repeats writes the first line of a kind of warnings or errors at once, and then at most one a minute. A later line stands for all of
// its kind since the line before: "repeated" is their number. So an outage, which fails everything at once and again, has a short log.
type repeats struct {
	out io.Writer

	mu     sync.Mutex
	kinds  map[failure]*repeated
	closed bool
}

// failure has the fields that distinguish warnings and errors. A warning is the same one in each session, whatever its error says. With
// rows or places in a log it is about these alone. An error is another one in each session, for each message and with other words,
// because an operator has to look at each.
type failure struct {
	Level    string `json:"level"`
	Message  string `json:"message"`
	Class    string `json:"class"`
	Model    string `json:"model"`
	Reply    int64  `json:"reply"`
	Card     string `json:"card"`
	Schedule int64  `json:"schedule"`
	Session  string `json:"session"`
	MsgID    string `json:"msg_id"`
	Error    string `json:"error"`
	Reason   string `json:"reason"`
	Tool     string `json:"tool"`
	Leader   string `json:"leader"`
	ScopeID  string `json:"scope_id"`
	Keys     ids    `json:"keys"`
	Rows     rows   `json:"-"`
}

// rows are what a line is about within a session.
type rows struct {
	Event     int64 `json:"event"`
	From      int64 `json:"from"`
	Through   int64 `json:"through"`
	Summaries ids   `json:"summaries"`
	Facts     ids   `json:"facts"`
}

// ids is a list as it stands in a line.
type ids string

// UnmarshalJSON implements json.Unmarshaler.
func (i *ids) UnmarshalJSON(b []byte) error {
	if text := string(b); text != "[]" && text != "null" {
		*i = ids(text)
	}
	return nil
}

type repeated struct {
	last  []byte // not written yet
	times int
	timer *time.Timer
}

func newRepeats(out io.Writer) *repeats {
	return &repeats{out: out, kinds: map[failure]*repeated{}}
}

// Write implements io.Writer.
func (r *repeats) Write(line []byte) (int, error) { return r.WriteLevel(zerolog.NoLevel, line) }

// WriteLevel implements zerolog.LevelWriter.
func (r *repeats) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	if level != zerolog.WarnLevel && level != zerolog.ErrorLevel {
		return r.out.Write(line)
	}
	var kind failure
	if json.Unmarshal(line, &kind) != nil || json.Unmarshal(line, &kind.Rows) != nil {
		return r.out.Write(line)
	}
	if level == zerolog.WarnLevel {
		kind.MsgID, kind.Error = "", ""
		if kind.Rows == (rows{}) {
			kind.Session = ""
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.kinds[kind]; known != nil {
		known.last, known.times = bytes.Clone(line), known.times+1
		return len(line), nil
	}
	if !r.closed && len(r.kinds) < maxRepeats {
		r.kinds[kind] = &repeated{timer: time.AfterFunc(repeatEvery, func() { r.expire(kind) })}
	}
	return r.out.Write(line)
}

func (r *repeats) expire(kind failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.kinds[kind]
	if known == nil {
		return
	}
	if known.times == 0 {
		delete(r.kinds, kind)
		return
	}
	r.write(known)
	known.timer.Reset(repeatEvery)
}

// write needs the lock. The logger does not report a failed write either.
func (r *repeats) write(k *repeated) {
	line := append([]byte(`{"repeated":`), strconv.Itoa(k.times)...)
	_, _ = r.out.Write(append(append(line, ','), k.last[1:]...))
	k.last, k.times = nil, 0
}

// close writes the counts that are left. Later lines are written as they come.
func (r *repeats) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind, known := range r.kinds {
		known.timer.Stop()
		if known.times > 0 {
			r.write(known)
		}
		delete(r.kinds, kind)
	}
	r.closed = true
}
