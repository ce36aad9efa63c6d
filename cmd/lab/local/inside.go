package local

import (
	"context"
	"errors"

	"ebb/bot"
	"ebb/bot/chat"
	"ebb/sql"
)

// Inlet passes messages of this process to a bot, as the part of a transport. It is made by NewInlet.
type Inlet struct{ accept chan chat.Accept }

// NewInlet returns an inlet for one bot.
func NewInlet() Inlet { return Inlet{make(chan chat.Accept, 1)} }

// Run implements chat.Transport.
func (i Inlet) Run(ctx context.Context, accept chat.Accept) error {
	i.accept <- accept
	<-ctx.Done()
	return nil
}

// Ready implements chat.Transport.
func (Inlet) Ready() bool { return true }

// RunInside runs a bot in this process, and returns its accept once it serves. stop ends the bot and closes its
// store, which an error closes, too.
func RunInside(ctx context.Context, store *sql.Store, b *bot.Bot, in Inlet) (accept chat.Accept, stop func() error, err error) {
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- b.Run(running) }()
	select {
	case accept = <-in.accept:
	case err := <-ended:
		cancel()
		store.Close()
		return nil, nil, errors.Join(errors.New("the gateway ended"), err)
	}
	return accept, func() error {
		cancel()
		err := <-ended
		store.Close()
		return err
	}, nil
}
