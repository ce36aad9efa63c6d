package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"ebb/bot/config/strict"
	"ebb/sessions"
)

type kept struct {
	messages []keptMessage
	// consolidated counts the leading messages that the older bot had summarized.
	consolidated   int
	consolidatedAt time.Time // zero if the file has none
	summary        string    // empty if the file has none
}

type keptMessage struct {
	place  place
	event  sessions.Event
	sender string
	sentAt time.Time // zero if the file has none
}

type place struct {
	line int    // from 1
	path string // such as messages[3]; empty in a file with one message a line
}

// Other fields are ignored.
type keptHead struct {
	Consolidated   *int   `json:"last_consolidated"`
	ConsolidatedAt string `json:"last_consolidated_at"`
	Summary        string `json:"summary"`
}

type keptLine struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	Timestamp  string     `json:"timestamp"`
	Sender     string     `json:"sender"`
	Name       string     `json:"name"`
	ToolCalls  []keptCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

// keptCall has the form of the chat completions API.
type keptCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Errors name file, line and field.
type keptReader struct {
	name string
	zone *time.Location // for times without a zone
	out  kept
	open []string // ids of calls without a result so far
}

// readKept reads one JSON object with "messages", or lines of JSON: metadata, then messages.
func readKept(name string, data []byte, zone *time.Location) (kept, error) {
	r := &keptReader{name: name, zone: zone}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if n := strict.InvalidUTF8(data); n >= 0 {
		return kept{}, r.fail(lineAt(data, n), "got a byte that is not UTF-8")
	}
	read := r.lines
	if root, err := hujson.Parse(data); err == nil && root.Find("/messages") != nil {
		read = func(data []byte) error { return r.object(root, data) }
	} else if whole := (struct{ Messages json.RawMessage }{}); err != nil && json.Unmarshal(firstLine(data), &whole) != nil {
		// The first line is no complete object, so the file is one broken object.
		return kept{}, r.broken(data, err)
	}
	if err := read(data); err != nil {
		return kept{}, err
	}
	return r.out, r.finish()
}

func firstLine(data []byte) []byte {
	line, _, _ := bytes.Cut(bytes.TrimSpace(data), []byte("\n"))
	return line
}

func (r *keptReader) broken(data []byte, err error) error {
	if problem := strict.CheckSyntax(r.name, data); problem != nil {
		return problem
	}
	return r.fail(1, "%v", err)
}

// object reads the form of one JSON object. Each fault has the line of its value in the file, since these files are mended by hand.
func (r *keptReader) object(root hujson.Value, data []byte) error {
	line := func(v *hujson.Value) int { return lineAt(data, v.StartOffset) }
	messages := root.Find("/messages")
	list, ok := messages.Value.(*hujson.Array)
	if !ok {
		return r.fail(line(messages), "messages: got %s, want a list", strict.KindName(*messages))
	}
	for i := range list.Elements {
		e := &list.Elements[i]
		if err := r.message(place{line(e), fmt.Sprintf("messages[%d]", i)}, data[e.StartOffset:e.EndOffset]); err != nil {
			return err
		}
	}
	at := func(key string) int {
		if v := root.Find("/" + key); v != nil {
			return line(v)
		}
		return 1
	}
	head := root.Clone()
	head.Standardize()
	return r.head(at, head.Pack())
}

// lines reads the form of one object in a line. Metadata count only before the messages: a second head would change what was read.
func (r *keptReader) lines(data []byte) error {
	n, headLine := 0, 1
	head := []byte("{}")
	for text := range bytes.Lines(data) {
		n++
		text = bytes.TrimSpace(text)
		if len(text) == 0 {
			continue
		}
		var kind struct {
			Type string `json:"_type"`
		}
		if json.Unmarshal(text, &kind) == nil && kind.Type == "metadata" {
			if len(r.out.messages) > 0 {
				return r.fail(n, "_type: got metadata after a message, want it in the first line")
			}
			head, headLine = text, n
			continue
		}
		if err := r.message(place{line: n}, text); err != nil {
			return err
		}
	}
	return r.head(func(string) int { return headLine }, head)
}

// head reads the metadata; at is the line of one of its keys.
func (r *keptReader) head(at func(key string) int, text []byte) error {
	var h keptHead
	if err := json.Unmarshal(text, &h); err != nil {
		field, problem := jsonProblem(err)
		return r.fail(at(field), "%s: %s", field, problem)
	}
	total := len(r.out.messages)
	if h.Consolidated != nil {
		if n := *h.Consolidated; n < 0 || n > total {
			return r.fail(at("last_consolidated"), "last_consolidated: got %d, want 0 to the number of messages (%d)", n, total)
		}
		r.out.consolidated = *h.Consolidated
	}
	when, ok := parseTime(h.ConsolidatedAt, r.zone)
	if !ok {
		return r.fail(at("last_consolidated_at"), "last_consolidated_at: got %q, want a time such as 2026-03-05T10:00:00+08:00", h.ConsolidatedAt)
	}
	r.out.summary, r.out.consolidatedAt = strings.TrimSpace(h.Summary), when
	if r.out.summary != "" && r.out.consolidated == 0 {
		return r.fail(at("summary"), "summary: there is one, but last_consolidated is 0: it covers no messages")
	}
	return nil
}

