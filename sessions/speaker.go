package sessions

import (
	"strings"
	"unicode"
)

// Nicks can't forge or remove the mark: brackets are dropped.
const outsider = "［外部］"

// maxNick is in characters.
const maxNick = 40

// Outside reports whether a sender is from outside the organisation: DingTalk gives an encrypted id.
func Outside(id UserID) bool { return id == "" || strings.HasPrefix(string(id), "$:") }

// Speaker is a person's name for a model: Nick(id), or Nick［外部］ for people from outside. Only the id identifies: nicks
// are chosen freely, and can't imitate an id or the mark.
func Speaker(nick string, id UserID) string {
	nick = Nick(nick)
	switch {
	case Outside(id):
		return nick + outsider
	case nick == "":
		return string(id)
	}
	return nick + "(" + string(id) + ")"
}

// Nick is a nick for display: one line of bounded length without brackets, colons, control and invisible characters.
func Nick(nick string) string { return cleanLabel(nick, maxNick) }

// maxTitle is in characters.
const maxTitle = 60

// Title is a group's title for display, by the rules of [Nick]: members may choose it.
func Title(title string) string { return cleanLabel(title, maxTitle) }

func cleanLabel(nick string, most int) string {
	nick = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r): // bidi marks and joiners
			return -1
		case unicode.IsControl(r), unicode.In(r, unicode.Ps, unicode.Pe, unicode.Pi, unicode.Pf), strings.ContainsRune("<>＜＞:：﹕︰꞉∶ː", r):
			return ' '
		}
		return r
	}, nick)), " ")
	if rs := []rune(nick); len(rs) > most {
		return strings.TrimSpace(string(rs[:most])) + "…"
	}
	return nick
}
