package classify

import (
	"ebb/memory/text"
)

// AnswerStyle reports whether a text states how its speaker wants to be answered. It is a preference of that speaker,
// never a rule for others.
func AnswerStyle(body string) bool { return styleRE.MatchString(text.Canonical(body)) }

var styleRE = phrasesOf("style")
