package dingtalktest

import (
	"encoding/json"
	"fmt"
	"time"
)

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

// onAck takes one frame of the client.
func (s *Server) onAck(c *conn, text bool, b []byte) {
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

// matchLocked finds the push that an ack is for: one of this connection, the unacknowledged first.
func (s *Server) matchLocked(c *conn, frameID string) *push {
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

// explainLocked reports an ack that matches no open push of its connection.
func (s *Server) explainLocked(c *conn, ack Ack) {
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

func (s *Server) acceptLocked(c *conn, p *push, ack Ack) {
	p.acked = true
	delete(c.owed, p)
	c.acked++
	ack.Took = ack.Time.Sub(p.sent)
	if p.d != nil {
		ack.MsgID = p.d.key.msgID
	}
	switch p.kind {
	case pushPing:
		if ack.Code != 200 || ack.Data != p.echo {
			s.violateLocked(p.violation(PingNotEchoed, fmt.Sprintf("sent %s, got code %d and %s", p.echo, ack.Code, clip(ack.Data))))
		}
		delete(s.frames, p.frameID) // pings go on for ever
		s.wakeLocked()
		return
	case pushCard:
		s.cardAnsweredLocked(p, ack)
	}
	e := p.entry("ack", fmt.Sprintf("after %s", ack.Took.Round(time.Microsecond)))
	e.Status = ack.Code
	s.noteLocked(e)
	if p.kind != pushBot {
		return
	}
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
	s.wakeLocked()
}

// parseAck reads an ack as far as it can and names the faults of its shape.
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
