package compaction

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"ebb/sessions"
)

// maxToolText bounds what a transcript shows of one tool result, in bytes.
const maxToolText = 2000

// line is one event as a transcript shows it. Everything that people or tools said is inside JSON strings, so that
// nothing of it can look like structure.
type line struct {
	N    int64  `json:"n"`
	T    string `json:"t"`
	Who  string `json:"who,omitempty"`
	Role string `json:"role"`
	Tool string `json:"tool,omitempty"`
	Text string `json:"text"`
}

// Transcript writes events as data for a model: one JSON object a line, between fences that the data can't contain.
// Times are in loc.
func Transcript(events []sessions.Event, loc *time.Location) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, e := range events {
		if e.Role == sessions.RoleSummary {
			continue
		}
		// Encoding a struct of strings and integers has no way to fail.
		_ = enc.Encode(lineOf(e, loc))
	}
	return Fence("transcript", b.String())
}

func lineOf(e sessions.Event, loc *time.Location) line {
	l := line{N: e.Seq, T: e.CreatedAt.In(loc).Format("2006-01-02 15:04"), Role: string(e.Role), Tool: e.ToolName, Text: e.Content}
	switch e.Role {
	case sessions.RoleUser:
		l.Who = Speaker(e.SenderNick, e.SenderID)
	case sessions.RoleTool:
		l.Text = HeadTail(e.Content, maxToolText)
	}
	for _, c := range e.ToolCalls {
		l.Text += fmt.Sprintf(" [%s %s]", c.Name, HeadTail(c.Arguments, maxToolText/4))
	}
	return l
}

// Speaker names a person to a model: the nick, which is for reading, and the id, which tells namesakes apart.
func Speaker(nick string, id sessions.UserID) string {
	nick = strings.Join(strings.Fields(nick), " ")
	if nick == "" {
		return string(id)
	}
	if id == "" || strings.HasPrefix(string(id), "$:") {
		return nick
	}
	return nick + "(" + string(id) + ")"
}

// Fence sets data between two lines that carry the same random mark.
func Fence(name, data string) string {
	mark := rand.Text()[:12]
	return fmt.Sprintf("<<<%s %s\n%s\n%s %s>>>", name, mark, strings.TrimRight(data, "\n"), name, mark)
}

// HeadTail shortens a text to about limit bytes: its beginning, a note of what is missing, its end. It never cuts
// inside a character.
func HeadTail(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head, tail := limit*2/3, len(text)-limit/3
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s …[%d bytes left out]… %s", text[:head], tail-head, text[tail:])
}
