package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/sessions/redact"
	"ebb/sessions/retry"
)

const (
	// startTime bounds the start of a server: npx may download it first.
	startTime = time.Minute
	// awaitTime is the wait of a call for a server that is being connected again.
	awaitTime = 5 * time.Second
	pingTime  = 5 * time.Second
	// steady is the age of a connection whose end begins a new series of pauses.
	steady = time.Minute
	// maxTools and maxPages bound the list of a server.
	maxTools = 200
	maxPages = 50
)

var pauses = retry.Pauses{First: time.Second, Max: 2 * time.Minute, Jitter: 0.25}

// connection is one server, connected or not.
type connection struct {
	server  Server
	version string
	now     func() time.Time
	listed  atomic.Int64 // lists of tools so far
	tried   chan struct{}
	relist  chan struct{} // the server's list has changed
	broken  chan struct{} // a call found the session dead

	mu       sync.Mutex
	session  *mcp.ClientSession // nil: not connected
	online   chan struct{}      // closed while connected
	tools    []chat.Tool
	odd      []string // see [Status]
	since    time.Time
	failures int
	fault    string
}

func newConnection(s Server, cfg Config) *connection {
	return &connection{
		server: s, version: cfg.Version, now: cfg.Now, tried: make(chan struct{}), relist: make(chan struct{}, 1),
		broken: make(chan struct{}, 1), online: make(chan struct{}), since: cfg.Now(),
	}
}

// run connects until ctx ends. The pauses after failures grow, and begin again at the shortest one after a connection that held.
func (c *connection) run(ctx context.Context) {
	series, once := pauses.Start(), sync.OnceFunc(func() { close(c.tried) })
	defer once()
	for ctx.Err() == nil {
		began := c.now()
		err := c.connect(ctx, once)
		if ctx.Err() != nil {
			return
		}
		if c.now().Sub(began) > steady {
			series.Reset()
		}
		c.lost(err)
		once() // behind the fault, which those who await the try read
		zerolog.Ctx(ctx).Warn().Str("fault", c.server.faultOf(err)).Msg("MCP server not connected, trying again")
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
	if c.server.Command != "" { // see endWithParent
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	t, release, err := c.server.transport(ctx)
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
	drain(c.broken)
	c.joined(ctx, session)
	tried()
	changes, quiet := pauses.Start(), c.now()
	relist, again := c.relist, (<-chan time.Time)(nil)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return errors.Join(errEnded, err)
		case <-c.broken:
			return errSilent
		case <-again:
			relist, again, quiet = c.relist, nil, c.now()
		case <-relist:
			within, stop := context.WithTimeout(ctx, startTime)
			err := c.list(within, session)
			stop()
			if err != nil {
				return err
			}
			if quiet.Before(c.now().Add(-steady)) {
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
			if t == nil || !matches(c.server.Allow, t.Name) {
				continue
			}
			allowed = append(allowed, t.Name)
			if reason := refusalOf(t, listed, len(found)); reason != "" {
				note(t, reason)
				continue
			}
			listed[t.Name] = true
			one := c.tool(t, names)
			if one.spec.Name != c.server.Name+chat.ServerSeparator+t.Name {
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
	c.odd = append(c.server.unmatched(allowed), odd...)
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

func (c *connection) joined(ctx context.Context, session *mcp.ClientSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.since, c.failures, c.fault = session, c.now(), 0, ""
	close(c.online)
	zerolog.Ctx(ctx).Info().Int("tools", len(c.tools)).Msg("MCP server connected")
}

func (c *connection) lost(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != nil {
		c.session, c.since, c.online = nil, c.now(), make(chan struct{})
	}
	c.failures++
	c.fault = c.server.faultOf(err)
}

func (c *connection) known() []chat.Tool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tools
}

func (c *connection) status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Status{Name: c.server.Name, Connected: c.session != nil, Since: c.since, Tools: len(c.tools), Odd: slices.Clone(c.odd), Failures: c.failures, Fault: c.fault}
}

// awaitShortly returns the session, and waits shortly for one that is being made.
func (c *connection) awaitShortly(ctx context.Context) (*mcp.ClientSession, error) {
	ctx, stop := context.WithTimeout(ctx, awaitTime)
	defer stop()
	return c.await(ctx)
}

// await returns the session, and waits for one until ctx ends.
func (c *connection) await(ctx context.Context) (*mcp.ClientSession, error) {
	for {
		c.mu.Lock()
		session, online := c.session, c.online
		c.mu.Unlock()
		if session != nil {
			return session, nil
		}
		select {
		case <-online:
		case <-ctx.Done():
			return nil, errAway
		}
	}
}

var errAway = errors.New("the server is not connected")

// verify checks after a failed call whether the session lives. One that does not is replaced. A session whose end is known is replaced at
// once; one that only did not answer in time is asked beside the turn.
func (c *connection) verify(ctx context.Context, session *mcp.ClientSession, err error) {
	if errors.Is(err, mcp.ErrConnectionClosed) || neverArrived(err) {
		c.drop(session)
		return
	}
	ping := func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), pingTime)
		defer stop()
		if session.Ping(ctx, nil) != nil {
			c.drop(session)
		}
	}
	if ctx.Err() != nil {
		go ping()
		return
	}
	ping()
}

