// Package robots makes the transports of several robots one. Each call goes to the transport of its robot, and a robot that can't work stops
// none of the others.
package robots

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/sessions"
)

// Robot is one robot and its parts. Display is [chat.NoDisplay] if its turns are not shown.
type Robot struct {
	Code      sessions.RobotCode
	Name      string // in logs
	Transport Transport
	Display   chat.Display
}

// Transport is the transport of one robot.
type Transport interface {
	chat.Transport
	chat.Receiver
	chat.Clickable
	chat.Files
	chat.Uploader
	// Failing reports that the platform refuses the robot, or does not answer it again and again: no connection can be expected soon.
	Failing() bool
}

// Robots is the transport and the display of all.
type Robots struct {
	all      []Robot
	registry *Registry
}

var (
	_ chat.Transport    = (*Robots)(nil)
	_ chat.Receiver     = (*Robots)(nil)
	_ chat.Clickable    = (*Robots)(nil)
	_ chat.Files        = (*Robots)(nil)
	_ chat.Uploader     = (*Robots)(nil)
	_ chat.Acknowledger = display{}
	_ chat.Queuer       = display{}
)

// New joins robots, at least one.
func New(all []Robot, registry *Registry) *Robots { return &Robots{all, registry} }

// of returns the first robot for a code that is not configured any more: a webhook works without credentials.
func (r *Robots) of(code sessions.RobotCode) Robot {
	return r.all[max(0, r.find(code))]
}

// find is -1 for a code that is not configured any more. An only robot may have other codes in its frames.
func (r *Robots) find(code sessions.RobotCode) int {
	if len(r.all) == 1 && r.registry.Serves(code) {
		return 0
	}
	return slices.IndexFunc(r.all, func(one Robot) bool { return one.Code == code })
}

// Run implements [chat.Transport]. It ends when all have ended. The error of one is logged, and that of all is returned. A message is one of
// the robot whose connection brought it, whatever code its frame names: settings, access and credentials are those of a code.
func (r *Robots) Run(ctx context.Context, accept chat.Accept) error {
	errs := make([]error, len(r.all))
	var running sync.WaitGroup
	for i, one := range r.all {
		log := zerolog.Ctx(ctx).With().Str("bot", one.Name).Logger()
		running.Go(func() {
			if errs[i] = one.Transport.Run(log.WithContext(ctx), acceptAs(one.Code, accept)); errs[i] != nil && ctx.Err() == nil {
				log.Error().Err(errs[i]).Msg("Bot can't receive messages")
			}
		})
	}
	running.Wait()
	for _, err := range errs {
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("no bot can receive messages: %w", errs[0])
}

func acceptAs(robot sessions.RobotCode, accept chat.Accept) chat.Accept {
	return func(ctx context.Context, m sessions.Message) error {
		m.RobotCode = robot
		return accept(ctx, m)
	}
}

// Send implements [chat.Transport].
func (r *Robots) Send(ctx context.Context, o sessions.Outgoing) (chat.Sent, error) {
	return r.of(o.Reply.Target.RobotCode).Transport.Send(ctx, o)
}

// Download implements [chat.Files]. The code of a file is valid with the credentials of its robot alone.
func (r *Robots) Download(ctx context.Context, robot sessions.RobotCode, a sessions.Attachment, to *os.File, limit int64) error {
	return r.of(robot).Transport.Download(ctx, robot, a, to, limit)
}

// Upload implements [chat.Uploader]. The id of an upload is valid with the credentials of its robot alone.
func (r *Robots) Upload(ctx context.Context, robot sessions.RobotCode, f sessions.File) (string, error) {
	return r.of(robot).Transport.Upload(ctx, robot, f)
}

// Ready implements [chat.Transport]: one is connected, and each of the others is connected or failing. A robot that still connects would miss
// messages if another replica stopped now.
func (r *Robots) Ready() bool {
	ready := false
	for _, one := range r.all {
		switch {
		case one.Transport.Ready():
			ready = true
		case !one.Transport.Failing():
			return false
		}
	}
	return ready
}

// AwaitReceived implements [chat.Receiver].
func (r *Robots) AwaitReceived(ctx context.Context, c sessions.ConversationID) {
	for _, one := range r.all {
		one.Transport.AwaitReceived(ctx, c)
	}
}

// OnClick implements [chat.Clickable].
func (r *Robots) OnClick(receive func(context.Context, chat.Click) chat.Clicked) {
	for _, one := range r.all {
		one.Transport.OnClick(receive)
	}
}

// First returns the first robot that is connected, or the first of all: the one that writes to people by itself.
func (r *Robots) First() sessions.RobotCode {
	for _, one := range r.all {
		if one.Transport.Ready() {
			return one.Code
		}
	}
	return r.all[0].Code
}

// Display shows the turns of the robots that have a display. Those of a robot that is not configured are not shown.
func (r *Robots) Display() chat.Display {
	for _, one := range r.all {
		if one.Display != (chat.NoDisplay{}) {
			return display{r}
		}
	}
	return chat.NoDisplay{}
}

type display struct{ robots *Robots }

// Show implements [chat.Display].
func (d display) Show(ctx context.Context, s chat.Shown) chat.Live {
	return d.ofSession(s.Lease.Key).Show(ctx, s)
}

// Acknowledge implements [chat.Acknowledger].
func (d display) Acknowledge(ctx context.Context, l sessions.Lease, e sessions.Event) {
	if one, ok := d.ofSession(l.Key).(chat.Acknowledger); ok {
		one.Acknowledge(ctx, l, e)
	}
}

// Queue implements [chat.Queuer].
func (d display) Queue(ctx context.Context, s chat.Shown) (leave func()) {
	if one, ok := d.ofSession(s.Lease.Key).(chat.Queuer); ok {
		return one.Queue(ctx, s)
	}
	return func() {}
}

func (d display) ofSession(key sessions.Key) chat.Display {
	robot, _ := key.Conversation()
	if i := d.robots.find(robot); i >= 0 {
		return d.robots.all[i].Display
	}
	return chat.NoDisplay{}
}
