package wording

import (
	"fmt"
	"regexp"
	"unicode"

	"ebb/sessions"
)

// Languages chooses the language of fixed words: zh or en.
type Languages struct {
	Preset   string // where a text does not show one
	Assigned map[sessions.ConversationID]string
}

// Of is the language of fixed words to the sender of a text: the conversation's, where the configuration sets one, else the
// text's.
func (l Languages) Of(id sessions.ConversationID, text string) string {
	if set := l.Assigned[id]; set != "" {
		return set
	}
	if IsCommand(text) {
		text = WordsOfCommand(text)
	}
	return LanguageOf(text, l.Preset)
}

// WordsOfCommand is a command without the names of people: they may be in any language.
func WordsOfCommand(text string) string { return mentionRE.ReplaceAllString(text, " ") }

var mentionRE = regexp.MustCompile(`[@＠]\S+`)

// LanguageOf is the language to answer a text in: Chinese where there is any, English where there are only Latin
// words, else the configured one.
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

// Thousands writes 64000 as 64,000.
func Thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
