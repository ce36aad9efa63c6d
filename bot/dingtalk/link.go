package dingtalk

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/client"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/handler"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/payload"
)

const (
	pongWait  = 5 * time.Second // from a ping to the end of a connection that carries nothing
	writeWait = 5 * time.Second // for one frame
)

const system, callback = "SYSTEM", "CALLBACK" // types of frames

// link is one connection to the stream gateway, from its opening to its end. One goroutine reads it, so that messages
// keep the order in which DingTalk sent them.
type link struct {
	conn   *websocket.Conn
	opened time.Time

	writing sync.Mutex
	busy    atomic.Int64 // frames without an ack so far
	seen    atomic.Int64 // when the last frame came, in Unix nanoseconds
	heard   atomic.Int64 // when anything came, likewise

	once  sync.Once
	leave chan struct{} // closed when DingTalk asks to leave
	gone  chan struct{} // closed when the connection has ended
}

// open makes one connection. Its messages go to in until it ends.
func (t *Transport) open(ctx context.Context, in intake) (*link, error) {
	starting, cancel := context.WithTimeout(ctx, t.timing.open)
	defer cancel()
	endpoint, err := t.endpoint(starting)
	if err != nil {
		return nil, fmt.Errorf("opening a stream connection: %w", plain(err))
	}
	conn, resp, err := websocket.DefaultDialer.DialContext(starting, endpoint, nil)
	if resp != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("opening a stream connection: %w", plain(err))
	}
	now := time.Now()
	l := &link{conn: conn, opened: now, leave: make(chan struct{}), gone: make(chan struct{})}
	l.seen.Store(now.UnixNano())
	l.heard.Store(now.UnixNano())
	go l.keepAlive(t.config.KeepAlive)
	go l.read(in, t.config.KeepAlive)
	return l, nil
}

// endpoint asks DingTalk where to connect to, and returns the address with its ticket.
func (t *Transport) endpoint(ctx context.Context) (string, error) {
	c := client.NewStreamClient(
		client.WithAppCredential(client.NewAppCredentialConfig(t.config.ClientID, t.config.ClientSecret)),
		client.WithOpenApiHost(t.config.APIBase),
		client.WithUserAgent(&client.UserAgentConfig{UserAgent: "ebb/1"}),
		client.WithSubscription(callback, payload.BotMessageCallbackTopic, unused),
	)
	e, err := c.GetConnectionEndpoint(ctx)
	if err != nil {
		return "", err
	}
	return e.Endpoint + "?ticket=" + url.QueryEscape(e.Ticket), nil
}

// unused stands for the handler that the SDK wants with each subscription: link reads the frames itself.
func unused(context.Context, *payload.DataFrame) (*payload.DataFrameResponse, error) { return nil, nil } //nolint:nilnil // never called

var _ handler.IFrameHandler = unused

// read handles frames one after the other until the connection ends.
func (l *link) read(in intake, idle time.Duration) {
	defer close(l.gone)
	defer l.conn.Close() //nolint:errcheck // it has ended
	l.conn.SetPongHandler(func(string) error { return l.hear(idle) })
	l.conn.SetPingHandler(func(data string) error {
		_ = l.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeWait))
		return l.hear(idle)
	})
	for l.hear(idle) == nil {
		kind, data, err := l.conn.ReadMessage()
		if err != nil {
			return
		}
		if kind == websocket.TextMessage {
			l.frame(in, data)
		}
	}
}

// hear notes that the connection carries something, and moves the deadline of reading.
func (l *link) hear(idle time.Duration) error {
	now := time.Now()
	l.heard.Store(now.UnixNano())
	return l.conn.SetReadDeadline(now.Add(idle + pongWait))
}

// keepAlive sends a ping after each silence of idle: without an answer the deadline of reading ends the connection.
func (l *link) keepAlive(idle time.Duration) {
	t := time.NewTimer(idle)
	defer t.Stop()
	for {
		select {
		case <-l.gone:
			return
		case <-t.C:
		}
		rest := idle - time.Since(time.Unix(0, l.heard.Load()))
		if rest <= 0 {
			_ = l.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWait))
		}
		t.Reset(cmp.Or(max(rest, 0), idle))
	}
}

// frame handles one frame. The ack of a message is written once it is stored, while the next frames are read.
func (l *link) frame(in intake, data []byte) {
	f, err := payload.DecodeDataFrame(data)
	if err != nil || f.Headers == nil {
		return // nothing in it says what to acknowledge
	}
	switch topic := f.GetTopic(); {
	case f.Type == callback && topic == payload.BotMessageCallbackTopic:
		l.touch()
		l.busy.Add(1)
		store := in.take(f, len(data))
		go func() {
			defer l.busy.Add(-1)
			l.write(f, store())
		}()
	case f.Type == system && topic == "ping":
		l.touch()
		pong := payload.NewDataFrameAckPong(f.GetMessageId())
		pong.Data = f.Data
		l.write(f, pong)
	case f.Type == system && topic == "disconnect": // wants no ack
		l.touch()
		l.once.Do(func() { close(l.leave) })
	default:
		l.write(f, payload.NewDataFrameResponse(payload.DataFrameResponseStatusCodeKHandlerNotFound))
	}
}

// write sends an ack. One that can't be written ends the connection: DingTalk sends the message again.
func (l *link) write(f *payload.DataFrame, ack *payload.DataFrameResponse) {
	ack.SetHeader(payload.DataFrameHeaderKMessageId, f.GetMessageId())
	ack.SetHeader(payload.DataFrameHeaderKContentType, payload.DataFrameContentTypeKJson)
	l.writing.Lock()
	defer l.writing.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(writeWait))
	if l.conn.WriteJSON(ack) != nil {
		_ = l.conn.Close()
	}
}

func (l *link) touch() { l.seen.Store(time.Now().UnixNano()) }

// alive reports whether the connection is up.
func (l *link) alive() bool {
	select {
	case <-l.gone:
		return false
	default:
		return true
	}
}

// leaving reports whether DingTalk asked to leave.
func (l *link) leaving() bool {
	select {
	case <-l.leave:
		return true
	default:
		return false
	}
}

// close ends the connection when each frame has its ack, or at the deadline.
func (l *link) close(deadline time.Time) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(deadline) && l.busy.Load() > 0 && l.alive() {
		<-tick.C
	}
	_ = l.conn.Close()
	<-l.gone
}
