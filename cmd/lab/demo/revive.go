package demo

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"ebb/cmd/lab/rig"
)

// lockedWriter lets news be printed during an answer.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// Write implements io.Writer.
func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

// restartWithin bounds the start of a gateway in the place of one that ended.
const restartWithin = 30 * time.Second

// unreadNews are kept while a line waits for its acknowledgement, which may need the gateway that they announce.
const unreadNews = 64

// keepServing starts the next gateway when one ends by itself, as a supervisor does. One that does not come up is the end of the demo.
// It returns the news of it and does not wait for their reader.
func (s *story) keepServing(ctx context.Context) chan string {
	news := make(chan string, unreadNews)
	lost := make(chan *rig.Process)
	s.mu.Lock()
	fail := s.lost
	s.mu.Unlock()
	s.onLoss(func(c *rig.Process, _ error) {
		select {
		case lost <- c:
		case <-ctx.Done():
		}
	})
	go func() {
		for {
			select {
			case c := <-lost:
				if next, err := s.replaceGateway(ctx, c, news); err != nil {
					fail(next, err)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return news
}

func (s *story) replaceGateway(ctx context.Context, c *rig.Process, news chan<- string) (*rig.Process, error) {
	name := nextName(c.Name)
	report(ctx, news, fmt.Sprintf("● 网关 %s 结束了（%s）。消息不会丢：%s 启动，%s 的租约到期（%s）后接手。\n● Gateway %s ended (%s). No message is lost: %s starts, and takes over when the lease of %s ends (%s).",
		c.Name, c.Ending(), name, c.Name, demoLeaseTTL, c.Name, c.Ending(), name, c.Name, demoLeaseTTL))
	one, stop := context.WithTimeoutCause(ctx, restartWithin, fmt.Errorf("it took longer than %s", restartWithin))
	defer stop()
	if err := s.dingtalk.WaitNoConns(one); err != nil {
		return nil, err
	}
	// A gateway that ends while it starts is the error, and not a loss of its own.
	next, err := s.startGateway(one, name)
	if err != nil {
		return nil, err
	}
	report(ctx, news, fmt.Sprintf("● 网关 %s 在运行 · Gateway %s runs (PID %d)", name, name, next.PID()))
	return next, nil
}

func nextName(name string) string {
	if name >= "Z" {
		return "A"
	}
	return string(rune(name[0] + 1))
}

const codeLine = "Console has no token, and asks for a one-time code"

// followLinks passes on each link to the console besides the first: a login takes its code, and a new gateway has another address.
func (s *story) followLinks(ctx context.Context, first string, news chan<- string) {
	s.book.Follow(ctx, codeLine, func(l rig.LogLine) {
		if link := fmt.Sprint(l.Fields["console"]); link != first && l.Replica >= s.third.Name {
			report(ctx, news, "控制台的下一个链接 · The next link to the console: "+link)
		}
	})
}

func report(ctx context.Context, news chan<- string, text string) {
	select {
	case news <- text:
	case <-ctx.Done():
	}
}
