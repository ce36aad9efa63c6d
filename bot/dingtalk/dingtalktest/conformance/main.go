// Command conformance runs DingTalk's official Node SDK against the simulator and checks that both sides agree, without
// a reported violation. It covers opening, callbacks, acks, ping echoes, tokens, replies, `disconnect`, a dropped
// connection and redelivery. It needs node and npm, and installs the SDK into a temporary folder.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/nodetest"
)

//go:embed package.json
var packageJSON []byte

//go:embed client.mjs
var clientProgram []byte

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		stop()
		os.Exit(1)
	}
	fmt.Println("conformance: the official Node SDK and the simulator agree")
}

func run(ctx context.Context, out, log io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	dir, err := nodetest.Install(ctx, log, map[string][]byte{"package.json": packageJSON, "client.mjs": clientProgram})
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	opts := dingtalktest.Fast()
	opts.PingInterval = 200 * time.Millisecond
	s, err := dingtalktest.Start(opts)
	if err != nil {
		return err
	}
	defer s.Close()
	stop, err := startClient(ctx, dir, s.URL, log)
	if err != nil {
		return err
	}
	p := &play{ctx: ctx, s: s, out: out}
	err = p.all()
	err = errors.Join(err, stop())
	if err != nil {
		for _, e := range s.Transcript() {
			fmt.Fprintln(log, e)
		}
	}
	return err
}

// The returned function ends the echo bot.
func startClient(ctx context.Context, dir, url string, log io.Writer) (func() error, error) {
	node := exec.CommandContext(ctx, "node", "client.mjs")
	node.Dir, node.Stdout, node.Stderr = dir, log, log
	node.Env = append(os.Environ(), "SIM_URL="+url, "SIM_CLIENT_ID=dingsimapp0001", "SIM_CLIENT_SECRET=sim-secret")
	stdin, err := node.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("making node's stdin: %w", err)
	}
	if err := node.Start(); err != nil {
		return nil, fmt.Errorf("starting node: %w", err)
	}
	return func() error {
		_ = stdin.Close() // node may have ended by itself, which Wait reports
		if err := node.Wait(); err != nil {
			return fmt.Errorf("the Node client: %w", err)
		}
		return nil
	}, nil
}

type play struct {
	ctx context.Context
	s   *dingtalktest.Server
	out io.Writer
}

func (p *play) all() error {
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"opens a connection and subscribes", p.opens},
		{"fetches a token from the old host", p.token},
		{"gets a text, acknowledges it with 200 and answers over the webhook", func() error { return p.echo("hello") }},
		{"gets messages of every kind", p.kinds},
		{"acknowledges a redelivered message", p.redelivery},
		{"echoes pings", p.pings},
		{"opens a new connection after disconnect", func() error {
			return p.reconnects(func() { p.s.Disconnect(dingtalktest.DisconnectOptions{}) })
		}},
		{"works on it", func() error { return p.echo("after disconnect") }},
		{"opens a new connection after a reset", func() error {
			return p.reconnects(func() { p.s.Drop(dingtalktest.DropOptions{}) })
		}},
		{"works on that, too", func() error { return p.echo("after the reset") }},
		{"breaks no rule of the protocol", p.noViolations},
	} {
		if err := step.run(); err != nil {
			return fmt.Errorf("the Node SDK %s: %w", step.name, err)
		}
		fmt.Fprintln(p.out, "ok  the Node SDK", step.name)
	}
	return nil
}

func (p *play) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(p.ctx, 20*time.Second)
}

func (p *play) opens() error {
	ctx, cancel := p.within()
	defer cancel()
	if err := p.s.WaitConns(ctx, 1); err != nil {
		return err
	}
	c := p.s.Connections()[0]
	if !slices.Contains(c.Subscriptions, "CALLBACK "+dingtalktest.TopicBot) || c.UA != "conformance-node/1" {
		return fmt.Errorf("it subscribed to %v as %q", c.Subscriptions, c.UA)
	}
	return nil
}

func (p *play) token() error {
	if n := p.s.State().Apps[0].TokenFetches; n != 1 {
		return fmt.Errorf("it fetched %d tokens, not 1", n)
	}
	return nil
}

func (p *play) acked(msgID string) error {
	ctx, cancel := p.within()
	defer cancel()
	ack, err := p.s.WaitAck(ctx, msgID)
	if err != nil {
		return err
	}
	if ack.Code != 200 || ack.Data != `{"response":null}` {
		return fmt.Errorf("the ack is %+v", ack)
	}
	return nil
}

func (p *play) echo(text string) error {
	id := p.s.Say(dingtalktest.Message{Conversation: "cidConformance", Sender: "u1", Text: text})
	if err := p.acked(id); err != nil {
		return err
	}
	ctx, cancel := p.within()
	defer cancel()
	r, err := p.s.WaitReply(ctx, "cidConformance", "echo: "+text)
	if err == nil && r.MsgID != id {
		err = fmt.Errorf("the reply is %+v", r)
	}
	return err
}

func (p *play) kinds() error {
	for name, m := range dingtalktest.Variants() {
		if m.MsgType == "" || m.MsgType == "text" {
			continue // the echo bot reads the text of texts, which some variants lack
		}
		if err := p.acked(p.s.Say(m)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (p *play) redelivery() error {
	id := p.s.Say(dingtalktest.Picture("dc"))
	if err := p.acked(id); err != nil {
		return err
	}
	p.s.Redeliver(id, dingtalktest.RedeliverOptions{})
	p.s.Redeliver(id, dingtalktest.RedeliverOptions{SameFrameID: true})
	ctx, cancel := p.within()
	defer cancel()
	acks := 0
	_, err := p.s.WaitEntry(ctx, "three acks of one message", func(e dingtalktest.Entry) bool {
		if e.Kind == "ack" && e.MsgID == id && e.Status == 200 {
			acks++
		}
		return acks == 3
	})
	return err
}

func (p *play) pings() error {
	acked := p.s.Connections()[0].Acked
	ctx, cancel := p.within()
	defer cancel()
	return p.s.WaitFor(ctx, "three answered pings", func(st dingtalktest.State) bool {
		return len(st.Connections) == 1 && st.Connections[0].Acked >= acked+3
	})
}

func (p *play) reconnects(end func()) error {
	old := p.s.Connections()[0].ID
	end()
	ctx, cancel := p.within()
	defer cancel()
	return p.s.WaitFor(ctx, "a new connection", func(st dingtalktest.State) bool {
		return st.Live == 1 && len(st.Connections) == 1 && st.Connections[0].ID != old
	})
}

func (p *play) noViolations() error {
	var lines []string
	for _, v := range p.s.Violations() {
		lines = append(lines, v.String())
	}
	if len(lines) > 0 {
		return errors.New("the simulator reports\n" + strings.Join(lines, "\n"))
	}
	return nil
}
