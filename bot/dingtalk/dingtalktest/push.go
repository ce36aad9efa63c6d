package dingtalktest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// The topics that the simulator pushes.
const (
	TopicBot  = "/v1.0/im/bot/messages/get"
	TopicCard = "/v1.0/card/instances/callback"
)

type pushKind int

const (
	pushBot pushKind = iota
	pushPing
	pushDisconnect
	pushCard
	pushOther // malformed or strange frames: any answer, and none, will do
)

type deliveryKey struct{ robot, msgID string }

type delivery struct {
	key          deliveryKey
	app          *app
	conversation string
	data         string
	pushes       []*push
	acked        bool // A 200 came, or another code that ends it.
	firstAck     *Ack
	lastAck      *Ack
	redelivered  int
	timer        *timer
	expires      time.Time // end of a place in the backlog
}

type messages struct {
	*core
	*people
	*posts
	*webhooks
	*stream
	deliveries map[deliveryKey]*delivery
	order      []deliveryKey // deliveries, oldest first
	unacked    int           // number of deliveries without an ack
}

type push struct {
	kind     pushKind
	frameID  string
	topic    string
	d        *delivery
	conn     *conn
	sent     time.Time
	acked    bool
	lost     bool
	missed   bool // reported as missing already
	wantsAck bool
	answered func(Ack) // called with mu held at the first ack
	echo     string    // required text of a ping's ack
	note     string

	card    *card // For a click: its card, if it is known, the person and the answer.
	clicker string
	answer  *ClickAnswer
}

func (p *push) entry(kind, detail string) Entry {
	e := Entry{Kind: kind, FrameID: p.frameID, Detail: detail}
	if p.conn != nil {
		e.Conn = p.conn.id
	}
	if p.d != nil {
		e.MsgID, e.Conversation = p.d.key.msgID, p.d.conversation
	}
	if p.card != nil {
		e.Conversation = p.card.conversation
	}
	return e
}

func (p *push) violation(kind, detail string) Violation {
	e := p.entry("", "")
	return Violation{Kind: kind, Detail: detail, Conn: e.Conn, FrameID: e.FrameID, MsgID: e.MsgID, Conversation: e.Conversation}
}

// Say returns a new message's msgId at once; its push follows after the latency.
func (s *messages) Say(m Message) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sayLocked(m)
}

func (s *messages) sayLocked(m Message) string {
	if m.Sender == "" {
		m.Sender = "u0001"
	}
	if m.MsgID == "" {
		m.MsgID = newMsgID()
	}
	g := s.conversationLocked(m)
	s.lastSaid[g.ID] = s.nowLocked()
	robots := m.Robots
	if len(robots) == 0 {
		robots = []string{s.apps[0].RobotCode}
	}
	for _, code := range robots {
		a := s.appByRobotLocked(code)
		if a == nil {
			s.noteLocked(Entry{Kind: "dropped", MsgID: m.MsgID, Conversation: g.ID, Detail: "no application has the robot code " + code})
			continue
		}
		a.streamUse++
		msg := m
		if s.opts.EnforceQuotas && a.streamUse > s.opts.StreamQuota {
			msg.OverQuota = true
		}
		data, _ := json.Marshal(s.payloadLocked(msg, g, a)) // maps of plain values
		s.noteLocked(Entry{Kind: "say", MsgID: m.MsgID, Conversation: g.ID, Detail: m.Sender + ": " + clip(m.Text)})
		d := s.newDeliveryLocked(a, m.MsgID, g.ID, string(data))
		s.deliverLocked(d, max(m.Copies, 1), sendOptions{})
	}
	return m.MsgID
}

// SayRaw pushes any text as the `data` of a bot message and returns the frame's messageId. It uses a msgId and a
// conversationId of data.
func (s *messages) SayRaw(data string) string {
	var head struct {
		MsgID          string `json:"msgId"`
		ConversationID string `json:"conversationId"`
		RobotCode      string `json:"robotCode"`
	}
	_ = json.Unmarshal([]byte(data), &head) // an unreadable part stays empty
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.appByRobotLocked(head.RobotCode)
	if a == nil {
		a = s.apps[0]
	}
	if head.MsgID == "" {
		head.MsgID = newMsgID()
	}
	frameID := newFrameID()
	d := s.newDeliveryLocked(a, head.MsgID, head.ConversationID, data)
	s.deliverLocked(d, 1, sendOptions{frameID: frameID, note: "raw data", lenient: true})
	return frameID
}

func (s *messages) newDeliveryLocked(a *app, msgID, conversation, data string) *delivery {
	key := deliveryKey{a.RobotCode, msgID}
	d := &delivery{key: key, app: a, conversation: conversation, data: data}
	if old := s.deliveries[key]; old != nil {
		s.doneLocked(old) // said again under the same id: the new one counts
	} else {
		s.order = append(s.order, key)
	}
	s.unacked++
	s.deliveries[key] = d
	if n := s.opts.KeepMessages; n > 0 && len(s.order) > n+n/4 {
		s.pruneLocked(len(s.order) - n)
	}
	return d
}

func (s *messages) doneLocked(d *delivery) {
	if !d.acked {
		d.acked = true
		s.unacked--
	}
	s.stopLocked(d.timer)
	d.timer = nil
}

func (s *messages) pruneLocked(n int) {
	kept := s.order[:0]
	for _, key := range s.order {
		d := s.deliveries[key]
		if n > 0 && (d == nil || d.acked) {
			n--
			delete(s.deliveries, key)
			if d != nil {
				for _, p := range d.pushes {
					delete(s.frames, p.frameID)
				}
			}
			continue
		}
		kept = append(kept, key)
	}
	s.order = kept
}

