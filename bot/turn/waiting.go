package turn

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/sessions"
	"ebb/sessions/guard"
)

type waiting struct{ *Runner }

// logPanic is for looks at waiting messages: their words may cause a panic, which ends neither the process nor a turn.
func logPanic(ctx context.Context) {
	if p := recover(); p != nil {
		guard.Count(guard.Session)
		zerolog.Ctx(ctx).Error().Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("Look at waiting messages panicked")
	}
}

// show runs before the turn waits. A failure does not delay the turn, which finds out itself.
func (w waiting) show(ctx context.Context, key sessions.Key) {
	if _, ok := w.cfg.Display.(chat.Acknowledger); !ok {
		return
	}
	defer logPanic(ctx)
	one, stop := context.WithTimeout(ctx, w.cfg.CommitTimeout)
	defer stop()
	l, err := w.leases.Get(one, key)
	if err != nil {
		return
	}
	pending, err := w.pending(one, key)
	if err != nil {
		zerolog.Ctx(ctx).Debug().Err(err).EmbedObject(key).Msg("Waiting message not shown")
		return
	}
	w.showFirst(ctx, l, pending, nil)
}

func (w waiting) stops(ctx context.Context, t *Turn) []sessions.Event {
	behind := slices.Clone(t.View.Pending[len(t.Asked):])
	if t.View.More { // the view has the oldest only
		pending, err := w.pending(ctx, t.Key)
		if err != nil {
			zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to look for a stop before the turn")
			w.running.note(t.Key) // the running turn looks
		}
		for _, e := range pending {
			if !slices.ContainsFunc(behind, func(known sessions.Event) bool { return known.ID == e.ID }) {
				behind = append(behind, e)
			}
		}
	}
	return stopsAmong(w.handler, behind, t.Asked, t.before)
}

// showFirst shows the oldest pending message besides those of the running turn, if it waits for the model. The newest
// is the first of pending.
func (w waiting) showFirst(ctx context.Context, l sessions.Lease, pending, asked []sessions.Event) {
	d, ok := w.cfg.Display.(chat.Acknowledger)
	if !ok || len(pending) == stopWindow { // the oldest may not be listed
		return
	}
	for _, e := range slices.Backward(pending) {
		if slices.ContainsFunc(asked, func(a sessions.Event) bool { return a.ID == e.ID }) {
			continue
		}
		if w.kindOf(e, w.now()) == kindAsk {
			d.Acknowledge(ctx, l, e)
		}
		return
	}
}
