package openai

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/reasoning"
	"ebb/sessions/written"
)

type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Base    struct {
		Code int `json:"status_code"`
	} `json:"base_resp"` // MiniMax's place of an error
}

// failure is the error that a successful status carries: in its own member, or in place of an answer.
func (c chunk) failure(body []byte) error {
	if len(c.Error) > 0 && string(c.Error) != "null" || c.Base.Code != 0 {
		return parseFailure(0, body)
	}
	if len(c.Choices) > 0 || c.Usage != nil {
		return nil
	}
	if failed := parseFailure(0, body); failed.message != "" {
		return failed
	}
	return nil
}

type choice struct {
	Index   int    `json:"index"`
	Delta   *delta `json:"delta"`
	Message *delta `json:"message"`
	Finish  loose  `json:"finish_reason"`
	Usage   *usage `json:"usage"` // Moonshot's place
}

type delta struct {
	Content   loose       `json:"content"`
	Refusal   loose       `json:"refusal"`
	Reasoning loose       `json:"reasoning_content"`
	Thinking  loose       `json:"reasoning"` // name of OpenRouter and newer vLLM
	ToolCalls []callDelta `json:"tool_calls"`
}

type callDelta struct {
	Index    *int  `json:"index"`
	ID       loose `json:"id"`
	Function struct {
		Name      loose `json:"name"`
		Arguments loose `json:"arguments"`
	} `json:"function"`
}

// loose is a string, null, parts with texts, or (arguments) an object. Parts of reasoning are left out.
type loose string

// UnmarshalJSON takes any JSON.
func (l *loose) UnmarshalJSON(b []byte) error {
	var s string
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0 || bytes.Equal(b, []byte("null")):
	case b[0] == '"' && bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b): // as most often
		s = string(b[1 : len(b)-1])
	case b[0] == '"':
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
	case b[0] == '[' && json.Unmarshal(b, &parts) == nil:
		for _, p := range parts {
			if p.Type != "thinking" && p.Type != "reasoning" {
				s += p.Text
			}
		}
	default:
		s = string(b)
	}
	*l = loose(s)
	return nil
}

type answer struct {
	text    string
	calls   []sessions.ToolCall
	finish  string
	usage   sessions.Usage
	guessed bool // usage is an estimate
	choices bool // there was one
	began   time.Time
	first   time.Duration // time from began to the first token
	tokens  int           // chunks with a word, a thought, a piece of a call, or the end
	begins  func() bool   // called with the first token; false: the answer has no reader

	reported usage // over all chunks
	said     int   // bytes of text as the model wrote it
	filter   reasoning.Filter
	check    written.Filter
	unread   written.Filter // reasoning, text that is held back and arguments, of which repetitions are looked for
	checks   written.Config
	thoughts strings.Builder // reasoning_content
	parts    []*callParts
	tools    map[string]bool
}

type callParts struct {
	index    int
	id, name strings.Builder
	args     strings.Builder
}

// line adds a line of a stream, and passes its text on.
func (a *answer) line(b []byte, out *sink) error {
	var c chunk
	if err := json.Unmarshal(b, &c); err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) {
		return fmt.Errorf("decoding the answer: %w", err) // a wrong type omits its own field only
	}
	if failed := c.failure(b); failed != nil {
		return failed
	}
	n := a.addChunk(c)
	if a.first == 0 && a.tokens > 0 {
		a.first = time.Since(a.began)
		if a.begins != nil && !a.begins() {
			return errUnread
		}
	}
	if out == nil {
		return nil
	}
	out.pushNews(n)
	return nil
}

// addChunk takes one chunk of a stream. Reasoning and the words that models write by mistake are filtered out as they come; a filter that
// finds later that shown text was reasoning takes it back (undo). Tokens are counted by chunk, for answers whose usage is never
// reported.
func (a *answer) addChunk(c chunk) (n news) {
	a.reported.mergeUsage(c.Usage)
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue
		}
		a.choices = true
		a.reported.mergeUsage(ch.Usage)
		d := ch.Delta
		if d == nil {
			d = ch.Message
		}
		ended := isReason(string(ch.Finish))
		if ended || d != nil && (d.Content+d.Refusal+d.Reasoning+d.Thinking != "" || len(d.ToolCalls) > 0) {
			a.tokens++
		}
		if d != nil {
			for _, t := range d.ToolCalls {
				a.addCall(t)
				a.unread.Push(string(t.Function.Arguments))
			}
			a.said += len(d.Content) + len(d.Refusal)
			s, undo := a.filter.Push(string(d.Content) + string(d.Refusal))
			if undo {
				n.undo, n.text = true, ""
				a.check = *written.New(a.checks)
			}
			s, undo = a.check.Push(s)
			if undo {
				n.undo, n.text = true, ""
			}
			idea := string(cmp.Or(d.Reasoning, d.Thinking)) // some send both
			a.thoughts.WriteString(idea)
			n.text += s
			a.unread.Push(idea + a.filter.TakeUnread())
			n.idea += idea + a.filter.TakeThought()
		}
		if ended {
			a.finish = string(ch.Finish)
		}
	}
	return n
}

