package classify

import (
	"ebb/memory/text"
)

// AnswerStyle reports whether a text states the language, length or form in which its speaker wants answers. It is
// that speaker's preference, and never a rule for others: in a private chat it follows the person, in a group it
// concerns that person alone.
func AnswerStyle(body string) bool { return styleRE.MatchString(text.Canonical(body)) }

var styleRE = phrasesOf("style")
