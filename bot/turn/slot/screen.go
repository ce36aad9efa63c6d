package slot

import (
	"context"
	"slices"
	"time"

	"ebb/bot/chat"
	"ebb/bot/turn/choice"
	"ebb/sessions"
)

// Screen shows turns to their conversations while they wait and while they run.
type Screen struct {
	display chat.Display
	running *Running
	outbox  Outbox
	kinds   choice.Kinds
	now     func() time.Time // the storage's clock
}

// sentPatience bounds the wait of a display for the session's earlier replies. Without faults they are sent within it.
const sentPatience = time.Second

// Show begins the display of a turn that asks the model; nil: it is not shown. hide ends it and returns the card of the reply, see
// [chat.Live]; it may be called again.
func (s Screen) Show(ctx context.Context, made choice.Choice) (live chat.Live, hide func() (card string)) {
	if made.Kind == choice.Ask {
		live = s.display.Show(ctx, s.shown(made.Lease, made.Asked, made.Lang))
	}
	if live == nil {
		return nil, func() string { return "" }
	}
	return live, live.Stop
}

func (s Screen) shown(l sessions.Lease, asked []sessions.Event, lang string) chat.Shown {
	shown := chat.Shown{
		Lease: l, Asked: asked, Target: chat.TargetOf(asked), Lang: lang,
		Look: func() { s.running.Note(l.Key) },
		Sent: func(ctx context.Context) bool {
			return s.outbox.AwaitSent(ctx, l.Key, chat.TargetOf(asked), sentPatience)
		},
	}
	for _, e := range asked {
		shown.Tracks = append(shown.Tracks, chat.ReplyKey(l.Key, e))
	}
	return shown
}

// acknowledges reports whether the display shows messages before their turn begins.
func (s Screen) acknowledges() bool {
	_, ok := s.display.(chat.Acknowledger)
	return ok
}

// acknowledge shows the oldest pending message besides those of the running turn, if it waits for the model. The newest
// is the first of pending.
func (s Screen) acknowledge(ctx context.Context, l sessions.Lease, pending, asked []sessions.Event) {
	d, ok := s.display.(chat.Acknowledger)
	if !ok || len(pending) == lookWindow { // the oldest may not be listed
		return
	}
	for _, e := range slices.Backward(pending) {
		if slices.ContainsFunc(asked, func(a sessions.Event) bool { return a.ID == e.ID }) {
			continue
		}
		if s.kinds.KindOf(e, s.now()) == choice.Ask {
			d.Acknowledge(ctx, l, e)
		}
		return
	}
}
