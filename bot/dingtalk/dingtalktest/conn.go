package dingtalktest

import (
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// ConnState is the state of a stream connection.
type ConnState string

// A half-open or zombie connection is still chosen for pushes, which are lost there.
const (
	Live     ConnState = "live"
	Draining ConnState = "draining"
	HalfOpen ConnState = "half-open"
	Zombie   ConnState = "zombie"
	Closed   ConnState = "closed"
)

// conn has a reader in the handshake's handler, and a writer that keeps frames in order while each waits for its
// latency.
type conn struct {
	s      *stream
	id     string
	app    *app
	ua     string
	subs   map[string]bool // "TYPE topic"
	ws     *websocket.Conn
	opened time.Time
	gone   chan struct{} // closed when the connection has ended

	// guarded by s.mu, as all below
	state       ConnState
	keepRouting bool // a draining connection is still chosen, as by a server that does not conform
	lossy       int  // pushes that vanish on this connection, see LoseNext
	endReason   string
	endByClient bool
	anonymous   int // sent frames without messageId: acks with an empty one are no breach
	lastPing    *push
	owed        map[*push]bool // pushes without an ack
	acked       int

	qmu  sync.Mutex
	q    []outFrame
	wake chan struct{}
}

type outFrame struct {
	bytes  []byte
	binary bool
	due    time.Time
	push   *push // nil: nothing to account
}

// Connection is a stream connection as the simulator sees it.
type Connection struct {
	ID            string    `json:"id"`
	ClientID      string    `json:"clientId"`
	UA            string    `json:"ua"`
	State         ConnState `json:"state"`
	Opened        time.Time `json:"opened"`
	Subscriptions []string  `json:"subscriptions"`
	// Pending counts pushes without an ack, Acked received acks.
	Pending int `json:"pending"`
	Acked   int `json:"acked"`
	// EndReason is empty while it is open.
	EndReason string `json:"endReason,omitempty"`
}

func (c *conn) enqueue(f outFrame) {
	c.qmu.Lock()
	c.q = append(c.q, f)
	c.qmu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *conn) next() (outFrame, bool) {
	for {
		c.qmu.Lock()
		if len(c.q) > 0 {
			f := c.q[0]
			c.q = c.q[1:]
			c.qmu.Unlock()
			return f, true
		}
		c.qmu.Unlock()
		select {
		case <-c.wake:
		case <-c.gone:
			return outFrame{}, false
		}
	}
}

func (c *conn) writeLoop() {
	for {
		f, ok := c.next()
		if !ok || !c.s.sleep(time.Until(f.due), c.gone) {
			return
		}
		if !c.toBeSent(f.push) {
			continue
		}
		kind := websocket.TextMessage
		if f.binary {
			kind = websocket.BinaryMessage
		}
		_ = c.ws.SetWriteDeadline(time.Now().Add(10 * time.Second))
		if err := c.ws.WriteMessage(kind, f.bytes); err != nil {
			c.end("writing: "+err.Error(), true)
			return
		}
	}
}

// toBeSent is false for a frame that the connection's fault swallows.
func (c *conn) toBeSent(p *push) bool {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	swallowed := c.state == HalfOpen || (c.state == Zombie && p != nil && p.kind != pushPing)
	if !swallowed && c.lossy > 0 && p != nil && p.kind == pushBot {
		c.lossy--
		swallowed = true
	}
	if p == nil {
		return !swallowed
	}
	p.sent = s.nowLocked()
	if swallowed {
		p.lost = true
		s.noteLocked(p.entry("lost", fmt.Sprintf("the connection is %s", c.state)))
		return false
	}
	if p.kind != pushPing {
		s.noteLocked(p.entry("push", p.note))
	}
	return true
}

func (c *conn) readLoop() {
	c.ws.SetReadLimit(16 << 20)
	c.ws.SetPingHandler(func(data string) error {
		if c.is(HalfOpen) {
			return nil
		}
		_ = c.ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Second))
		return nil
	})
	for {
		kind, b, err := c.ws.ReadMessage()
		if err != nil {
			c.end("the client went: "+err.Error(), true)
			return
		}
		if c.is(HalfOpen) { // stop reading: the client's writes pile up in the kernel
			<-c.gone
			return
		}
		c.s.onAck(c, kind == websocket.TextMessage, b)
	}
}

