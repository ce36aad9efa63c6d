package chat

import (
	"context"

	"ebb/sessions"
)

// Display shows running turns.
type Display interface {
	// Show begins the display of a turn that asks the model. It returns at once, with nil if the turn is not shown.
	Show(ctx context.Context, s Shown) Live
}

// Acknowledger is a [Display] that also shows messages before their turn begins.
type Acknowledger interface {
	// Acknowledge shows once that a message waits for the model, and returns at once.
	Acknowledge(ctx context.Context, l sessions.Lease, e sessions.Event)
}

// Queuer is a [Display] that also shows turns that wait for a slot.
type Queuer interface {
	// Queue shows that a turn waits, and returns at once. leave ends that, and may take some seconds; Show of the same messages
	// then continues what people see.
	Queue(ctx context.Context, s Shown) (leave func())
}

// Shown is a turn that begins, or waits for a slot.
type Shown struct {
	Lease  sessions.Lease
	Asked  []sessions.Event // messages that it answers
	Target sessions.Target  // destination of its reply
	Tracks []string         // reply keys of the messages, see [ReplyKey]; an earlier display of any message continues, and a new one has the first
	Lang   string           // for fixed words
	// Look says that the turn may have lost its lease: it looks, and ends if it did.
	Look func()
	// Sent waits a short time for the session's earlier replies. False: some are not sent, and the turn must not be
	// shown before them.
	Sent func(ctx context.Context) bool
}

// Live is the display of a running turn. Only Stop blocks.
type Live interface {
	// Text appends streamed text, and reset drops the text before it.
	Text(text string, reset bool)
	// Thought appends streamed reasoning, which ends with the next text or tool. A display may leave it out.
	Thought(text string)
	Tool(name string)
	// Visible reports whether people see the turn.
	Visible() bool
	// Stop ends the display before the commit, or without one. It returns the card on which the reply goes on, see
	// [sessions.Target]; empty for none.
	Stop() (card string)
}

// Click is a press of a button on a card.
type Click struct {
	Card   string // track id
	By     sessions.UserID
	Action sessions.Button
	// Organization is that of By; empty: DingTalk did not name it.
	Organization string
}

// Clicked is the answer to a click.
type Clicked struct {
	Hide   bool   // hides the buttons of the click's kind
	Notice string // for the person who clicked
}

// Clickable is a [Transport] with buttons.
type Clickable interface {
	// OnClick sets the receiver of clicks before Run. The receiver answers within a second or two.
	OnClick(func(ctx context.Context, c Click) Clicked)
}
