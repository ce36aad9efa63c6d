package dingtalk

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/client"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/handler"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/payload"
)

// maxHandlers is the SDK's cap on frames in work. At the cap it drops frames without an ack, so the cap is far above
// what accepts need: a burst waits for its turn here, where it can still be refused in time.
const maxHandlers = 1024

// link is one connection to the stream gateway, from its opening to its end.
type link struct {
	client *client.StreamClient
	alive  func() bool // the connection is up
	opened time.Time

	busy atomic.Int64 // frames in work
	seen atomic.Int64 // when the last frame came, in Unix nanoseconds
	done atomic.Int64 // when the last handler returned, likewise

	once     sync.Once
	leave    chan struct{} // closed when DingTalk asks to leave
	released chan struct{} // closed when nothing holds the connection open any more
}

// open makes one connection. Frames go to in until the connection ends.
func (t *Transport) open(ctx context.Context, in intake) (*link, error) {
	l := &link{leave: make(chan struct{}), released: make(chan struct{})}
	l.client = client.NewStreamClient(
		client.WithAppCredential(client.NewAppCredentialConfig(t.config.ClientID, t.config.ClientSecret)),
		client.WithOpenApiHost(t.config.APIBase),
		client.WithUserAgent(&client.UserAgentConfig{UserAgent: "ebb/1"}),
		client.WithAutoReconnect(false),
		client.WithKeepAlive(t.config.KeepAlive),
		client.WithMaxPendingHandlers(maxHandlers),
	)
	l.client.RegisterCallbackRouter(payload.BotMessageCallbackTopic, in.handle(l))
	l.client.RegisterRouter("SYSTEM", "disconnect", l.onDisconnect(t.timing.grace))
	l.client.RegisterRouter("SYSTEM", "ping", l.onPing)
	l.alive = probe(ctx, l.client)

	starting, cancel := context.WithTimeout(ctx, t.timing.open)
	defer cancel()
	if err := l.client.Start(starting); err != nil {
		l.client.Close()
		return nil, fmt.Errorf("opening a stream connection: %w", plain(err))
	}
	l.opened = time.Now()
	l.seen.Store(l.opened.UnixNano())
	return l, nil
}

// probe returns a function that says whether c is connected. The SDK has no signal for the end of a connection that it
// does not reopen itself; but Start with a context that is over does nothing and returns nil while there is a
// connection, and fails before it sends anything when there is none.
func probe(ctx context.Context, c *client.StreamClient) func() bool {
	over, cancel := context.WithCancel(ctx)
	cancel()
	return func() bool { return c.Start(over) == nil }
}

// onDisconnect announces that DingTalk wants to end the connection. The SDK closes the connection as soon as the
// handler returns, so the handler stays until the replacement is up and the acks of frames in work are written.
func (l *link) onDisconnect(grace time.Duration) handler.IFrameHandler {
	return func(context.Context, *payload.DataFrame) (*payload.DataFrameResponse, error) {
		l.touch()
		l.once.Do(func() { close(l.leave) })
		timeout := time.NewTimer(grace)
		defer timeout.Stop()
		select {
		case <-l.released:
		case <-timeout.C:
		}
		return payload.NewSuccessDataFrameResponse(), nil
	}
}

// onPing echoes what DingTalk sent, as the SDK's own handler does; it is here to be noticed.
func (l *link) onPing(ctx context.Context, f *payload.DataFrame) (*payload.DataFrameResponse, error) {
	l.touch()
	return l.client.OnPing(ctx, f)
}

func (l *link) touch() { l.seen.Store(time.Now().UnixNano()) }

// leaving reports whether DingTalk asked to leave.
func (l *link) leaving() bool {
	select {
	case <-l.leave:
		return true
	default:
		return false
	}
}

// close ends the connection when no frame is in work any more, or at the deadline. The SDK writes an ack after its
// handler returned and tells nobody when it is written: settle is the time that it gets for that.
func (l *link) close(deadline time.Time, settle time.Duration) {
	tick := time.NewTicker(max(settle/10, time.Millisecond))
	defer tick.Stop()
	for time.Now().Before(deadline) {
		written := time.Since(time.Unix(0, l.done.Load())) >= settle || !l.alive()
		if l.busy.Load() == 0 && written {
			break
		}
		<-tick.C
	}
	close(l.released)
	l.client.Close()
}