func (c *conn) is(state ConnState) bool {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.state == state
}

func (c *conn) end(reason string, byClient bool) {
	s := c.s
	s.mu.Lock()
	if c.state == Closed {
		s.mu.Unlock()
		return
	}
	c.state, c.endReason, c.endByClient = Closed, reason, byClient
	close(c.gone)
	for i, x := range s.conns {
		if x == c {
			s.conns = append(s.conns[:i:i], s.conns[i+1:]...)
			break
		}
	}
	if !s.closed {
		s.noteLocked(Entry{Kind: "close", Conn: c.id, Detail: reason})
		s.settleLocked(c)
		s.countLiveLocked(c.app)
	}
	s.mu.Unlock()
	_ = c.ws.Close()
}

func (s *stream) settleLocked(c *conn) {
	for p := range c.owed {
		if p.kind == pushPing {
			delete(s.frames, p.frameID)
			continue
		}
		if p.lost {
			continue
		}
		p.lost = true
		if p.sent.IsZero() {
			s.noteLocked(p.entry("lost", "not written before the connection ended"))
			continue
		}
		if p.kind != pushBot {
			continue
		}
		s.noteLocked(p.entry("lost", "the connection ended before the ack"))
		if c.endByClient && p.wantsAck {
			s.violateLocked(p.violation(AckLost, "the client closed the connection without acknowledging"))
		}
	}
	clear(c.owed)
}

func (c *conn) worksLocked() bool { return c.state == Live || (c.state == Draining && c.keepRouting) }

func (s *stream) countLiveLocked(a *app) {
	live, now := 0, s.nowLocked()
	for _, c := range s.conns {
		if c.app == a && c.worksLocked() {
			live++
		}
	}
	a.maxLive = max(a.maxLive, live)
	switch {
	case live == 0 && a.connected && a.deafSince.IsZero():
		a.deafSince = now
	case live > 0 && !a.deafSince.IsZero():
		gap := now.Sub(a.deafSince)
		a.deaf += gap
		a.deafSince = time.Time{}
		s.noteLocked(Entry{Kind: "connect", Detail: fmt.Sprintf("%s had no live connection for %s", a.ClientID, gap.Round(time.Millisecond))})
		if s.opts.MaxDeaf > 0 && gap > s.opts.MaxDeaf {
			s.violateLocked(Violation{Kind: DeafTooLong, Detail: fmt.Sprintf("no live connection for %s", gap.Round(time.Millisecond))})
		}
	}
	a.connected = a.connected || live > 0
	s.wakeLocked()
}

// An empty messageID leaves that header out.
func (c *conn) systemLocked(topic, messageID string, data map[string]any, p *push) {
	headers := map[string]string{"topic": topic, "contentType": "application/json", "time": fmt.Sprint(c.s.nowLocked().UnixMilli())}
	if messageID != "" {
		headers["messageId"] = messageID
	} else {
		c.anonymous++
	}
	b, _ := json.Marshal(data)
	frame, _ := json.Marshal(map[string]any{"specVersion": "1.0", "type": "SYSTEM", "headers": headers, "data": string(b)})
	c.enqueue(outFrame{bytes: frame, push: p})
}

func resetTCP(nc net.Conn) {
	if t, ok := nc.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
}

// Ack is a client's answer to a push.
type Ack struct {
	Code    int           `json:"code"`
	Message string        `json:"message"`
	Data    string        `json:"data"`
	FrameID string        `json:"frameId"`
	MsgID   string        `json:"msgId"`
	Conn    string        `json:"conn"`
	Time    time.Time     `json:"time"`
	Took    time.Duration `json:"took"` // from the push to the ack
}

