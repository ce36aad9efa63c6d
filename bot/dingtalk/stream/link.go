package stream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/client"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/handler"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/logger"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/payload"
	"github.com/rs/zerolog"

	"ebb/bot/dingtalk/request"
)

const (
	pongWait  = 5 * time.Second // from a ping to the end of a dead connection
	writeWait = 5 * time.Second // for one frame
)

const system, callback = "SYSTEM", "CALLBACK" // types of frames

const userAgent = "ebb/1"

// App is the application whose stream is opened. The texts are required.
type App struct {
	ClientID  string
	Secret    request.Secret
	APIBase   string        // without a slash at the end
	KeepAlive time.Duration // idle time before a ping; 0 for 20 s, at least 3 s
	Clicks    bool          // presses of buttons are wanted too
}

// receiver gets the frames of a link.
type receiver struct {
	intake intake
	clicks *clicks
}

// One goroutine reads a link, so that messages keep their order.
type link struct {
	conn   *websocket.Conn
	opened time.Time

	writing sync.Mutex
	busy    atomic.Int64 // frames without an ack
	seen    atomic.Int64 // time of the last frame, in Unix nanoseconds
	heard   atomic.Int64 // time of the last data, likewise

	once  sync.Once
	leave chan struct{} // closed when DingTalk asks to leave
	gone  chan struct{} // closed when the connection has ended
}

// openLink asks for an endpoint and connects within one bound. Errors are made plain, since the addresses in them hold a ticket.
func openLink(ctx context.Context, app App, within time.Duration, r receiver) (*link, error) {
	starting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	endpoint, err := askEndpoint(starting, app)
	if err != nil {
		return nil, fmt.Errorf("opening a stream connection: %w", request.WithoutAddress(err))
	}
	conn, resp, err := websocket.DefaultDialer.DialContext(starting, endpoint, nil)
	if resp != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("opening a stream connection: %w", request.WithoutAddress(err))
	}
	now := time.Now()
	l := &link{conn: conn, opened: now, leave: make(chan struct{}), gone: make(chan struct{})}
	l.seen.Store(now.UnixNano())
	l.heard.Store(now.UnixNano())
	go l.keepAlive(app.KeepAlive)
	go l.readFrames(r, app.KeepAlive)
	return l, nil
}

func askEndpoint(ctx context.Context, app App) (string, error) {
	options := []client.ClientOption{
		client.WithAppCredential(client.NewAppCredentialConfig(app.ClientID, string(app.Secret))),
		client.WithOpenApiHost(app.APIBase),
		client.WithUserAgent(&client.UserAgentConfig{UserAgent: userAgent}),
		client.WithSubscription(callback, payload.BotMessageCallbackTopic, unusedHandler),
	}
	if app.Clicks {
		options = append(options, client.WithSubscription(callback, payload.CardInstanceCallbackTopic, unusedHandler))
	}
	c := client.NewStreamClient(options...)
	e, err := c.GetConnectionEndpoint(ctx)
	if err != nil {
		return "", err
	}
	return e.Endpoint + "?ticket=" + url.QueryEscape(e.Ticket), nil
}

// The SDK requires a handler for each subscription, although link reads the frames itself.
func unusedHandler(context.Context, *payload.DataFrame) (*payload.DataFrameResponse, error) {
	return nil, nil
} //nolint:nilnil // never called

var _ handler.IFrameHandler = unusedHandler

func (l *link) readFrames(r receiver, idle time.Duration) {
	defer close(l.gone)
	defer l.conn.Close() //nolint:errcheck // it has ended
	l.conn.SetPongHandler(func(string) error { return l.noteHeard(idle) })
	l.conn.SetPingHandler(func(data string) error {
		_ = l.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeWait))
		return l.noteHeard(idle)
	})
	for l.noteHeard(idle) == nil {
		kind, data, err := l.conn.ReadMessage()
		if err != nil {
			return
		}
		if kind == websocket.TextMessage || kind == websocket.BinaryMessage {
			l.handleFrame(r, data)
		}
	}
}

// noteHeard also extends the read deadline.
func (l *link) noteHeard(idle time.Duration) error {
	now := time.Now()
	l.heard.Store(now.UnixNano())
	return l.conn.SetReadDeadline(now.Add(idle + pongWait))
}

// keepAlive pings after each idle period; without an answer the read deadline ends the connection.
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

