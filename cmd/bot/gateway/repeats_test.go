package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/config"
)

// Ten conversations fail again and again during an outage of 15 seconds. The log has a line for each kind of failure. The counts
// of the others follow after a minute.
func TestAnOutageIsOneLineOfAKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		log, _, flush := NewServiceLogger(config.LogConfig{Level: "info"}, &out)
		away := errors.New("connection refused")
		for range 15 {
			for s := range 10 {
				one := log.With().Str("session", fmt.Sprint("bot1/cid", s)).Logger()
				one.Warn().Err(away).Msg("Commit failed, trying again")
				one.Warn().Err(away).Str("class", "timeout").Str("model", "main").Msg("Model failed, asking the next")
				one.Warn().Int("left_out", 10+s).Msg("Context does not fit, oldest turns left out of the view")
				one.Info().Msg("Executing memory flush")
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := countLines(t, &out); n["Commit failed, trying again"] != 1 || n["Model failed, asking the next"] != 1 || n["Context does not fit, oldest turns left out of the view"] != 1 || n["Executing memory flush"] != 150 {
			t.Errorf("lines during the outage: %v", n)
		}
		out.Reset()
		time.Sleep(time.Minute)
		synctest.Wait()
		if !strings.Contains(out.String(), `{"repeated":149,"level":"warn","session":"bot1/cid9","error":"connection refused"`) {
			t.Errorf("the log after a minute: %s", out.String())
		}
		if n := countLines(t, &out); n["Commit failed, trying again"] != 149 || n["Context does not fit, oldest turns left out of the view"] != 149 || len(n) != 3 {
			t.Errorf("counts after a minute: %v", n)
		}
		out.Reset()
		time.Sleep(time.Hour)
		synctest.Wait()
		if out.String() != "" {
			t.Errorf("the log after the outage: %s", out.String())
		}
		log.Warn().Err(away).Msg("Commit failed, trying again")
		if n := countLines(t, &out); n["Commit failed, trying again"] != 1 {
			t.Errorf("the next outage: %v", n)
		}
		log.Warn().Err(away).Msg("Commit failed, trying again")
		out.Reset()
		flush()
		if n := countLines(t, &out); n["Commit failed, trying again"] != 1 {
			t.Errorf("counts at the stop: %v", n)
		}
		log.Warn().Err(away).Msg("Commit failed, trying again")
		if n := countLines(t, &out); n["Commit failed, trying again"] != 2 {
			t.Errorf("lines behind the stop: %v", n)
		}
	})
}

// Lines that state different things are all written: errors of two sessions, failures of two models, and warnings of two rows.
func TestOtherLinesAreNoRepetition(t *testing.T) {
	var out lockedBuffer
	log, _, flush := NewServiceLogger(config.LogConfig{Level: "info"}, &out)
	defer flush()
	failed := errors.New("failed")
	for _, event := range []func() *zerolog.Event{
		func() *zerolog.Event { return log.Error().Err(failed).Str("session", "a").Str("msg_id", "m1") },
		func() *zerolog.Event { return log.Error().Err(failed).Str("session", "b").Str("msg_id", "m1") },
		func() *zerolog.Event { return log.Error().Err(failed).Str("session", "a").Str("msg_id", "m2") },
		func() *zerolog.Event { return log.Error().Err(errors.New("line 4: unknown key")) },
		func() *zerolog.Event { return log.Error().Err(errors.New("line 9: unknown key")) },
		func() *zerolog.Event { return log.Warn().Err(failed) },
		func() *zerolog.Event { return log.Warn().Err(failed).Str("class", "busy") },
		func() *zerolog.Event { return log.Warn().Err(failed).Str("class", "busy").Str("model", "spare") },
		func() *zerolog.Event { return log.Warn().Err(failed).Int64("reply", 1) },
		func() *zerolog.Event { return log.Warn().Err(failed).Int64("reply", 2) },
		func() *zerolog.Event { return log.Warn().Int64("event", 7) },
		func() *zerolog.Event { return log.Warn().Int64("event", 8) },
		func() *zerolog.Event { return log.Warn().Str("session", "a").Int64("event", 8) },
		func() *zerolog.Event { return log.Warn().Str("session", "b").Int64("event", 8) },
		func() *zerolog.Event { return log.Warn().Ints64("summaries", nil).Ints64("facts", []int64{1, 2}) },
		func() *zerolog.Event { return log.Warn().Ints64("summaries", nil).Ints64("facts", []int64{1, 3}) },
		func() *zerolog.Event { return log.Warn().Str("session", "a").Int64("from", 1).Int64("through", 9) },
		func() *zerolog.Event { return log.Warn().Str("session", "b").Int64("from", 1).Int64("through", 9) },
		func() *zerolog.Event { return log.Warn().Str("reason", "no usable answer") },
	} {
		event().Msg("Something failed")
	}
	if n := strings.Count(out.String(), "\n"); n != 19 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
	for i := range 2 * maxRepeats {
		log.Error().Err(failed).Str("session", fmt.Sprint(i)).Msg("Something failed")
	}
	if n := strings.Count(out.String(), "\n"); n != 19+2*maxRepeats {
		t.Errorf("%d lines", n)
	}
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *lockedBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Reset()
}

// countLines counts what the lines stand for, by message.
func countLines(t *testing.T, out *lockedBuffer) map[string]int {
	t.Helper()
	n := map[string]int{}
	for line := range strings.Lines(out.String()) {
		var l struct {
			Message  string
			Repeated int
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		n[l.Message] += max(1, l.Repeated)
	}
	return n
}