// message refuses what a log of ours can't hold, at its place. An import is all or nothing, so a doubtful message is an error and no
// gap.
func (r *keptReader) message(at place, text []byte) error {
	var m keptLine
	if err := json.Unmarshal(text, &m); err != nil {
		field, problem := jsonProblem(err)
		return r.refuseField(at, field, "%s", problem)
	}
	when, ok := parseTime(m.Timestamp, r.zone)
	if !ok {
		return r.refuseField(at, "timestamp", "got %q, want a time such as 2026-03-05T10:00:00+08:00", m.Timestamp)
	}
	e := sessions.Event{Role: sessions.Role(m.Role), ToolCallID: m.ToolCallID}
	if m.Content != nil {
		e.Content = *m.Content
	}
	switch {
	case m.Role != "user" && m.Role != "assistant" && m.Role != "tool":
		return r.refuseField(at, "role", "got %q, want user, assistant or tool", m.Role)
	case m.Content == nil && len(m.ToolCalls) == 0:
		return r.refuseField(at, "content", "is missing, want what was said")
	case m.Role == "assistant" && strings.TrimSpace(e.Content) == "" && len(m.ToolCalls) == 0:
		return r.refuseField(at, "content", "is empty, want what was said")
	case m.Role != "assistant" && len(m.ToolCalls) > 0:
		return r.refuseField(at, "tool_calls", "only an assistant's message may have them")
	}
	if err := r.tools(at, m, &e); err != nil {
		return err
	}
	r.out.messages = append(r.out.messages, keptMessage{place: at, event: e, sender: m.Sender, sentAt: when})
	return nil
}

// tools checks that calls and results are paired, because model providers require it.
func (r *keptReader) tools(at place, m keptLine, e *sessions.Event) error {
	if m.Role == "tool" {
		for i, id := range r.open {
			if id == m.ToolCallID {
				r.open = append(r.open[:i], r.open[i+1:]...)
				e.ToolName = m.Name
				return nil
			}
		}
		return r.refuseField(at, "tool_call_id", "got %q, want the id of a call that the assistant's message before it made", m.ToolCallID)
	}
	if len(r.open) > 0 {
		return r.refuseField(at, "role", "got %q before the result of the tool call %q", m.Role, r.open[0])
	}
	for i, c := range m.ToolCalls {
		if c.ID == "" || c.Function.Name == "" {
			return r.refuseField(at, fmt.Sprintf("tool_calls[%d]", i), "got a call without id or name")
		}
		r.open = append(r.open, c.ID)
		e.ToolCalls = append(e.ToolCalls, sessions.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return nil
}

func (r *keptReader) finish() error {
	all := r.out.messages
	if len(all) == 0 {
		return r.fail(1, "messages: there are none")
	}
	last := all[len(all)-1].place
	if len(r.open) > 0 {
		return r.refuseField(last, "tool_calls", "the call %q has no result", r.open[0])
	}
	for _, m := range all {
		if m.event.Role == sessions.RoleUser {
			return nil
		}
	}
	return r.fail(last.line, "messages: none is a user's")
}

// refuseField refuses a field, or the whole message for an empty one.
func (r *keptReader) refuseField(at place, field, format string, args ...any) error {
	name := at.path
	if field != "" {
		name = strings.TrimPrefix(name+"."+field, ".")
	}
	if name != "" {
		name += ": "
	}
	return r.fail(at.line, "%s", name+fmt.Sprintf(format, args...))
}

func (r *keptReader) fail(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", r.name, line, fmt.Sprintf(format, args...))
}

// jsonProblem does not show the text; field is empty if unknown.
func jsonProblem(err error) (field, problem string) {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		want := wrong.Type.String()
		if wrong.Type.Kind() == reflect.Struct {
			want = "an object" // the type's name would not help
		}
		return wrong.Field, fmt.Sprintf("got %s, want %s", wrong.Value, want)
	}
	return "", err.Error()
}

// parseTime parses a time with or without a zone. An empty text is the zero time.
func parseTime(text string, zone *time.Location) (time.Time, bool) {
	if text == "" {
		return time.Time{}, true
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func lineAt(data []byte, offset int) int { return 1 + bytes.Count(data[:offset], []byte("\n")) }
