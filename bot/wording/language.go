package wording

import (
	"fmt"
	"regexp"
	"time"
	"unicode"

	"ebb/sessions"
)

// Languages chooses the language of fixed words: zh or en.
type Languages struct {
	Preset   string                               // for texts without letters
	Assigned func(sessions.ConversationID) string // configured language of a conversation, or ""; nil: none
}

// Choose returns the conversation's configured language, or that of the sender's text.
func (l Languages) Choose(id sessions.ConversationID, text string) string {
	if l.Assigned != nil {
		if set := l.Assigned(id); set != "" {
			return set
		}
	}
	return LanguageOf(text, l.Preset)
}

// WordsOfCommand removes names of people from a command, because they may be in any language.
func WordsOfCommand(text string) string { return mentionRE.ReplaceAllString(text, " ") }

var mentionRE = regexp.MustCompile(`[@＠]\S+`)

// LanguageOf returns zh for a text with any Chinese character, en for Latin letters alone, otherwise the configured
// one.
func LanguageOf(text, configured string) string {
	latin := false
	for _, r := range text {
		if unicode.Is(unicode.Han, r) {
			return "zh"
		}
		latin = latin || unicode.Is(unicode.Latin, r)
	}
	if latin {
		return "en"
	}
	return configured
}

// Moment formats a time in its own zone, with seconds if there are any.
func Moment(t time.Time) string {
	if t.Second() != 0 {
		return t.Format("2006-01-02 15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}

// Thousands formats 64000 as 64,000.
func Thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
