package openaitest

import (
	"encoding/json"
	"strings"
	"time"
)

// Reply is one answer. Its methods return changed copies.
type Reply struct {
	text, reasoning, finish string
	calls                   []Call

	status      int // other than 0: an error
	retryAfter  string
	body        string
	contentType string
	events      []string // data lines sent as they are
	hang        bool
	quiet       int // chunks before a stream goes quiet; -1: never

	after, delay              time.Duration
	pieces, split             int
	breakAfter, endAfter      int // -1: never
	noUsage, noIndex, noIDs   bool
	prompt, cached, completed int
	counted                   bool
	usageAt                   func(chunk int) (prompt, completion int) // report in each chunk with words; nil: one at the end
	atOnce                    bool                                     // a stream is flushed at its end only
}

func newReply() Reply { return Reply{breakAfter: -1, endAfter: -1, quiet: -1, pieces: 8} }

// Text answers with text.
func Text(s string) Reply {
	r := newReply()
	r.text = s
	return r
}

// Calls answers with a tool call. args is JSON text, or any value for json.Marshal.
func Calls(name string, args any) Reply { return newReply().Call(name, args) }

// Error has a generated body by default. retryAfter is the header's text, or empty.
func Error(status int, retryAfter, body string) Reply {
	r := newReply()
	r.status, r.retryAfter, r.body = status, retryAfter, body
	return r
}

// Raw answers with the given status, content type and body.
func Raw(status int, contentType, body string) Reply {
	r := Error(status, "", body)
	r.contentType = contentType
	return r
}

// Events answers with server-sent events with the data lines, without [DONE].
func Events(data ...string) Reply {
	r := newReply()
	r.events = data
	return r
}

// Hang takes the request and never answers.
func Hang() Reply {
	r := newReply()
	r.hang = true
	return r
}

// Call adds a tool call.
func (r Reply) Call(name string, args any) Reply {
	s, ok := args.(string)
	if !ok {
		b, _ := json.Marshal(args)
		s = string(b)
	}
	r.calls = append(append([]Call(nil), r.calls...), Call{Name: name, Arguments: s})
	return r
}

// Thinking puts reasoning_content before the answer.
func (r Reply) Thinking(s string) Reply { r.reasoning = s; return r }

// Finish sets the finish reason. Default: stop, or tool_calls.
func (r Reply) Finish(reason string) Reply { r.finish = reason; return r }

// Pieces sets the runes in a chunk of a stream. Default 8.
func (r Reply) Pieces(runes int) Reply { r.pieces = max(runes, 1); return r }

// Split sends a stream in writes of n bytes, across lines, JSON and runes.
func (r Reply) Split(n int) Reply { r.split = n; return r }

// BreakAfter breaks the connection after n chunks, or in the middle of a plain answer.
func (r Reply) BreakAfter(n int) Reply { r.breakAfter = n; return r }

// EndAfter ends a stream after n chunks, without finish reason and [DONE], like a proxy without its provider. A plain
// answer ends in its middle.
func (r Reply) EndAfter(n int) Reply { r.endAfter = n; return r }

// QuietAfter stops a stream after n chunks on an open connection. With 0 only headers arrive.
func (r Reply) QuietAfter(n int) Reply { r.quiet = n; return r }

// Slow waits before each chunk.
func (r Reply) Slow(d time.Duration) Reply { r.delay = d; return r }

// After waits before the first byte.
func (r Reply) After(d time.Duration) Reply { r.after = d; return r }

// NoUsage leaves the usage out.
func (r Reply) NoUsage() Reply { r.noUsage = true; return r }

// NoIndex leaves the index of a stream's tool calls out, as some providers do.
func (r Reply) NoIndex() Reply { r.noIndex = true; return r }

// NoIDs leaves the ids of tool calls out.
func (r Reply) NoIDs() Reply { r.noIDs = true; return r }

// Usage sets the reported usage.
func (r Reply) Usage(prompt, cached, completion int) Reply {
	r.prompt, r.cached, r.completed, r.counted = prompt, cached, completion, true
	return r
}

// Content returns the answer's text.
func (r Reply) Content() string { return r.text }

// WithContent sets the answer's text.
func (r Reply) WithContent(s string) Reply { r.text = s; return r }

func (r *Reply) count(prompt, completion int) {
	if !r.counted {
		r.prompt, r.completed = prompt, completion
	}
}

func (r Reply) finishReason() string {
	switch {
	case r.finish != "":
		return r.finish
	case len(r.calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

// Matcher picks requests.
type Matcher func(Request) bool

// IsKind matches requests of a kind.
func IsKind(k Kind) Matcher { return func(r Request) bool { return r.Kind == k } }

// Contains matches requests with text in a message.
func Contains(text string) Matcher {
	return func(r Request) bool { return strings.Contains(r.Text(), text) }
}

// Script is a step: a Reply answers one request, a Func every request, a Step the matching ones.
type Script interface{ step() step }

type step struct {
	match Matcher
	reply func(Request) Reply
	times int // 0: any number
	used  int
}

func (r Reply) step() step {
	return step{match: anything, reply: func(Request) Reply { return r }, times: 1}
}

// Func answers any number of requests.
type Func func(Request) Reply

func (f Func) step() step { return step{match: anything, reply: f} }

func anything(Request) bool { return true }

// Step is a permanent rule, or one for a number of requests.
type Step struct{ s step }

func (s Step) step() step { return s.s }

// When answers all matching requests.
func When(m Matcher, r Reply) Step {
	return Step{step{match: m, reply: func(Request) Reply { return r }}}
}

// WhenFunc answers all matching requests by a function.
func WhenFunc(m Matcher, f func(Request) Reply) Step { return Step{step{match: m, reply: f}} }

// Times limits a step to n requests, which all must arrive.
func (s Step) Times(n int) Step { s.s.times = n; return s }
