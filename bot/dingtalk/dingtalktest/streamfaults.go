package dingtalktest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/gorilla/websocket"
)

// RedeliverOptions say how a message is pushed again; the zero value is once, at once, with a new frame id, on one
// connection chosen as usual. A message is pushed again even when it was acknowledged.
type RedeliverOptions struct {
	After       time.Duration
	Times       int           // 0 means 1
	Every       time.Duration // between the times
	SameFrameID bool
	// Everywhere pushes to all live connections at once instead of one.
	Everywhere bool
	// Conn is the id of the connection to use; empty: chosen as usual.
	Conn string
}

// Redeliver pushes a message again, to each bot it was for. It reports false when the msgId is not known.
func (s *Server) Redeliver(msgID string, o RedeliverOptions) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := false
	for _, a := range s.apps {
		d := s.deliveries[deliveryKey{a.RobotCode, msgID}]
		if d == nil {
			continue
		}
		known = true
		for i := range max(o.Times, 1) {
			wait := o.After + time.Duration(i)*o.Every
			if wait <= 0 {
				s.redeliverLocked(d, o)
				continue
			}
			s.afterLocked(wait, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.redeliverLocked(d, o)
			})
		}
	}
	return known
}

func (s *Server) redeliverLocked(d *delivery, o RedeliverOptions) {
	so := sendOptions{note: "redelivered on command", on: s.connLocked(o.Conn)}
	if o.SameFrameID && len(d.pushes) > 0 {
		so.frameID = d.pushes[0].frameID
	}
	n := 1
	if o.Everywhere {
		n = max(len(s.pickLocked(d.app, TopicBot, len(s.conns))), 1)
	}
	s.noteLocked(Entry{Kind: "redeliver", MsgID: d.key.msgID, Conversation: d.conversation, Detail: "on command"})
	s.deliverLocked(d, n, so)
}

func (s *Server) connLocked(id string) *conn {
	for _, c := range s.conns {
		if id != "" && c.id == id {
			return c
		}
	}
	return nil
}

// chosenLocked are the connections a stream fault is for: the one with the id, or all.
func (s *Server) chosenLocked(id string) []*conn {
	if id == "" {
		return append([]*conn(nil), s.conns...)
	}
	if c := s.connLocked(id); c != nil {
		return []*conn{c}
	}
	return nil
}

// DisconnectOptions say how a `disconnect` is announced and carried out.
type DisconnectOptions struct {
	// Conn is a connection's id; empty means every connection that is live.
	Conn string
	// Reason is told to the client; empty means "connection is expired".
	Reason string
	// NoMessageID leaves messageId out of the frame.
	NoMessageID bool
	// Grace overrides Options.DisconnectGrace; Never: the socket is closed by the client, if at all.
	Grace time.Duration
	// KeepDelivering goes on routing pushes to the connection during the grace, as a server that does not conform would.
	KeepDelivering bool
}

// Disconnect sends `disconnect` and returns the number of connections that it went to.
func (s *Server) Disconnect(o DisconnectOptions) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.chosenLocked(o.Conn) {
		if c.state == Draining || c.state == Closed {
			continue
		}
		n++
		s.disconnectLocked(c, o)
	}
	return n
}

func (s *Server) disconnectLocked(c *conn, o DisconnectOptions) {
	if o.Reason == "" {
		o.Reason = "connection is expired"
	}
	if o.Grace == 0 {
		o.Grace = s.opts.DisconnectGrace
	}
	if c.state == Live {
		c.state = Draining
	}
	c.keepRouting = o.KeepDelivering
	p := &push{kind: pushDisconnect, conn: c, note: "disconnect: " + o.Reason}
	if !o.NoMessageID {
		p.frameID = "c0a8" + randomHex(10)
		s.registerLocked(p)
	}
	c.systemLocked("disconnect", p.frameID, map[string]any{"reason": o.Reason}, p)
	s.noteLocked(Entry{Kind: "disconnect", Conn: c.id, FrameID: p.frameID, Detail: o.Reason})
	s.countLiveLocked(c.app)
	if o.Grace > 0 {
		s.afterLocked(o.Grace, func() { c.end("the grace after disconnect is over", false) })
	}
}

// Restart plays a restart of the server: `disconnect` to every connection at once, and connections/open refused with 503
// for refuse.
func (s *Server) Restart(refuse time.Duration) {
	s.mu.Lock()
	s.refuseOpen = time.Now().Add(refuse)
	s.noteLocked(Entry{Kind: "fault", Detail: fmt.Sprintf("restart: open refused for %s", refuse)})
	s.mu.Unlock()
	s.Disconnect(DisconnectOptions{Reason: "server restart"})
}

// The ways in which Drop ends a connection, beside a WebSocket close code.
const (
	DropRST = "rst" // TCP reset
	DropFIN = "fin" // TCP end without a close frame: the client sees 1006
)

// DropOptions say how connections are dropped without a `disconnect`.
type DropOptions struct {
	// Conn is a connection's id; empty means every connection.
	Conn string
	// How is DropRST (also when empty) or DropFIN; ignored with Code.
	How string
	// Code sends a close frame with this code (1000, 1001, 1008, …) before the socket is closed.
	Code int
}

