package transcript

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
	"ebb/sessions/redact"
)

// maxCallText bounds a call's arguments, in characters.
const maxCallText = 500

// Text in JSON strings can't pass for structure.
type eventLine struct {
	N    int64  `json:"n"`
	T    string `json:"t,omitempty"`
	Who  string `json:"who,omitempty"`
	Role string `json:"role,omitempty"`
	Tool string `json:"tool,omitempty"`
	Text string `json:"text"`
}

// Writer writes events between fences, one JSON object a line, as many as fit. The frame of a line counts: it exceeds
// a short message.
type Writer struct {
	Counter  *tokens.Counter
	Location *time.Location // UTC when nil
	// Summaries shows events of role summary, which are skipped otherwise.
	Summaries bool
	Cleaner   Cleaner
}

// Cleaner caches cleaned texts, as the search for credentials dominates. A nil Cleaner caches nothing.
type Cleaner map[string]string

func (t Cleaner) cleanText(text string) string {
	if t == nil {
		return Clean(text)
	}
	c, known := t[text]
	if !known {
		c = Clean(text)
		t[text] = c
	}
	return c
}

const fenceTokens = 64

// Write writes as many events as fit into limit tokens and returns their number: whole turns, unless the first is too
// long, and at least one event. Only the first one is ever shortened, to its two ends: see [Writer.Split].
func (s Writer) Write(events []sessions.Event, limit int) (text string, n int) {
	var lines []string
	room, at := limit-fenceTokens, ""
	names := sessions.NewSpeakers(events)
	for n < len(events) {
		text, tokens := "", 0
		if e := events[n]; e.Role != sessions.RoleSummary || s.Summaries {
			l := s.lineOf(e)
			names.Add(e)
			l.Text += names.Note(e)
			if l.T == at { // a line omits an unchanged time
				l.T = ""
			} else {
				at = l.T
			}
			most := limit - fenceTokens
			if n > 0 { // it begins the next text, in pieces if it is longer than one
				most = math.MaxInt
			}
			text, tokens = s.Counter.Shorten(l.Text, most, func(text string) string {
				l.Text = text
				return l.String()
			})
		}
		if tokens > room && n > 0 {
			break
		}
		lines, room, n = append(lines, text), room-tokens, n+1
	}
	if n < len(events) {
		for _, at := range compaction.TurnStarts(events[:n+1]) {
			if at > 0 {
				n = at
			}
		}
	}
	return Fence("transcript", strings.Join(lines[:n], "")), n
}

// String is the line as JSON with its line break.
func (l eventLine) String() string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(l) // strings and integers never fail
	return b.String()
}

// lineOf names the speaker of a user event, and the role of any other.
func (s Writer) lineOf(e sessions.Event) eventLine {
	loc := s.Location
	if loc == nil {
		loc = time.UTC
	}
	l := eventLine{N: e.Seq, T: e.CreatedAt.In(loc).Format("2006-01-02 15:04"), Tool: e.ToolName, Text: s.Cleaner.EventText(e)}
	if e.Role == sessions.RoleUser {
		l.Who = sessions.Speaker(e.SenderNick, e.SenderID)
	} else {
		l.Role = string(e.Role)
	}
	return l
}

// EventText is an event's text and calls for a model. Results of tools are whole: after the compaction no view has them.
func (t Cleaner) EventText(e sessions.Event) string {
	text := t.cleanText(e.Content)
	for _, c := range e.ToolCalls {
		text += fmt.Sprintf(" [%s %s]", c.Name, Clip(t.cleanText(c.Arguments), maxCallText))
	}
	return text
}

// Clean removes encoded bytes, then credentials. It precedes all cutting, which could leave half of a credential.
func Clean(text string) string { return redact.Secrets(replaceEncoded(text)) }

// Fence encloses data in two lines with a random mark, which the data does not have.
func Fence(name, data string) string {
	mark := rand.Text()[:12]
	for strings.Contains(data, mark) {
		mark = rand.Text()[:12]
	}
	return fmt.Sprintf("<<<%s %s\n%s\n%s %s>>>", name, mark, strings.TrimRight(data, "\n"), name, mark)
}

// Clip shortens a text to its two ends with a note between them.
func Clip(text string, chars int) string {
	if len(text) <= chars || utf8.RuneCountInString(text) <= chars {
		return text
	}
	runes := []rune(text)
	note := func(n int) string { return fmt.Sprintf(" …[%d characters left out]… ", n) }
	room := max(0, chars-utf8.RuneCountInString(note(len(runes))))
	head, tail := room*2/3, room/3
	return string(runes[:head]) + note(len(runes)-head-tail) + string(runes[len(runes)-tail:])
}
