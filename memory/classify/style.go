package classify

import (
	"ebb/memory/text"
)

// AnswerStyle reports whether a text states how its speaker wants to be answered: in which language, length or form. It
// is a preference of that speaker, never a rule for others. In a private chat it follows the person; in a group it
// concerns that person alone.
func AnswerStyle(body string) bool { return styleRE.MatchString(text.Canonical(body)) }

var styleRE = phrasesOf("style")