type sendOptions struct {
	frameID string
	on      *conn
	note    string
	lenient bool // no ack is expected
}

// deliverLocked keeps or drops the message without a connection.
func (s *messages) deliverLocked(d *delivery, n int, o sendOptions) {
	var targets []*conn
	if o.on != nil {
		targets = []*conn{o.on}
	} else {
		targets = s.pickLocked(d.app, TopicBot, n)
	}
	if len(targets) == 0 {
		if s.opts.Backlog > 0 {
			d.expires = time.Now().Add(s.opts.Backlog)
			d.app.backlog = append(d.app.backlog, d)
			s.noteLocked(Entry{Kind: "backlog", MsgID: d.key.msgID, Conversation: d.conversation, Detail: "no live connection: kept"})
			return
		}
		s.noteLocked(Entry{Kind: "dropped", MsgID: d.key.msgID, Conversation: d.conversation, Detail: "no live connection"})
	}
	for i := range n {
		if len(targets) > 0 {
			s.pushLocked(d, targets[i%len(targets)], o)
		}
	}
	s.armLocked(d)
}

func (s *stream) pickLocked(a *app, topic string, n int) []*conn {
	var live []*conn
	for _, c := range s.conns {
		if c.app == a && (c.state != Draining || c.keepRouting) && c.subs["CALLBACK "+topic] {
			live = append(live, c)
		}
	}
	if len(live) == 0 {
		return nil
	}
	if s.opts.Routing == RouteRoundRobin {
		s.nextConn++
		k := s.nextConn % len(live)
		live = append(live[k:len(live):len(live)], live[:k]...)
	} else {
		s.rng.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
	}
	return live[:min(n, len(live))]
}

func (s *messages) pushLocked(d *delivery, c *conn, o sendOptions) {
	p := &push{kind: pushBot, frameID: o.frameID, topic: TopicBot, d: d, conn: c, wantsAck: !o.lenient, note: o.note}
	p.answered = func(ack Ack) { s.ackedLocked(p, ack) }
	if p.frameID == "" {
		p.frameID = newFrameID()
	}
	d.pushes = append(d.pushes, p)
	due := time.Now().Add(s.latencyLocked())
	frame := s.frameLocked(c, TopicBot, p.frameID, d.data)
	if w := s.opts.ShuffleWindow; w > 0 {
		s.registerLocked(p)
		s.afterLocked(time.Duration(s.rng.Int64N(int64(w))), func() { c.enqueue(outFrame{bytes: frame, push: p}) })
		return
	}
	s.registerLocked(p)
	c.enqueue(outFrame{bytes: frame, due: due, push: p})
}

func (s *stream) registerLocked(p *push) {
	s.frames[p.frameID] = append(s.frames[p.frameID], p)
	p.conn.owed[p] = true
}

func (s *stream) frameLocked(c *conn, topic, frameID, data string) []byte {
	b, _ := json.Marshal(map[string]any{
		"specVersion": "1.0", "type": "CALLBACK", "data": data,
		"headers": map[string]string{
			"appId": "0d7c1f7e-1111-4222-8333-c0ffee000001", "connectionId": c.id, "contentType": "application/json",
			"messageId": frameID, "time": strconv.FormatInt(s.nowLocked().UnixMilli(), 10), "topic": topic,
		},
	})
	return b
}

func (s *messages) replayLocked(a *app) {
	backlog := a.backlog
	a.backlog = nil
	for _, d := range backlog {
		if time.Now().After(d.expires) {
			s.noteLocked(Entry{Kind: "dropped", MsgID: d.key.msgID, Conversation: d.conversation, Detail: "too long in the backlog"})
			continue
		}
		s.deliverLocked(d, 1, sendOptions{note: "from the backlog"})
	}
}

func (s *messages) ackedLocked(p *push, ack Ack) {
	p.d.lastAck = &ack
	if p.d.firstAck == nil {
		p.d.firstAck = &ack
	}
	if p.wantsAck && ack.Took > s.opts.AckDeadline {
		s.violateLocked(p.violation(AckLate, fmt.Sprintf("after %s", ack.Took.Round(time.Millisecond))))
	}
	retry := (ack.Code == 500 && s.opts.RetryOnError) || (ack.Code == 404 && s.opts.RetryOnNotFound)
	if !retry {
		s.doneLocked(p.d)
	}
}

func (s *messages) armLocked(d *delivery) {
	s.stopLocked(d.timer)
	d.timer = nil
	if s.opts.RedeliverAfter > 0 && !d.acked {
		d.timer = s.afterLocked(s.opts.RedeliverAfter, func() { s.notAcked(d) })
	}
}

func (s *messages) notAcked(d *delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.acked {
		return
	}
	for _, p := range d.pushes {
		if p.wantsAck && !p.acked && !p.lost && !p.missed && !p.sent.IsZero() {
			p.missed = true
			s.violateLocked(p.violation(AckMissing, fmt.Sprintf("no ack within %s", s.opts.RedeliverAfter)))
		}
	}
	if s.opts.RedeliverMax >= 0 && d.redelivered >= s.opts.RedeliverMax {
		return
	}
	d.redelivered++
	o := sendOptions{note: fmt.Sprintf("redelivery %d", d.redelivered)}
	if s.opts.RedeliverSameFrameID && len(d.pushes) > 0 {
		o.frameID = d.pushes[0].frameID
	}
	s.noteLocked(Entry{Kind: "redeliver", MsgID: d.key.msgID, Conversation: d.conversation, Detail: o.note})
	s.deliverLocked(d, 1, o)
}

func clip(text string) string {
	r := []rune(text)
	if len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return text
}
