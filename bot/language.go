package bot

import (
	"ebb/sessions"
	"fmt"
	"regexp"
	"unicode"
)

// languages chooses the language of fixed words: zh or en.
type languages struct {
	preset   string // where a text does not show one
	assigned map[sessions.ConversationID]string
}

// of is the language of fixed words to the sender of a text: the conversation's, where the configuration sets one, else the
// text's.
func (l languages) of(id sessions.ConversationID, text string) string {
	if set := l.assigned[id]; set != "" {
		return set
	}
	if isCommand(text) {
		text = wordsOfCommand(text)
	}
	return languageOf(text, l.preset)
}

// wordsOfCommand is a command without the names of people: they may be in any language.
func wordsOfCommand(text string) string { return mentionRE.ReplaceAllString(text, " ") }

var mentionRE = regexp.MustCompile(`[@＠]\S+`)

// languageOf is the language to answer a text in: Chinese where there is any, English where there are only Latin
// words, else the configured one.
func languageOf(text, configured string) string {
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

// thousands writes 64000 as 64,000.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