// Drop ends connections abruptly and returns their number.
func (s *Server) Drop(o DropOptions) int {
	s.mu.Lock()
	chosen := s.chosenLocked(o.Conn)
	how := o.How
	if how == "" {
		how = DropRST
	}
	if o.Code != 0 {
		how = fmt.Sprintf("close code %d", o.Code)
	}
	for _, c := range chosen {
		s.noteLocked(Entry{Kind: "fault", Conn: c.id, Detail: "dropped: " + how})
	}
	s.mu.Unlock()
	for _, c := range chosen {
		switch {
		case o.Code != 0:
			_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(o.Code, "dropped"), time.Now().Add(time.Second))
		case how == DropRST:
			resetTCP(c.ws.NetConn())
		}
		c.end("dropped: "+how, false)
	}
	return len(chosen)
}

// HalfOpen makes connections half-open: TCP stays up, but nothing is read, written or answered any more. They are still
// chosen for pushes. An empty id means all; the number is returned.
func (s *Server) HalfOpen(conn string) int { return s.spoil(conn, HalfOpen) }

// Zombie makes connections answer pings but lose every push that is routed to them. An empty id means all.
func (s *Server) Zombie(conn string) int { return s.spoil(conn, Zombie) }

func (s *Server) spoil(id string, state ConnState) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.chosenLocked(id) {
		if c.state != Closed {
			c.state = state
			n++
			s.countLiveLocked(c.app)
			s.noteLocked(Entry{Kind: "fault", Conn: c.id, Detail: string(state)})
		}
	}
	return n
}

// LoseNext makes the next n bot messages of a connection vanish on the way, as the first after a reconnect may. An empty
// id means every open connection.
func (s *Server) LoseNext(conn string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.chosenLocked(conn) {
		c.lossy = n
		s.noteLocked(Entry{Kind: "fault", Conn: c.id, Detail: fmt.Sprintf("the next %d messages are lost", n)})
	}
}

// SayShuffled says messages with rising createAt that arrive in another order, by the seed; msgIds are in the order of
// creation.
func (s *Server) SayShuffled(msgs ...Message) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.nowLocked()
	ids := make([]string, len(msgs))
	for i := range msgs {
		if msgs[i].MsgID == "" {
			msgs[i].MsgID = newMsgID()
		}
		if msgs[i].CreatedAt.IsZero() {
			msgs[i].CreatedAt = now.Add(time.Duration(i-len(msgs)) * time.Millisecond)
		}
		ids[i] = msgs[i].MsgID
	}
	order := s.rng.Perm(len(msgs))
	if len(msgs) > 1 && inOrder(order) {
		order[0], order[1] = order[1], order[0]
	}
	for _, i := range order {
		s.sayLocked(msgs[i])
	}
	return ids
}

func inOrder(p []int) bool {
	for i, v := range p {
		if i != v {
			return false
		}
	}
	return true
}

// Burst says n messages spread over the given number of conversations ("cidBurst1", …), evenly within the time, and
// returns their msgIds; the text of each is its number.
func (s *Server) Burst(n, conversations int, within time.Duration) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]string, n)
	for i := range n {
		ids[i] = newMsgID()
		m := Message{
			MsgID: ids[i], Conversation: fmt.Sprintf("cidBurst%d", i%max(conversations, 1)+1),
			Sender: fmt.Sprintf("burst%d", i%7), Text: fmt.Sprintf("burst message %d", i+1),
		}
		if within <= 0 {
			s.sayLocked(m)
			continue
		}
		s.afterLocked(time.Duration(i)*within/time.Duration(n), func() { s.Say(m) })
	}
	return ids
}

// Frame is any frame at all, for what DingTalk may send one day or by mistake.
type Frame struct {
	// Type is SYSTEM, EVENT, CALLBACK or anything else.
	Type  string `json:"type"`
	Topic string `json:"topic"`
	Data  string `json:"data"`
	// Headers are added to messageId, topic, contentType and time; an empty value removes a header.
	Headers map[string]string `json:"headers"`
}

// PushFrame sends a frame to one live connection, chosen as usual, whether it subscribed to the topic or not, and returns
// the messageId, or "" without a connection. No particular answer is expected.
func (s *Server) PushFrame(f Frame) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := newFrameID()
	headers := map[string]string{
		"messageId": id, "topic": f.Topic, "contentType": "application/json", "time": fmt.Sprint(s.nowLocked().UnixMilli()),
	}
	for k, v := range f.Headers {
		headers[k] = v
		if v == "" {
			delete(headers, k)
		}
	}
	b, _ := json.Marshal(map[string]any{"specVersion": "1.0", "type": f.Type, "headers": headers, "data": f.Data})
	if !s.pushRawLocked(b, false, id, f.Type+" "+f.Topic) {
		return ""
	}
	return id
}

// PushRaw sends bytes as one frame, text or binary, to one live connection. It reports false without a connection.
func (s *Server) PushRaw(frame []byte, binary bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pushRawLocked(frame, binary, "", "raw bytes")
}

func (s *Server) pushRawLocked(frame []byte, binary bool, id, note string) bool {
	for _, c := range s.conns {
		if c.state != Live {
			continue
		}
		p := &push{kind: pushOther, frameID: id, conn: c, note: note}
		c.anonymous++ // whatever it is, an answer without messageId may be the best
		if id != "" {
			s.registerLocked(p)
		}
		c.enqueue(outFrame{bytes: frame, binary: binary, push: p})
		return true
	}
	return false
}
