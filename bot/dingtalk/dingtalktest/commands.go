package dingtalktest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// The commands of the control plane; see control for their bodies.

func strictly(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

func (s *Server) ctlSay(c *command) (any, error) {
	var q struct {
		Message
		Data string `json:"data"`
	}
	if err := c.read(&q); err != nil {
		return nil, err
	}
	if q.Data != "" {
		return map[string]string{"frameId": s.SayRaw(q.Data)}, nil
	}
	return map[string]string{"msgId": s.Say(q.Message)}, nil
}

func (s *Server) ctlRedeliver(c *command) (any, error) {
	if err := c.read(c); err != nil {
		return nil, err
	}
	ok := s.Redeliver(c.MsgID, RedeliverOptions{
		After: time.Duration(c.After), Times: c.Times, Every: time.Duration(c.Every), SameFrameID: c.SameFrameID,
		Everywhere: c.Everywhere, Conn: c.Conn,
	})
	if !ok {
		return nil, fmt.Errorf("no message %q", c.MsgID)
	}
	return nil, nil
}

func (s *Server) ctlDisconnect(c *command) (any, error) {
	if err := c.read(c); err != nil {
		return nil, err
	}
	return count(s.Disconnect(DisconnectOptions{
		Conn: c.Conn, Reason: c.Reason, NoMessageID: c.NoMessageID, Grace: time.Duration(c.Grace), KeepDelivering: c.KeepDelivering,
	}))
}

// count is the answer of a command on connections; none is a mistake, since the scenario meant some.
func count(n int) (any, error) {
	if n == 0 {
		return nil, errors.New("no such connection")
	}
	return map[string]int{"connections": n}, nil
}

func (s *Server) ctlRestart(c *command) (any, error) {
	if err := c.read(c); err != nil {
		return nil, err
	}
	s.Restart(time.Duration(c.Refuse))
	return nil, nil
}

func (s *Server) ctlDrop(c *command) (any, error) {
	if err := c.read(c); err != nil {
		return nil, err
	}
	if c.How != "" && c.How != DropRST && c.How != DropFIN {
		return nil, fmt.Errorf("how is rst or fin, not %q", c.How)
	}
	return count(s.Drop(DropOptions{Conn: c.Conn, How: c.How, Code: c.Code}))
}

func (s *Server) ctlHalfOpen(c *command) (any, error) {
	if err := c.read(c); err != nil {
		return nil, err
	}
	return count(s.HalfOpen(c.Conn))
}

func (s *Server) ctlZombie(c *command) (any, error) {
	if err := c.read(c); err != nil {
		return nil, err
	}
	return count(s.Zombie(c.Conn))
}

func (s *Server) ctlLose(c *command) (any, error) {
	if err := c.read(c); err != nil {
		return nil, err
	}
	s.LoseNext(c.Conn, max(c.N, 1))
	return nil, nil
}

func (s *Server) ctlRefuse(c *command) (any, error) {
	if err := c.read(c); err != nil {
		return nil, err
	}
	if c.For <= 0 {
		return nil, errors.New("for is missing")
	}
	s.RefuseConnections(time.Duration(c.For))
	return nil, nil
}

func (s *Server) ctlFault(c *command) (any, error) {
	var q struct {
		Fault
		Do    string   `json:"do"`
		Delay duration `json:"delay"`
	}
	if err := c.read(&q); err != nil {
		return nil, err
	}
	if q.Do != "" {
		if _, ok := actions[q.Do]; !ok {
			return nil, fmt.Errorf("no action is named %q; GET /_sim/actions lists them", q.Do)
		}
		q.Action = Do(q.Do)
	}
	if q.Delay > 0 {
		q.Action.Delay = time.Duration(q.Delay)
	}
	return map[string]int{"fault": s.AddFault(q.Fault)}, nil
}

func (s *Server) ctlMalformed(c *command) (any, error) {
	if err := c.read(c); err != nil {
		return nil, err
	}
	sent := s.PlayMalformed(c.Conversation, c.Names...)
	if len(sent) == 0 {
		return nil, errors.New("no live connection, or no kind of that name")
	}
	return map[string][]string{"sent": sent}, nil
}

func (s *Server) ctlPush(c *command) (any, error) {
	var q struct {
		Frame
		Raw    string `json:"raw"`
		Binary bool   `json:"binary"`
	}
	if err := c.read(&q); err != nil {
		return nil, err
	}
	if q.Raw != "" || q.Type == "" {
		return nil, connected(s.PushRaw([]byte(q.Raw), q.Binary))
	}
	id := s.PushFrame(q.Frame)
	return map[string]string{"frameId": id}, connected(id != "")
}

func connected(ok bool) error {
	if !ok {
		return errors.New("no live connection")
	}
	return nil
}

func (s *Server) ctlBurst(c *command) (any, error) {
	if err := c.read(c); err != nil {
		return nil, err
	}
	return map[string][]string{"msgIds": s.Burst(c.N, c.Conversations, time.Duration(c.Within))}, nil
}

func (s *Server) ctlExpire(c *command) (any, error) {
	if err := c.read(c); err != nil {
		return nil, err
	}
	s.ExpireWebhooks(c.Conversation)
	return nil, nil
}

func (s *Server) ctlRevoke(*command) (any, error) {
	s.RevokeTokens()
	return nil, nil
}

func (s *Server) ctlClick(c *command) (any, error) {
	if err := c.read(c); err != nil {
		return nil, err
	}
	id, err := s.Click(c.Card, c.User, c.Action)
	return map[string]string{"frameId": id}, err
}

func (s *Server) ctlClock(c *command) (any, error) {
	if err := c.read(c); err != nil {
		return nil, err
	}
	s.Advance(time.Duration(c.Advance))
	return map[string]time.Time{"now": s.Now()}, nil
}

func (s *Server) ctlUser(c *command) (any, error) {
	var u User
	if err := c.read(&u); err != nil {
		return nil, err
	}
	if u.StaffID == "" {
		return nil, errors.New("staffId is missing")
	}
	s.AddUser(u)
	return nil, nil
}

func (s *Server) ctlGroup(c *command) (any, error) {
	var g Group
	if err := c.read(&g); err != nil {
		return nil, err
	}
	if g.ID == "" {
		return nil, errors.New("id is missing")
	}
	s.AddGroup(g)
	return nil, nil
}

func (s *Server) ctlViolations(r *http.Request) any {
	if kind := r.FormValue("kind"); kind != "" {
		return notNil(s.Violations(kind))
	}
	return notNil(s.Violations())
}

func (s *Server) ctlTranscript(r *http.Request) any {
	after, _ := number(r, "after", 0) // what is no number starts at the beginning
	out := []Entry{}
	for _, e := range s.Transcript() {
		if e.Seq > after && (r.FormValue("kind") == "" || e.Kind == r.FormValue("kind")) {
			out = append(out, e)
		}
	}
	return out
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
