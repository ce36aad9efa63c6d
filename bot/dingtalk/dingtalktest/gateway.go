package dingtalktest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

type ticket struct {
	app     *app
	ua      string
	subs    map[string]bool
	expires time.Time
	used    bool
}

type stream struct {
	*core
	*people
	*faults
	tickets    map[string]*ticket
	conns      []*conn
	nextConn   int // round robin
	frames     map[string][]*push
	refuseOpen time.Time
	connected  func(*app) // called with mu held when an application has a new connection
}

func (s *stream) open(c *call) response {
	var q struct {
		ClientID      string `json:"clientId"`
		ClientSecret  string `json:"clientSecret"`
		UA            string `json:"ua"`
		Subscriptions []struct {
			Type  string `json:"type"`
			Topic string `json:"topic"`
		} `json:"subscriptions"`
	}
	bad := json.Unmarshal(c.body, &q) != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if bad {
		s.violateLocked(Violation{Kind: OpenMalformed, Detail: "the body is no JSON object"})
		return apiError(http.StatusBadRequest, "invalidParameter", "the body cannot be read")
	}
	if !s.refuseOpen.IsZero() && time.Now().Before(s.refuseOpen) {
		return apiError(http.StatusServiceUnavailable, "ServiceUnavailable", "the server is restarting")
	}
	if !strings.Contains(c.r.Header.Get("Accept"), "application/json") {
		s.violateLocked(Violation{Kind: OpenMalformed, Detail: "the header Accept: application/json is missing"})
		return response{status: http.StatusOK, contentType: "application/xml", raw: []byte("<OpenConnectionResponse/>")}
	}
	a := s.appByClientLocked(q.ClientID)
	if a == nil || a.ClientSecret != q.ClientSecret {
		return apiError(http.StatusUnauthorized, "authFailed", "鉴权失败")
	}
	subs := map[string]bool{}
	for _, sub := range q.Subscriptions {
		subs[sub.Type+" "+sub.Topic] = true
	}
	if len(subs) == 0 {
		s.violateLocked(Violation{Kind: OpenMalformed, Detail: "no subscriptions"})
		return apiError(http.StatusBadRequest, "invalidParameter", "subscriptions is empty")
	}
	a.opens++
	a.tokenExcuses++ // the opener may be a process that has no token yet
	if n := s.rateLocked("open "+a.ClientID, time.Minute); s.opts.OpensPerMinute > 0 && n > s.opts.OpensPerMinute {
		s.violateLocked(Violation{Kind: OpenTooOften, Detail: fmt.Sprintf("%d connections opened within a minute", n)})
	}
	id := newUUID()
	s.tickets[id] = &ticket{app: a, ua: q.UA, subs: subs, expires: s.nowLocked().Add(s.opts.TicketTTL)}
	s.noteLocked(Entry{Kind: "open", Detail: a.ClientID + " " + q.UA})
	endpoint := "ws" + strings.TrimPrefix(s.URL, "http") + "/connect"
	switch c.fault.Open {
	case "expired-ticket":
		s.tickets[id].expires = s.nowLocked().Add(-time.Second)
	case "used-ticket":
		s.tickets[id].used = true
	case "unknown-ticket":
		delete(s.tickets, id)
	case "dead-endpoint":
		endpoint = "ws://127.0.0.1:1/connect"
	case "empty-endpoint":
		endpoint = ""
	case "empty-ticket":
		id = ""
	}
	return jsonResponse(map[string]string{"endpoint": endpoint, "ticket": id})
}

func (s *stream) connect(w http.ResponseWriter, c *call) {
	id := c.r.URL.Query().Get("ticket")
	s.mu.Lock()
	t := s.tickets[id]
	reason := ""
	switch {
	case t == nil:
		reason = "unknown ticket"
	case t.used:
		reason = "the ticket was used already"
	case s.nowLocked().After(t.expires):
		reason = "the ticket has expired"
	default:
		t.used = true
	}
	if reason != "" {
		if t != nil && !s.plantedLocked() {
			s.violateLocked(Violation{Kind: TicketReused, Detail: reason})
		}
		s.noteLocked(Entry{Kind: "http", Route: RouteConnect, Status: http.StatusUnauthorized, Detail: reason})
		s.mu.Unlock()
		apiError(http.StatusUnauthorized, "invalidTicket", reason).write(w)
		return
	}
	s.mu.Unlock()
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	ws, err := up.Upgrade(w, c.r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	k := &conn{
		s: s, id: newUUID(), app: t.app, ua: t.ua, subs: t.subs, ws: ws, state: Live,
		gone: make(chan struct{}), wake: make(chan struct{}, 1), owed: map[*push]bool{},
	}
	if !s.admit(k) {
		_ = ws.Close()
		return
	}
	k.readLoop()
}

func (s *stream) admit(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	c.opened = s.nowLocked()
	s.conns = append(s.conns, c)
	s.noteLocked(Entry{Kind: "connect", Conn: c.id, Detail: c.ua})
	s.countLiveLocked(c.app)
	s.spawnLocked(c.writeLoop)
	if s.opts.PingInterval > 0 {
		s.spawnLocked(func() { s.every(s.opts.PingInterval, c.gone, func() { s.ping(c) }) })
	}
	if s.opts.KeepaliveInterval > 0 {
		s.spawnLocked(func() {
			s.every(s.opts.KeepaliveInterval, c.gone, func() { s.system(c, "KEEPALIVE") })
		})
	}
	if s.opts.ConnectionTTL > 0 {
		s.afterLocked(s.opts.ConnectionTTL, func() { s.Disconnect(DisconnectOptions{Conn: c.id, Reason: "connection is expired"}) })
	}
	if s.opts.ConnectedFrames {
		s.systemFrameLocked(c, "CONNECTED")
		s.systemFrameLocked(c, "REGISTERED")
	}
	s.connected(c.app)
	return true
}

const pingPatience = 5 * time.Second

func (s *stream) ping(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.state != Live && c.state != Zombie {
		return
	}
	if last := c.lastPing; last != nil && !last.acked && !last.missed && c.state == Live {
		waited := s.nowLocked().Sub(last.sent)
		if last.sent.IsZero() || waited < pingPatience {
			return // still on its way: one ping at a time
		}
		last.missed = true
		s.violateLocked(last.violation(PingUnanswered, fmt.Sprintf("no answer within %s", waited.Round(time.Millisecond))))
	}
	s.pingLocked(c)
}

func (s *stream) pingLocked(c *conn) {
	data := map[string]any{"opaque": "n-" + randomHex(4)}
	echo, _ := json.Marshal(data)
	p := &push{kind: pushPing, frameID: "c0a8" + randomHex(10), conn: c, echo: string(echo)}
	c.lastPing = p
	s.registerLocked(p)
	c.systemLocked("ping", p.frameID, data, p)
}

func (s *stream) system(c *conn, topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.systemFrameLocked(c, topic)
}

func (s *stream) systemFrameLocked(c *conn, topic string) {
	p := &push{kind: pushOther, frameID: "c0a8" + randomHex(10), conn: c, note: topic}
	s.registerLocked(p)
	c.systemLocked(topic, p.frameID, map[string]any{}, p)
}

// Ping sends a ping to every open connection at once.
func (s *stream) Ping() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		s.pingLocked(c)
	}
}
