package dingtalktest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// RedeliverOptions describe the repeated pushes of a message, acknowledged or not. The zero value is once, at once,
// with a new frame id, on one connection.
type RedeliverOptions struct {
	After       time.Duration
	Times       int           // 0 means 1
	Every       time.Duration // between the times
	SameFrameID bool
	// Everywhere pushes to all live connections.
	Everywhere bool
	Conn       string
}

// Redeliver pushes a message again to each of its bots. It is false for an unknown msgId.
func (s *messages) Redeliver(msgID string, o RedeliverOptions) bool {
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

func (s *messages) redeliverLocked(d *delivery, o RedeliverOptions) {
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

func (s *stream) connLocked(id string) *conn {
	for _, c := range s.conns {
		if id != "" && c.id == id {
			return c
		}
	}
	return nil
}

func (s *stream) chosenLocked(id string) []*conn {
	if id == "" {
		return append([]*conn(nil), s.conns...)
	}
	if c := s.connLocked(id); c != nil {
		return []*conn{c}
	}
	return nil
}

// DisconnectOptions configure a `disconnect`.
type DisconnectOptions struct {
	// Conn is a connection's id; empty means every live one.
	Conn string
	// Reason is sent to the client; empty means "connection is expired".
	Reason string
	// NoMessageID leaves messageId out of the frame.
	NoMessageID bool
	// Grace overrides Options.DisconnectGrace; with Never only the client closes.
	Grace time.Duration
	// KeepDelivering still routes pushes to it, as a server that does not conform would.
	KeepDelivering bool
}

// Disconnect returns the number of its connections.
func (s *stream) Disconnect(o DisconnectOptions) int {
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

func (s *stream) disconnectLocked(c *conn, o DisconnectOptions) {
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

// Restart sends `disconnect` to every connection, and refuses connections/open with 503 for a time.
func (s *stream) Restart(refuse time.Duration) {
	s.mu.Lock()
	s.refuseOpen = time.Now().Add(refuse)
	s.noteLocked(Entry{Kind: "fault", Detail: fmt.Sprintf("restart: open refused for %s", refuse)})
	s.mu.Unlock()
	s.Disconnect(DisconnectOptions{Reason: "server restart"})
}

// The ways of Drop beside a close code.
const (
	DropRST = "rst" // TCP reset
	DropFIN = "fin" // TCP end without a close frame: the client sees 1006
)

// DropOptions configure an end without a `disconnect`.
type DropOptions struct {
	// Conn is a connection's id; empty means every connection.
	Conn string
	// How is DropRST (also when empty) or DropFIN; ignored with Code.
	How string
	// Code is that of a close frame (1000, 1001, 1008, …).
	Code int
}

// Drop ends connections abruptly and returns their number.
func (s *stream) Drop(o DropOptions) int {
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

// HalfOpen keeps TCP up without reads, writes and answers; pushes still go there. An empty id means all connections;
// their number is returned.
func (s *stream) HalfOpen(conn string) int { return s.spoil(conn, HalfOpen) }

// Zombie makes connections answer pings but lose every push. An empty id means all.
func (s *stream) Zombie(conn string) int { return s.spoil(conn, Zombie) }

func (s *stream) spoil(id string, state ConnState) int {
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

// LoseNext makes the next n bot messages of a connection vanish, as the first after a reconnect may. An empty id
// means all.
func (s *stream) LoseNext(conn string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.chosenLocked(conn) {
		c.lossy = n
		s.noteLocked(Entry{Kind: "fault", Conn: c.id, Detail: fmt.Sprintf("the next %d messages are lost", n)})
	}
}

// SayShuffled says messages with rising createAt and msgIds in another order, by the seed.
func (s *messages) SayShuffled(msgs ...Message) []string {
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

// Burst says n messages to conversations ("cidBurst1", …), evenly within the time, and returns their msgIds. Their
// texts are their numbers.
func (s *messages) Burst(n, conversations int, within time.Duration) []string {
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

// Frame may be invalid.
type Frame struct {
	// Type is SYSTEM, EVENT, CALLBACK or anything else.
	Type  string `json:"type"`
	Topic string `json:"topic"`
	Data  string `json:"data"`
	// Headers are added to messageId, topic, contentType and time; an empty value removes a header.
	Headers map[string]string `json:"headers"`
}

// PushFrame sends a frame to one live connection, subscribed or not. It returns the messageId, or "" without a
// connection. No particular answer is expected.
func (s *stream) PushFrame(f Frame) string {
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
	if !s.pushFrameLocked(b, false, id, f.Type+" "+f.Topic) {
		return ""
	}
	return id
}

func (s *stream) pushFrameLocked(frame []byte, binary bool, id, note string) bool {
	for _, c := range s.conns {
		if c.state != Live {
			continue
		}
		p := &push{kind: pushOther, frameID: id, conn: c, note: note}
		c.anonymous++ // An answer without messageId may be the best.
		if id != "" {
			s.registerLocked(p)
		}
		c.enqueue(outFrame{bytes: frame, binary: binary, push: p})
		return true
	}
	return false
}

// MalformedFrame breaks the protocol in one way.
type MalformedFrame struct {
	Name   string
	Bytes  []byte
	Binary bool
}

// MalformedFrames are the thirteen kinds of broken frames, in a fixed order. Two hold a readable message that must be
// answered: one with createAt as a string, one of more than 1 MB. Their messages belong to no conversation of a
// Server, unlike those of PlayMalformed.
func MalformedFrames() []MalformedFrame {
	return malformed(func() map[string]any {
		return map[string]any{
			"conversationId": "cidMalformed==", "conversationType": "2", "conversationTitle": "Malformed", "msgId": newMsgID(),
			"senderNick": "User", "senderStaffId": "u0001", "senderId": "$:LWCP_v1:$u0001", "createAt": 1767168000045,
			"sessionWebhook": "http://127.0.0.1:1/robot/sendBySession?session=none", "sessionWebhookExpiredTime": 1767173400345,
			"robotCode": "dingsimapp0001", "msgtype": "text", "text": map[string]any{"content": " malformed"},
		}
	})
}

func malformed(payload func() map[string]any) []MalformedFrame {
	encode := func(v any) []byte {
		b, _ := json.Marshal(v) // maps of plain values
		return b
	}
	frame := func(data any, change func(frame, headers map[string]any)) []byte {
		headers := map[string]any{
			"appId": "0d7c1f7e-1111-4222-8333-c0ffee000001", "connectionId": "malformed", "contentType": "application/json",
			"messageId": newFrameID(), "time": "1767168000123", "topic": TopicBot,
		}
		f := map[string]any{"specVersion": "1.0", "type": "CALLBACK", "headers": headers, "data": data}
		if change != nil {
			change(f, headers)
		}
		return encode(f)
	}
	data := func() string { return string(encode(payload())) }
	with := func(key string, value any) string {
		p := payload()
		p[key] = value
		return string(encode(p))
	}
	whole := frame(data(), nil)
	huge := with("text", map[string]any{"content": strings.Repeat("long 长 ", 150_000)})
	return []MalformedFrame{
		{Name: "truncated JSON", Bytes: whole[:len(whole)/2]},
		{Name: "data is not JSON", Bytes: frame("certainly not JSON", nil)},
		{Name: "data is an object", Bytes: frame(payload(), nil)},
		{Name: "time is a number", Bytes: frame(data(), func(_, h map[string]any) { h["time"] = 1767168000123 })},
		{Name: "no headers", Bytes: frame(data(), func(f, _ map[string]any) { delete(f, "headers") })},
		{Name: "no messageId", Bytes: frame(data(), func(_, h map[string]any) { delete(h, "messageId") })},
		{Name: "no topic", Bytes: frame(data(), func(_, h map[string]any) { delete(h, "topic") })},
		{Name: "header in the singular", Bytes: frame(data(), func(f, h map[string]any) { delete(f, "headers"); f["header"] = h })},
		{Name: "binary frame", Bytes: frame(data(), nil), Binary: true},
		{Name: "empty frame", Bytes: nil},
		{Name: "more than 1 MB", Bytes: frame(huge, nil)},
		{Name: "invalid UTF-8", Bytes: []byte(strings.Replace(string(frame(with("senderNick", "NICK"), nil)), "NICK", "\xff\xfe\xc0", 1))},
		{Name: "createAt is a string", Bytes: frame(with("createAt", "1767168000045"), nil)},
	}
}

// PlayMalformed sends MalformedFrames, or those named, to a live connection as messages of a conversation, and
// returns the sent names. No particular ack is expected.
func (s *messages) PlayMalformed(conversation string, names ...string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.apps[0]
	frames := malformed(func() map[string]any {
		m := Message{Conversation: conversation, Sender: "u0001", Text: "malformed", MsgID: newMsgID()}
		g := s.conversationLocked(m)
		s.lastSaid[g.ID] = s.nowLocked()
		return s.payloadLocked(m, g, a)
	})
	var sent []string
	for _, f := range frames {
		if len(names) > 0 && !slices.Contains(names, f.Name) {
			continue
		}
		var head struct {
			Headers struct {
				MessageID string `json:"messageId"`
			} `json:"headers"`
		}
		_ = json.Unmarshal(f.Bytes, &head) // a frame without an id has none to be acknowledged by
		if s.pushFrameLocked(f.Bytes, f.Binary, head.Headers.MessageID, "malformed: "+f.Name) {
			s.noteLocked(Entry{Kind: "malformed", Conversation: conversation, Detail: fmt.Sprintf("%s, %d bytes", f.Name, len(f.Bytes))})
			sent = append(sent, f.Name)
		}
	}
	return sent
}