// drop lets calls wait for a new session in place of a dead one.
func (c *connection) drop(session *mcp.ClientSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == session {
		c.session, c.since, c.online = nil, c.now(), make(chan struct{})
		signal(c.broken)
	}
}

// neverArrived reports whether the server can't have seen a call.
func neverArrived(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return errors.Is(err, mcp.ErrSessionMissing) || ok && dial.Op == "dial"
}

const maxFault = 300

// faultOf shortens an error for operators, without secrets: addresses and output of programs may have some.
func (s Server) faultOf(err error) string {
	if err == nil {
		return ""
	}
	return cut(redact.Secrets(s.mask(oneLine(err.Error()))), maxFault)
}

const (
	masked    = "***"
	minSecret = 6
)

// mask replaces the configured address, headers, variables, and arguments that are secrets.
func (s Server) mask(text string) string {
	if at, err := url.Parse(s.URL); err == nil && s.URL != "" {
		text = strings.ReplaceAll(text, s.URL, at.Scheme+"://"+at.Host)
		if len(at.RawQuery) >= minSecret {
			text = strings.ReplaceAll(text, at.RawQuery, masked)
		}
	}
	for _, a := range s.secretArgs() {
		text = strings.ReplaceAll(text, a, masked)
	}
	for _, values := range []map[string]string{s.Headers, s.Env} {
		for _, v := range values {
			for _, word := range append([]string{v}, strings.Fields(v)...) { // the token of a header is secret without "Bearer", too
				if len(word) >= minSecret && word != "Bearer" {
					text = strings.ReplaceAll(text, word, masked)
				}
			}
		}
	}
	return text
}

// conceal masks values with the names of secrets, in text that people and the model see. Other values, such as directories, are needed there.
func (s Server) conceal(text string) string {
	secret := Server{Args: s.Args, Headers: maps.Clone(s.Headers), Env: maps.Clone(s.Env)}
	for _, values := range []map[string]string{secret.Headers, secret.Env} {
		maps.DeleteFunc(values, func(name, _ string) bool { return !secretName.MatchString(name) })
	}
	if strings.Contains(s.URL, "?") {
		secret.URL = s.URL
	}
	return secret.mask(text)
}

// secretArgs are addresses with a password, and the values of options with the names of secrets: --token X and --token=X.
func (s Server) secretArgs() (secrets []string) {
	named := false
	for _, a := range s.Args {
		option, value, joined := strings.Cut(a, "=")
		isOption := strings.HasPrefix(a, "-") && secretName.MatchString(option)
		at, err := url.Parse(a)
		switch {
		case isOption && joined:
			secrets = append(secrets, value)
		case named, err == nil && at.User != nil:
			secrets = append(secrets, a)
		}
		named = isOption && !joined
	}
	return slices.DeleteFunc(secrets, func(a string) bool { return len(a) < minSecret })
}

var secretName = regexp.MustCompile(`(?i)key|token|secret|pass|auth|cookie|credential`)

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func drain(c chan struct{}) {
	select {
	case <-c:
	default:
	}
}