func (s *stream) onAck(c *conn, text bool, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	ack, faults := parseAck(text, b)
	ack.Conn, ack.Time = c.id, s.nowLocked()
	p := s.matchLocked(c, ack.FrameID)
	if p != nil && p.kind == pushOther {
		faults = nil // a frame without messageId or data has no better answer
	}
	for _, f := range faults {
		s.violateLocked(Violation{Kind: AckMalformed, Conn: c.id, FrameID: ack.FrameID, Detail: f + " in " + clip(string(b))})
	}
	if p != nil {
		s.acceptLocked(c, p, ack)
		return
	}
	s.noteLocked(Entry{Kind: "ack", Conn: c.id, FrameID: ack.FrameID, Status: ack.Code, Detail: "of no open push"})
	if ack.FrameID == "" {
		if c.anonymous > 0 {
			c.anonymous--
			return
		}
		if len(faults) == 0 {
			s.violateLocked(Violation{Kind: AckMalformed, Conn: c.id, Detail: "headers.messageId is empty in " + clip(string(b))})
		}
		return
	}
	s.explainLocked(c, ack)
}

func (s *stream) matchLocked(c *conn, frameID string) *push {
	var done *push
	for _, p := range s.frames[frameID] {
		if p.conn != c {
			continue
		}
		if !p.acked {
			return p
		}
		done = p
	}
	if done != nil && done.kind == pushOther {
		return done
	}
	return nil
}

func (s *stream) explainLocked(c *conn, ack Ack) {
	ps := s.frames[ack.FrameID]
	if len(ps) == 0 {
		s.violateLocked(Violation{Kind: AckUnknown, Conn: c.id, FrameID: ack.FrameID, Detail: "no push has this messageId"})
		return
	}
	for _, p := range ps {
		if p.conn == c {
			s.violateLocked(p.violation(AckTwice, "this push was acknowledged already"))
			return
		}
	}
	v := ps[0].violation(AckWrongConnection, "pushed on "+ps[0].conn.id+", acknowledged on "+c.id)
	v.Conn = c.id
	s.violateLocked(v)
}

func (s *stream) acceptLocked(c *conn, p *push, ack Ack) {
	p.acked = true
	delete(c.owed, p)
	c.acked++
	ack.Took = ack.Time.Sub(p.sent)
	if p.d != nil {
		ack.MsgID = p.d.key.msgID
	}
	if p.kind == pushPing {
		if ack.Code != 200 || ack.Data != p.echo {
			s.violateLocked(p.violation(PingNotEchoed, fmt.Sprintf("sent %s, got code %d and %s", p.echo, ack.Code, clip(ack.Data))))
		}
		delete(s.frames, p.frameID) // pings go on for ever
		s.wakeLocked()
		return
	}
	e := p.entry("ack", fmt.Sprintf("after %s", ack.Took.Round(time.Microsecond)))
	e.Status = ack.Code
	s.noteLocked(e)
	if p.answered != nil {
		p.answered(ack)
	}
}

// parseAck also names the faults of the ack's shape.
func parseAck(text bool, b []byte) (Ack, []string) {
	var ack Ack
	var faults []string
	if !text {
		faults = append(faults, "a binary frame")
	}
	var raw struct {
		Code    json.RawMessage            `json:"code"`
		Headers map[string]json.RawMessage `json:"headers"`
		Message json.RawMessage            `json:"message"`
		Data    json.RawMessage            `json:"data"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return ack, append(faults, "no JSON object of the ack's shape")
	}
	if json.Unmarshal(raw.Code, &ack.Code) != nil {
		faults = append(faults, "code is no number")
	}
	if json.Unmarshal(raw.Data, &ack.Data) != nil || string(raw.Data) == "null" {
		faults = append(faults, "data is no string")
	}
	_ = json.Unmarshal(raw.Message, &ack.Message) // free text, may be missing
	if json.Unmarshal(raw.Headers["messageId"], &ack.FrameID) != nil {
		faults = append(faults, "headers.messageId is no string")
	}
	var contentType string
	if json.Unmarshal(raw.Headers["contentType"], &contentType) != nil || contentType == "" {
		faults = append(faults, "headers.contentType is missing")
	}
	return ack, faults
}
