package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"

	"ebb/bot/chat"
	"ebb/bot/command"
	"ebb/bot/config"
	"ebb/cmd/bot/gateway"
	"ebb/sessions"
)

type chatCmd struct {
	configFlag
	Session string `default:"terminal" help:"Name of the conversation; the same name goes on with it (default: ${default})."`

	Policy             *string `placeholder:"NAME" help:"Override agent.compaction.policy."`
	Mode               *string `placeholder:"NAME" help:"Override agent.compaction.mode."`
	FullContextTurns   *int    `placeholder:"A" help:"Turns that stay raw with the policy turns."`
	CachedContextTurns *int    `placeholder:"B" help:"Turns that become one summary with the policy turns."`
	Threshold          *int    `placeholder:"TOKENS" help:"Override agent.compaction.auto_compact_threshold."`
}

func (c chatCmd) overrides() []config.Override {
	var all []config.Override
	text := func(flag, key string, value *string, of func(*config.CompactionSettings) *string) {
		if value != nil {
			all = append(all, config.Override{Flag: flag, Key: key, Set: func(s *config.CompactionSettings) { *of(s) = *value }})
		}
	}
	number := func(flag, key string, value *int, of func(*config.CompactionSettings) *int) {
		if value != nil {
			all = append(all, config.Override{Flag: flag, Key: key, Set: func(s *config.CompactionSettings) { *of(s) = *value }})
		}
	}
	text("--policy", "policy", c.Policy, func(s *config.CompactionSettings) *string { return &s.Policy })
	text("--mode", "mode", c.Mode, func(s *config.CompactionSettings) *string { return &s.Mode })
	number("--full-context-turns", "full_context_turns", c.FullContextTurns, func(s *config.CompactionSettings) *int { return &s.FullContextTurns })
	number("--cached-context-turns", "cached_context_turns", c.CachedContextTurns, func(s *config.CompactionSettings) *int { return &s.CachedContextTurns })
	number("--threshold", "auto_compact_threshold", c.Threshold, func(s *config.CompactionSettings) *int { return &s.AutoCompactThreshold })
	return all
}

// Run talks with the configured model over the engine of serve, until the input ends.
func (c chatCmd) Run(ctx context.Context, app *App) error {
	cfg, err := config.Load(c.Config, app.Getenv, config.NeedLLM, c.overrides()...)
	if err != nil {
		return err
	}
	cfg.Admin.Listen = "" // a terminal needs no admin server
	if cfg.Log.Level == "info" {
		cfg.Log.Level = "warn"
	}
	in, isFile := app.Stdin.(*os.File)
	t := &terminal{in: app.Stdin, out: &printable{out: app.Stdout}, session: c.Session, answered: make(chan struct{}, maxTyped)}
	t.prompt = isFile && isatty.IsTerminal(in.Fd())
	if t.prompt {
		fmt.Fprintf(t.out, "Conversation %q. /help lists the commands; /quit or Ctrl-D ends.\n", c.Session)
	}
	log, _ := gateway.NewLogger(cfg.Log, app.Stderr)
	ctx, stop := context.WithCancel(log.WithContext(ctx))
	defer stop()
	t.end = stop
	return gateway.Serve(ctx, cfg, gateway.Options{Transport: t, Display: t, Version: version})
}

type terminal struct {
	in      io.Reader
	out     io.Writer
	session string
	prompt  bool
	end     func()

	answered chan struct{}
	typed    []string // lines typed during an answer
	mu       sync.Mutex
	shown    string // streamed part of the answer
}

var (
	_ chat.Transport = (*terminal)(nil)
	_ chat.Display   = (*terminal)(nil)
)

