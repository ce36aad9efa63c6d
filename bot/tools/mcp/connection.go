package mcp

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/sessions/retry"
)

const (
	// startTime bounds the start of a server: npx may download it first.
	startTime = time.Minute
	// steady is the age of a connection whose end begins a new series of pauses.
	steady = time.Minute
	// maxTools and maxPages bound the list of a server.
	maxTools = 200
	maxPages = 50
)

var pauses = retry.Pauses{First: time.Second, Max: 2 * time.Minute, Jitter: 0.25}

// connection is one server, connected or not.
type connection struct {
	link    *link
	version string
	listed  atomic.Int64 // lists of tools so far
	tried   chan struct{}
	relist  chan struct{} // the server's list has changed

	mu    sync.Mutex
	tools []chat.Tool
	odd   []string // see [Status]
}

func newConnection(s Server, version string, now func() time.Time) *connection {
	return &connection{
		link: newLink(s, now), version: version, tried: make(chan struct{}), relist: make(chan struct{}, 1),
	}
}

// run connects until ctx ends. The pauses after failures grow, and begin again at the shortest one after a connection that held.
func (c *connection) run(ctx context.Context) {
	series, once := pauses.Start(), sync.OnceFunc(func() { close(c.tried) })
	defer once()
	for ctx.Err() == nil {
		began := c.link.now()
		err := c.connect(ctx, once)
		if ctx.Err() != nil {
			return
		}
		if c.link.now().Sub(began) > steady {
			series.Reset()
		}
		c.link.lost(err)
		once() // behind the fault, which those who await the try read
		zerolog.Ctx(ctx).Warn().Str("fault", c.link.server.faultOf(err)).Msg("MCP server not connected, trying again")
		retry.Sleep(ctx, series.NextBackOff())
	}
}

// connect holds one connection to its end.
func (c *connection) connect(ctx context.Context, tried func()) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "ebb", Version: c.version}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{}, // or the SDK offers the server a list of directories
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			signal(c.relist)
		},
	})
	if c.link.server.Command != "" { // see endWithParent
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	t, release, err := c.link.server.transport(ctx)
	if err != nil {
		return err
	}
	defer release()
	start, stop := context.WithTimeout(ctx, startTime)
	defer stop()
	session, err := client.Connect(start, t, nil)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	defer func() { _ = session.Close() }()
	if err := c.list(start, session); err != nil {
		return err
	}
	drain(c.link.broken)
	c.link.joined(session)
	zerolog.Ctx(ctx).Info().Int("tools", len(c.known())).Msg("MCP server connected")
	tried()
	changes, quiet := pauses.Start(), c.link.now()
	relist, again := c.relist, (<-chan time.Time)(nil)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return errors.Join(errEnded, err)
		case <-c.link.broken:
			return errSilent
		case <-again:
			relist, again, quiet = c.relist, nil, c.link.now()
		case <-relist:
			within, stop := context.WithTimeout(ctx, startTime)
			err := c.list(within, session)
			stop()
			if err != nil {
				return err
			}
			if quiet.Before(c.link.now().Add(-steady)) {
				changes.Reset()
			}
			// Each new list costs the prompt cache: one that changes all the time is read ever less often.
			relist, again = nil, time.After(changes.NextBackOff())
		}
	}
}

var (
	errEnded  = errors.New("the server ended the connection")
	errSilent = errors.New("the server does not answer")
)

// list reads the server's tools. A list that is the same changes nothing.
func (c *connection) list(ctx context.Context, session *mcp.ClientSession) error {
	var found []chat.Tool
	var odd []string
	note := func(t *mcp.Tool, words string) {
		if one := strconv.Quote(cut(storable(t.Name), maxName)) + ": " + words; len(odd) < maxTools && !slices.Contains(odd, one) {
			odd = append(odd, one)
		}
	}
	listed, names, cursor := map[string]bool{}, map[string]bool{}, ""
	var allowed []string
	for range maxPages {
		page, err := session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return fmt.Errorf("list of tools: %w", err)
		}
		for _, t := range page.Tools {
			if t == nil || !matches(c.link.server.Allow, t.Name) {
				continue
			}
			allowed = append(allowed, t.Name)
			if reason := refusalOf(t, listed, len(found)); reason != "" {
				note(t, reason)
				continue
			}
			listed[t.Name] = true
			one := toolOf(c.link, t, names)
			if one.spec.Name != c.link.server.Name+chat.ServerSeparator+t.Name {
				note(t, "offered as "+one.spec.Name)
			}
			names[one.spec.Name] = true
			found = append(found, one)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.odd = append(c.link.server.unmatched(allowed), odd...)
	if c.listed.Load() == 0 || !sameSpecs(c.tools, found) {
		c.tools = found
		c.listed.Add(1)
	}
	return nil
}

// refusalOf is the reason why a tool is left out; empty: it is offered.
func refusalOf(t *mcp.Tool, listed map[string]bool, found int) string {
	switch {
	case t.Name == "":
		return "left out, it has no name"
	case listed[t.Name]:
		return "left out, it is listed twice"
	case found >= maxTools:
		return fmt.Sprintf("left out, the server has more than %d", maxTools)
	}
	return ""
}

func (c *connection) known() []chat.Tool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tools
}

func (c *connection) status() Status {
	s := c.link.status()
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Tools, s.Odd = len(c.tools), slices.Clone(c.odd)
	return s
}