// A message is acknowledged after it is stored, while the next frames are read.
func (l *link) handleFrame(r receiver, data []byte) {
	f, err := decodeFrame(data)
	if err != nil { // no id to acknowledge
		r.intake.counters.unreadable.Add(1)
		zerolog.Ctx(r.intake.ctx).Warn().Err(err).Int("bytes", len(data)).Msg("Frame refused: it can't be read")
		return
	}
	switch topic := f.GetTopic(); {
	case f.Type == callback && topic == payload.BotMessageCallbackTopic:
		l.noteSeen()
		l.busy.Add(1)
		store := r.intake.takeFrame(f, len(data))
		go func() {
			defer l.busy.Add(-1)
			l.writeAck(f, store())
		}()
	case f.Type == callback && topic == payload.CardInstanceCallbackTopic:
		l.noteSeen()
		l.busy.Add(1)
		go func() {
			defer l.busy.Add(-1)
			l.writeAck(f, r.clicks.judgeClick(r.intake.ctx, f))
		}()
	case f.Type == system && topic == "ping":
		l.noteSeen()
		pong := payload.NewDataFrameAckPong(f.GetMessageId())
		pong.Data = f.Data
		l.writeAck(f, pong)
	case f.Type == system && topic == "disconnect": // wants no ack
		l.noteSeen()
		l.once.Do(func() { close(l.leave) })
	default:
		l.writeAck(f, payload.NewDataFrameResponse(payload.DataFrameResponseStatusCodeKHandlerNotFound))
	}
}

// decodeFrame takes values of any type. The SDK's decoder loses the whole frame where a header is a number, which is the type
// that DingTalk documents for the header time. One of its samples names the headers "header".
func decodeFrame(data []byte) (*payload.DataFrame, error) {
	var f struct {
		Type            looseText
		Headers, Header map[string]looseText
		Data            looseText
	}
	if json.Unmarshal(data, &f) != nil {
		return nil, errNoFrame // the decoder's error could quote the message
	}
	if f.Headers == nil {
		f.Headers = f.Header
	}
	if f.Headers == nil {
		return nil, errNoHeaders
	}
	headers := make(payload.DataFrameHeader, len(f.Headers))
	for name, value := range f.Headers {
		headers[name] = string(value)
	}
	return &payload.DataFrame{Type: string(f.Type), Headers: headers, Data: string(f.Data)}, nil
}

var (
	errNoFrame   = errors.New("the frame is no JSON object")
	errNoHeaders = errors.New("the frame has no headers")
)

// looseText is a JSON string, or the JSON of any other value. Null is empty.
type looseText string

func (t *looseText) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		s = string(raw)
	}
	*t = looseText(s)
	return nil
}

// A failed write of an ack ends the connection, and DingTalk redelivers.
func (l *link) writeAck(f *payload.DataFrame, ack *payload.DataFrameResponse) {
	ack.SetHeader(payload.DataFrameHeaderKMessageId, f.GetMessageId())
	ack.SetHeader(payload.DataFrameHeaderKContentType, payload.DataFrameContentTypeKJson)
	l.writing.Lock()
	defer l.writing.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(writeWait))
	if l.conn.WriteJSON(ack) != nil {
		_ = l.conn.Close()
	}
}

func (l *link) noteSeen() { l.seen.Store(time.Now().UnixNano()) }

func (l *link) isAlive() bool {
	select {
	case <-l.gone:
		return false
	default:
		return true
	}
}

func (l *link) isLeaving() bool {
	select {
	case <-l.leave:
		return true
	default:
		return false
	}
}

// closeAfterAcks waits for the acks of all frames, until the deadline.
func (l *link) closeAfterAcks(deadline time.Time) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(deadline) && l.busy.Load() > 0 && l.isAlive() {
		<-tick.C
	}
	_ = l.conn.Close()
	<-l.gone
}

// The SDK's logger is process-wide. It is set once, before any connection: otherwise its first users race to set it.
var silenceSDK = sync.OnceFunc(func() { logger.SetLogger(quietLogger{}) })

// The SDK's log contains the client secret, tickets and messages, and errors at ordinary closes.
type quietLogger struct{}

func (quietLogger) Debugf(string, ...any)   {}
func (quietLogger) Infof(string, ...any)    {}
func (quietLogger) Warningf(string, ...any) {}
func (quietLogger) Errorf(string, ...any)   {}
func (quietLogger) Fatalf(string, ...any)   {}
