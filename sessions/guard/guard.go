// Package guard keeps a panic in one piece of work from ending the process.
package guard

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/rs/zerolog"
)

// Work is a kind of work, as metrics name it.
type Work string

// The kinds of work.
const (
	Session  Work = "session"  // turns and upkeep
	Reply    Work = "reply"    // an attempt to send a reply
	Refusal  Work = "refusal"  // the answer to a message that access rules refuse
	Card     Work = "card"     // the display of a turn, and the end of a card
	Reaction Work = "reaction" // a thinking mark
	Task     Work = "task"     // background work
	Notice   Work = "notice"   // a message to administrators
	Storage  Work = "storage"  // a batch of writes, or a search beside another one
)

// Works lists the kinds.
var Works = []Work{Session, Reply, Refusal, Card, Reaction, Task, Notice, Storage}

// ErrPanicked is the error of work that panicked.
var ErrPanicked = errors.New("work panicked")

var panics = func() map[Work]*atomic.Int64 {
	counts := map[Work]*atomic.Int64{}
	for _, w := range Works {
		counts[w] = new(atomic.Int64)
	}
	return counts
}()

// Panics counts the panics of a kind of work in this process.
func Panics(w Work) int64 { return panics[w].Load() }

// Count counts a panic that its caller recovered and logged.
func Count(w Work) { panics[w].Add(1) }

// Do runs f. A panic is logged with its stack, counted, and returned as an error that wraps [ErrPanicked].
func Do(ctx context.Context, w Work, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			panics[w].Add(1)
			zerolog.Ctx(ctx).Error().Str("work", string(w)).Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("Work panicked")
			err = fmt.Errorf("%s: %w", w, ErrPanicked)
		}
	}()
	return f()
}

// Run is Do for work without an error.
func Run(ctx context.Context, w Work, f func()) {
	_ = Do(ctx, w, func() error { f(); return nil }) // the panic is logged
}
