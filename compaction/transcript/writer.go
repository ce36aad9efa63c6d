package transcript

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
	"ebb/sessions/redact"
)

// What a transcript shows of one tool result, and of the arguments of one call, in characters.
const (
	maxToolText = 2000
	maxCallText = 500
)

// line is one event as a transcript shows it. Everything that people or tools said is inside JSON strings, so that
// nothing of it can look like structure.
type line struct {
	N    int64  `json:"n"`
	T    string `json:"t,omitempty"`
	Who  string `json:"who,omitempty"`
	Role string `json:"role,omitempty"`
	Tool string `json:"tool,omitempty"`
	Text string `json:"text"`
}

// Scribe writes events as data for a model: one JSON object a line, between fences that the data can't contain, as many
// as a request has room for. They are sized as they are written: the frame of a line is several times as long as a
// short message in it. Credentials and pictures that stand in a text are left out of it.
type Writer struct {
	Counter  *tokens.Counter
	Location *time.Location // UTC where nil
	// Summaries shows events of role summary, which tell what other events say, as lines; else they are passed over.
	Summaries bool
	Cleaner   Cleaner
}

// cleaned keeps what events are told as, by their words: in one summary they are read several times, and to look for
// credentials takes longer than all the rest. A nil one keeps nothing.
type Cleaner map[string]string

// clean is [clean], once for each text.
func (t Cleaner) clean(text string) string {
	if t == nil {
		return clean(text)
	}
	c, known := t[text]
	if !known {
		c = clean(text)
		t[text] = c
	}
	return c
}

// fenceTokens is what a fence around a text takes, at the most.
const fenceTokens = 64

// Write writes the longest beginning of events whose transcript takes at most limit tokens, and says how many of them
// that is: whole turns, unless the first is too long by itself, and always at least one event. An event that alone is
// too long is shown by its two ends.
func (s Writer) Write(events []sessions.Event, limit int) (text string, n int) {
	var lines []string
	room, at := limit-fenceTokens, ""
	for n < len(events) {
		text, tokens := "", 0
		if e := events[n]; e.Role != sessions.RoleSummary || s.Summaries {
			l := s.lineOf(e)
			if l.T == at { // a line says only what is new
				l.T = ""
			} else {
				at = l.T
			}
			text, tokens = s.Counter.Shorten(l.Text, limit-fenceTokens, func(text string) string {
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

// String is the line as JSON, with its line break.
func (l line) String() string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(l) // a struct of strings and integers has no way to fail
	return b.String()
}

// lineOf is an event's line. Who speaks is a user.
func (s Writer) lineOf(e sessions.Event) line {
	loc := s.Location
	if loc == nil {
		loc = time.UTC
	}
	l := line{N: e.Seq, T: e.CreatedAt.In(loc).Format("2006-01-02 15:04"), Tool: e.ToolName, Text: s.Cleaner.EventText(e)}
	if e.Role == sessions.RoleUser {
		l.Who = sessions.Speaker(e.SenderNick, e.SenderID)
	} else {
		l.Role = string(e.Role)
	}
	return l
}

// tellable is what a summary may know of an event: its words, and the calls that it made.
func (t Cleaner) EventText(e sessions.Event) string {
	text := t.clean(e.Content)
	if e.Role == sessions.RoleTool && e.Blob == "" { // what was moved out is told whole: the view had nothing of it
		text = Clip(text, maxToolText)
	}
	for _, c := range e.ToolCalls {
		text += fmt.Sprintf(" [%s %s]", c.Name, Clip(t.clean(c.Arguments), maxCallText))
	}
	return text
}

// Clean leaves out of a text what no request of ours may hold, for those who cut texts before they are told.
func Clean(text string) string { return clean(text) }

// clean leaves out of a text what no request of ours may hold: pictures, and then credentials. It comes before all
// cutting, which could leave half of one behind that is not recognised any more.
func clean(text string) string { return redact.Secrets(breadcrumbs(text)) }

// Fence sets data between two lines that carry the same random mark, which does not occur in the data.
func Fence(name, data string) string {
	mark := rand.Text()[:12]
	for strings.Contains(data, mark) {
		mark = rand.Text()[:12]
	}
	return fmt.Sprintf("<<<%s %s\n%s\n%s %s>>>", name, mark, strings.TrimRight(data, "\n"), name, mark)
}

// clip shortens a text to its two ends, with a note of what is missing, to so many characters together.
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
