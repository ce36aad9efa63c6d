package memory

import (
	"fmt"
	"strings"
	"time"

	"ebb/sessions"
)

// Source names speaker and subject for a model. A statement about another person becomes a claim.
func (m Memory) Source() string {
	source := "speaker unknown 说话人不明"
	if m.SaidBy != "" {
		source = "said by " + PersonOf(m.SaidBy, m.SaidByNick)
	}
	if m.SubjectID != "" && m.SubjectID != m.SaidBy {
		source += ", a claim about 说的是 " + PersonOf(m.SubjectID, m.SubjectNick)
	}
	return source
}

// PersonOf names a person by id, with a known nick in corner brackets. [sessions.Nick] removes these from nicks, so
// that none passes for another id or part of a source.
func PersonOf(id sessions.UserID, nick string) string {
	if nick = sessions.Nick(nick); nick == "" || nick == string(id) {
		return unmarked.Replace(string(id))
	}
	return unmarked.Replace(string(id)) + "「" + nick + "」"
}

// Fencer sets one piece of data between fences.
type Fencer func(name, data string) string

// Time is when a memory was said or, if unknown, stored.
func (m Memory) Time() time.Time {
	if m.SaidAt.IsZero() {
		return m.CreatedAt
	}
	return m.SaidAt
}

// Neither contents nor nicks hold these brackets of a pinned memory's source.
const (
	sourceOpen  = "⟦"
	sourceClose = "⟧"
)

var unmarked = strings.NewReplacer(sourceOpen, "(", sourceClose, ")")

// InLine puts a content on one line without a source's brackets.
func InLine(content string) string {
	return unmarked.Replace(strings.Join(strings.Fields(content), " "))
}

// PinnedLine is a memory at the head of a view: content, number, source, date.
func PinnedLine(m Memory, loc *time.Location) string {
	return fmt.Sprintf("- %s %s%s, %s%s\n", InLine(m.Content), pinnedMark(m.ID), m.Source(), m.Time().In(loc).Format(time.DateOnly), sourceClose)
}

// IsPinned reports whether a text of pinned lines shows a memory.
func IsPinned(text string, id int64) bool { return strings.Contains(text, pinnedMark(id)) }

func pinnedMark(id int64) string { return fmt.Sprintf("%s#%d ", sourceOpen, id) }