// Run accepts one line at a time and waits for its answer, which a /stop ends; other lines wait. The end of the input
// stops the bot.
func (t *terminal) Run(ctx context.Context, accept chat.Accept) error {
	defer t.end()
	lines := make(chan string, maxTyped)
	go t.read(ctx, lines)
	for {
		if t.prompt {
			fmt.Fprint(t.out, "> ")
		}
		line, ok := t.next(ctx, lines)
		if !ok || strings.TrimSpace(line) == "/quit" {
			return nil
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if err := accept(ctx, t.message(line)); err != nil {
			return fmt.Errorf("take the line: %w", err)
		}
		if answered, err := t.wait(ctx, lines, accept); err != nil || !answered {
			t.printUnsent(lines)
			return err
		}
	}
}

const maxTyped = 100

// waitingMark appears when the first word of an answer takes longer than waitingAfter.
const (
	waitingMark  = "…"
	waitingAfter = time.Second
)

// next returns false at the end of the input or of the bot.
func (t *terminal) next(ctx context.Context, lines <-chan string) (string, bool) {
	if len(t.typed) > 0 {
		line := t.typed[0]
		t.typed = t.typed[1:]
		return line, true
	}
	select {
	case <-ctx.Done():
		return "", false
	case line, ok := <-lines:
		return line, ok
	}
}

func stopsAnswer(line string) bool {
	c := command.Commands.Parse(line)
	return c.Name == "stop" && c.Use != nil && c.Arg == ""
}

// wait returns true when the answer is shown, and false when the bot stops first. A /stop has its own answer.
func (t *terminal) wait(ctx context.Context, lines <-chan string, accept chat.Accept) (bool, error) {
	slow := time.NewTimer(waitingAfter)
	defer slow.Stop()
	for owed := 1; ; {
		select {
		case <-ctx.Done():
			return false, nil
		case <-t.answered:
			if owed--; owed == 0 {
				return true, nil
			}
		case line, ok := <-lines:
			switch {
			case !ok:
				lines = nil // the answer is still shown
			case !stopsAnswer(line):
				t.typed = append(t.typed, line)
			default:
				if err := accept(ctx, t.message(line)); err != nil {
					return false, fmt.Errorf("take the line: %w", err)
				}
				owed++
			}
		case <-slow.C:
			t.mu.Lock()
			if t.prompt && t.shown == "" {
				fmt.Fprintln(t.out, waitingMark)
			}
			t.mu.Unlock()
		}
	}
}

// printUnsent prints the lines typed during an answer that never arrived.
func (t *terminal) printUnsent(lines <-chan string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range t.typed {
		if strings.TrimSpace(line) != "" {
			fmt.Fprintf(t.out, "not sent: %s\n", line)
		}
	}
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return
			}
			if strings.TrimSpace(line) != "" {
				fmt.Fprintf(t.out, "not sent: %s\n", line)
			}
		default:
			return
		}
	}
}

// A blocked read lasts until the process ends.
func (t *terminal) read(ctx context.Context, lines chan<- string) {
	defer close(lines)
	s := bufio.NewScanner(t.in)
	s.Buffer(nil, 4<<20)
	for s.Scan() {
		select {
		case lines <- s.Text():
		case <-ctx.Done():
			return
		}
	}
	if err := s.Err(); err != nil && !errors.Is(err, os.ErrClosed) {
		fmt.Fprintf(t.out, "reading the input: %v\n", err)
	}
}

func (t *terminal) message(line string) sessions.Message {
	name := "you"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return sessions.Message{
		RobotCode: "terminal", ConversationID: sessions.ConversationID(t.session), ConversationType: sessions.Private,
		ID: sessions.MessageID(rand.Text()), SenderID: sessions.UserID(name), StaffID: sessions.UserID(name), SenderNick: name,
		Admin: true, Kind: "text", Text: line, SentAt: time.Now(),
	}
}

// Show implements [chat.Display]: the terminal shows one turn at a time.
func (t *terminal) Show(context.Context, chat.Shown) chat.Live { return t }

// Text prints an answer while it is streamed.
func (t *terminal) Text(text string, reset bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if reset && t.shown != "" {
		fmt.Fprintln(t.out, "\n…")
		t.shown = ""
	}
	t.shown += text
	fmt.Fprint(t.out, text)
}

// Tool shows nothing.
func (t *terminal) Tool(string) {}

// Thought shows nothing.
func (t *terminal) Thought(string) {}

// Visible implements [chat.Live].
func (t *terminal) Visible() bool { return true }

// Stop shows nothing: Send prints the rest.
func (t *terminal) Stop() string { return "" }

// Send prints what was not streamed.
func (t *terminal) Send(_ context.Context, o sessions.Outgoing) (chat.Sent, error) {
	t.mu.Lock()
	rest, ok := strings.CutPrefix(o.Reply.Text, strings.TrimSpace(t.shown))
	if !ok && t.shown != "" {
		rest = "\n" + o.Reply.Text
	}
	t.shown = ""
	fmt.Fprintln(t.out, rest)
	t.mu.Unlock()
	select {
	case t.answered <- struct{}{}:
	default:
	}
	return chat.Sent{Via: "terminal", Part: 1}, nil
}

// Ready returns true.
func (t *terminal) Ready() bool { return true }
