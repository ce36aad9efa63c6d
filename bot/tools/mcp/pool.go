package mcp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/sessions"
)

// Pool holds the connections to the configured servers.
type Pool struct {
	connections []*connection
}

// Config has the servers of an installation.
type Config struct {
	Servers []Server
	Version string           // the bot's release, for the servers' logs
	Now     func() time.Time // the process's clock
}

// New returns a pool without connections. Run makes them.
func New(cfg Config) *Pool {
	p := &Pool{}
	for _, s := range cfg.Servers {
		p.connections = append(p.connections, newConnection(s, cfg.Version, cfg.Now))
	}
	return p
}

// Run keeps the servers connected until ctx ends, and then ends the connections.
func (p *Pool) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, c := range p.connections {
		all.Go(func() { c.run(zerolog.Ctx(ctx).With().Str("server", c.link.server.Name).Logger().WithContext(ctx)) })
	}
	all.Wait()
}

// AwaitTried returns when each server was connected or failed once, or ctx ends.
func (p *Pool) AwaitTried(ctx context.Context) {
	for _, c := range p.connections {
		select {
		case <-c.tried:
		case <-ctx.Done():
			return
		}
	}
}

// Tools implements chat.Toolbox, with the tools that are known so far.
func (p *Pool) Tools(id sessions.ConversationID, kind sessions.ConversationType) (tools []chat.Tool) {
	for _, c := range p.connections {
		if c.link.server.serves(id, kind) {
			tools = append(tools, c.known()...)
		}
	}
	slices.SortFunc(tools, func(x, y chat.Tool) int { return strings.Compare(x.Spec().Name, y.Spec().Name) })
	return tools
}

// Version implements chat.Toolbox.
func (p *Pool) Version() (version int64) {
	for _, c := range p.connections {
		version += c.listed.Load()
	}
	return version
}

// MaxResultTokens implements chat.Toolbox.
func (p *Pool) MaxResultTokens(tool string) int {
	server := chat.ServerOf(tool)
	for _, c := range p.connections {
		if c.link.server.Name == server {
			return c.link.server.MaxResultTokens
		}
	}
	return 0
}

// Status returns the state of the servers, in the order of the configuration.
func (p *Pool) Status() []Status {
	all := make([]Status, len(p.connections))
	for i, c := range p.connections {
		all[i] = c.status()
	}
	return all
}

// Away implements chat.Toolbox.
func (p *Pool) Away(id sessions.ConversationID, kind sessions.ConversationType) (names []string) {
	for _, c := range p.connections {
		if c.link.server.serves(id, kind) && !c.status().Connected {
			names = append(names, c.link.server.Name)
		}
	}
	return names
}

// Connected implements chat.Toolbox.
func (p *Pool) Connected(ctx context.Context, id sessions.ConversationID, kind sessions.ConversationType, tool string) bool {
	for _, c := range p.connections {
		if c.link.server.Name == chat.ServerOf(tool) && c.link.server.serves(id, kind) {
			_, err := c.link.await(ctx)
			return err == nil
		}
	}
	return true
}

// Odd lists the tools of the servers of a conversation that are left out or have another name.
func (p *Pool) Odd(id sessions.ConversationID, kind sessions.ConversationType) (odd []string) {
	for _, c := range p.connections {
		if c.link.server.serves(id, kind) {
			for _, one := range c.status().Odd {
				odd = append(odd, c.link.server.Name+" "+one)
			}
		}
	}
	return odd
}

// Check connects to a server once, and returns its state with the tools that it would offer.
func Check(ctx context.Context, s Server, cfg Config) (found Status, err error) {
	c := newConnection(s, cfg.Version, cfg.Now)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	connected := false
	err = c.connect(ctx, func() {
		connected, found = true, c.status()
		stop()
	})
	if connected {
		return found, nil
	}
	return found, errors.New(s.faultOf(err))
}
