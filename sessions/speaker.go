package sessions

import (
	"strings"
	"unicode"
)

// outsider marks people from outside the organisation. Nobody can give themself the mark, or be rid of it: brackets
// in nicks are dropped.
const outsider = "［外部］"

// maxNick bounds what is shown of a nick, in characters.
const maxNick = 40

// Outside reports whether a sender has no id in the organisation: DingTalk gives an encrypted one instead.
func Outside(id UserID) bool { return id == "" || strings.HasPrefix(string(id), "$:") }

// Speaker names a person to a model: Nick(id), or Nick［外部］ for people from outside. The nick is what its owner
// chose to write, so that only the id tells who it is; nothing in a nick can look like an id or like the mark.
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

// Nick is a nick as it is shown: without brackets, colons, control and invisible characters, on one line, and no longer
// than anybody's name.
func Nick(nick string) string { return label(nick, maxNick) }

// maxTitle bounds what is shown of a group's title, in characters.
const maxTitle = 60

// Title is a group's title as it is shown, by the rules of [Nick]: members may choose it.
func Title(title string) string { return label(title, maxTitle) }

func label(nick string, most int) string {
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
