package dingtalktest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// control is the control plane: the Server's methods as JSON over HTTP, for scenario files and for people with curl.
// Durations are strings such as "1.5s". The answer to a mistake is 400 with {"error": "…"}.
//
//	POST /_sim/say         a Message, or {"data": "…"} for SayRaw       -> {"msgId"}
//	POST /_sim/redeliver   {"msgId", "times", "after", "every", "sameFrameId", "everywhere", "conn"}
//	POST /_sim/disconnect  {"conn", "reason", "noMessageId", "grace", "keepDelivering"}
//	POST /_sim/restart     {"refuse"}
//	POST /_sim/drop        {"conn", "how", "code"}
//	POST /_sim/halfopen, /_sim/zombie {"conn"};  /_sim/lose {"conn", "n"};  /_sim/refuse {"for"}
//	POST /_sim/fault       a Fault, with "do": a name of the catalogue, or "action"; "delay" -> {"fault"}
//	DELETE /_sim/fault     all faults
//	POST /_sim/malformed   {"conversation", "names"};  /_sim/push a Frame, or {"raw", "binary"}
//	POST /_sim/burst       {"n", "conversations", "within"};  /_sim/expire {"conversation"};  /_sim/revoke
//	POST /_sim/click       {"card", "user", "action"};  /_sim/clock {"advance"};  /_sim/user, /_sim/group
//	GET  /_sim/state, connections, replies?conversation=, violations?kind=, transcript?kind=&after=, cards, actions
//	GET  /_sim/wait/conns?n=, wait/reply?conversation=&contains=&after=, wait/ack?msgId=; each with timeout= (default 10s)
func (s *Server) control() http.Handler {
	mux := http.NewServeMux()
	for name, f := range map[string]func(*command) (any, error){
		"say": s.ctlSay, "redeliver": s.ctlRedeliver, "disconnect": s.ctlDisconnect, "restart": s.ctlRestart, "drop": s.ctlDrop,
		"halfopen": s.ctlHalfOpen, "zombie": s.ctlZombie, "lose": s.ctlLose, "refuse": s.ctlRefuse, "fault": s.ctlFault,
		"malformed": s.ctlMalformed, "push": s.ctlPush, "burst": s.ctlBurst, "expire": s.ctlExpire, "revoke": s.ctlRevoke,
		"click": s.ctlClick, "clock": s.ctlClock, "user": s.ctlUser, "group": s.ctlGroup,
	} {
		mux.Handle("POST /_sim/"+name, s.command(f))
	}
	mux.Handle("DELETE /_sim/fault", s.command(func(*command) (any, error) { s.ClearFaults(); return nil, nil }))
	for name, f := range map[string]func(*http.Request) any{
		"state":       func(*http.Request) any { return s.State() },
		"connections": func(*http.Request) any { return notNil(s.Connections()) },
		"replies":     func(r *http.Request) any { return notNil(s.Replies(r.FormValue("conversation"))) },
		"violations":  s.ctlViolations,
		"transcript":  s.ctlTranscript,
		"cards":       func(*http.Request) any { return notNil(s.Cards()) },
		"actions":     func(*http.Request) any { return ActionNames() },
	} {
		mux.HandleFunc("GET /_sim/"+name, func(w http.ResponseWriter, r *http.Request) { writeControl(w, f(r), nil) })
	}
	for name, f := range map[string]func(context.Context, *http.Request) (any, error){
		"conns": s.ctlWaitConns, "reply": s.ctlWaitReply, "ack": s.ctlWaitAck,
	} {
		mux.Handle("GET /_sim/wait/"+name, s.waiting(f))
	}
	return mux
}

// command is the body of a control request. Unknown fields are mistakes.
type command struct {
	Conn           string   `json:"conn"`
	Conversation   string   `json:"conversation"`
	MsgID          string   `json:"msgId"`
	Times          int      `json:"times"`
	After          duration `json:"after"`
	Every          duration `json:"every"`
	SameFrameID    bool     `json:"sameFrameId"`
	Everywhere     bool     `json:"everywhere"`
	Reason         string   `json:"reason"`
	NoMessageID    bool     `json:"noMessageId"`
	Grace          duration `json:"grace"`
	KeepDelivering bool     `json:"keepDelivering"`
	Refuse         duration `json:"refuse"`
	For            duration `json:"for"`
	How            string   `json:"how"`
	Code           int      `json:"code"`
	N              int      `json:"n"`
	Names          []string `json:"names"`
	Raw            string   `json:"raw"`
	Binary         bool     `json:"binary"`
	Conversations  int      `json:"conversations"`
	Within         duration `json:"within"`
	Card           string   `json:"card"`
	User           string   `json:"user"`
	Action         string   `json:"action"`
	Advance        duration `json:"advance"`

	body []byte
}

// duration is a time.Duration that JSON gives as a string.
type duration time.Duration

func (d *duration) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("a duration is a string such as \"1.5s\", not %s", b)
	}
	v, err := time.ParseDuration(text)
	*d = duration(v)
	return err
}

func (s *Server) command(f func(*command) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body json.RawMessage
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 32<<20)).Decode(&body); err != nil && r.ContentLength != 0 {
			writeControl(w, nil, fmt.Errorf("the body is not JSON: %w", err))
			return
		}
		c := &command{body: body}
		v, err := f(c)
		if v == nil {
			v = map[string]bool{"ok": err == nil}
		}
		writeControl(w, v, err)
	})
}

// read takes the body into v, which defaults to the command itself.
func (c *command) read(v any) error {
	if len(c.body) == 0 {
		return nil
	}
	return strictly(c.body, v)
}

func writeControl(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		v = map[string]string{"error": err.Error()}
	}
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}

func (s *Server) waiting(f func(context.Context, *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timeout := 10 * time.Second
		if t := r.FormValue("timeout"); t != "" {
			d, err := time.ParseDuration(t)
			if err != nil {
				writeControl(w, nil, fmt.Errorf("timeout: %w", err))
				return
			}
			timeout = d
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		v, err := f(ctx, r)
		writeControl(w, v, err)
	})
}

func (s *Server) ctlWaitConns(ctx context.Context, r *http.Request) (any, error) {
	n, err := number(r, "n", 1)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		err = s.WaitNoConns(ctx)
	} else {
		err = s.WaitConns(ctx, n)
	}
	return s.Connections(), err
}

func (s *Server) ctlWaitReply(ctx context.Context, r *http.Request) (any, error) {
	after, err := number(r, "after", 0)
	if err != nil {
		return nil, err
	}
	return s.WaitReplyAfter(ctx, r.FormValue("conversation"), r.FormValue("contains"), after)
}

func (s *Server) ctlWaitAck(ctx context.Context, r *http.Request) (any, error) {
	return s.WaitAck(ctx, r.FormValue("msgId"))
}

func number(r *http.Request, name string, def int) (int, error) {
	text := r.FormValue(name)
	if text == "" {
		return def, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}
