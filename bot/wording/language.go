package wording

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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

// leastCost is the smallest amount with a digit.
const leastCost = 0.0001

// Cost formats an amount with four digits behind the point, as in 0.0123 CNY or ¥0.0123. An empty currency leaves the figure alone.
func Cost(amount float64, currency string) string {
	if amount > 0 && amount < leastCost {
		return "< " + withCurrency(fmt.Sprint(leastCost), currency)
	}
	return withCurrency(fmt.Sprintf("%.4f", amount), currency)
}

// Price formats a configured price as it is written.
func Price(amount float64, currency string) string { return withCurrency(fmt.Sprint(amount), currency) }

// withCurrency puts a sign before the figure, and a code or a word behind it.
func withCurrency(figure, currency string) string {
	if r, _ := utf8.DecodeRuneInString(currency); unicode.Is(unicode.Sc, r) {
		return currency + figure
	}
	return strings.TrimSpace(figure + " " + currency)
}