// The index identifies the call if the provider counts. A piece that can only begin another call begins one at
// any index.
func (a *answer) addCall(t callDelta) {
	var p *callParts
	if t.Index == nil && len(a.parts) > 0 {
		p = a.parts[len(a.parts)-1]
	}
	for i := len(a.parts) - 1; t.Index != nil && i >= 0 && p == nil; i-- {
		if a.parts[i].index == *t.Index {
			p = a.parts[i]
		}
	}
	id, name := string(t.ID), string(t.Function.Name)
	if p == nil || a.isAnotherCall(p, id, name) {
		p = &callParts{index: len(a.parts)}
		if t.Index != nil {
			p.index = *t.Index
		}
		a.parts = append(a.parts, p)
	}
	if id != p.id.String() { // some repeat it in every piece
		p.id.WriteString(id)
	}
	if name != p.name.String() || !a.tools[name] {
		p.name.WriteString(name)
	}
	p.args.WriteString(string(t.Function.Arguments))
}

// isAnotherCall reports whether a piece belongs to another call: its id or name comes after p was complete.
func (a *answer) isAnotherCall(p *callParts, id, name string) bool {
	begun := p.args.Len() > 0
	newID := id != "" && p.id.Len() > 0 && id != p.id.String()
	known := a.tools[name] && a.tools[p.name.String()]
	switch {
	case begun && newID:
		return true
	case begun && name != "" && (id == "" || p.id.Len() == 0) && json.Valid([]byte(p.args.String())):
		return true // whole calls in a row, without ids
	case known && newID:
		return true // calls without arguments
	}
	return false
}

// finishAnswer returns the rest of the text. Calls in the provider's own form count alone.
func (a *answer) finishAnswer() (n news) {
	end, _ := endOf(a.finish)
	show, undo := a.check.Push(a.filter.Finish())
	rest, again := a.check.Finish(end == llm.FinishLength)
	if n.text, n.undo = show+rest, undo || again; again {
		n.text = rest
	}
	a.text = a.check.Text()
	if len(a.parts) == 0 {
		a.calls = a.check.Calls()
		for i := range a.calls {
			a.calls[i].ID = newCallID()
		}
	}
	seen := map[string]bool{}
	for _, p := range a.parts {
		c := sessions.ToolCall{ID: p.id.String(), Name: strings.TrimSpace(p.name.String()), Arguments: p.args.String()}
		if c.Name == "" {
			continue
		}
		if c.ID == "" || seen[c.ID] {
			c.ID = newCallID()
		}
		seen[c.ID] = true
		if strings.TrimSpace(c.Arguments) == "" {
			c.Arguments = "{}"
		}
		a.calls = append(a.calls, c)
	}
	return n
}

// response is a whole answer of the named model.
func (a *answer) response(name string, price llm.Price) llm.Response {
	r := llm.Response{Text: a.text, ToolCalls: a.calls, Usage: a.usage, Guessed: a.guessed, Model: name, Reasoning: a.thoughts.String()}
	r.Finish, _ = endOf(a.finish)
	r.Corrected = a.check.Found()
	switch {
	case a.check.Has(written.Repeated):
		r.Finish = llm.FinishRepeats
	case len(a.calls) > 0 && r.Finish == llm.FinishStop:
		r.Finish = llm.FinishTools // some providers send "stop" after a forced tool
	case len(a.calls) == 0 && r.Finish == llm.FinishTools:
		r.Finish = llm.FinishStop
	}
	r.Cost = price.Cost(a.usage)
	return r
}

// saidBytes is the length of all that a model wrote.
func (a *answer) saidBytes() int {
	n := a.said + a.thoughts.Len()
	for _, c := range a.calls {
		n += len(c.Name) + len(c.Arguments)
	}
	return n
}

// A random id is unique in a session.
func newCallID() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails
	return "call_" + hex.EncodeToString(b[:])
}

// sink passes an answer to its reader as it comes.
type sink struct {
	delta func(text string, reset bool)
	idea  func(text string)
	dirty bool
}

type news struct {
	undo       bool // all text so far was reasoning
	text, idea string
}

func (s *sink) pushThought(t string) {
	if s.idea != nil && s.delta != nil && t != "" {
		s.dirty = true
		s.idea(t)
	}
}

func (s *sink) pushText(t string) {
	if s.delta != nil && t != "" {
		s.dirty = true
		s.delta(t, false)
	}
}

func (s *sink) pushNews(n news) {
	if n.undo {
		s.resetText()
	}
	s.pushThought(n.idea)
	s.pushText(n.text)
}

func (s *sink) resetText() {
	if s.dirty {
		s.dirty = false
		s.delta("", true)
	}
}
