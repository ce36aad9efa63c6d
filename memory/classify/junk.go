package classify

import "ebb/memory/text"

// Junk returns why a text is no fact worth keeping, for a model; empty if it may be one. A short text may be a fact:
// "周会周三", "Bob: CTO".
func Junk(body string) string {
	t := text.Canonical(body)
	bare := text.Words(t)
	switch {
	case bare == "":
		return "has no words; save a fact in a sentence"
	case isTiny(bare):
		return "is too short to be a fact; save a whole sentence that says who or what"
	case scaffoldRE.MatchString(t) || headingRE.MatchString(text.DropInvisible(body)):
		return "is part of a prompt or a form, not a fact; save what people said, without headings, fences, tags or roles"
	case toolTalkRE.MatchString(bare):
		return "is about saving, not a fact; where there is nothing to save, set nothing_to_save"
	case smallTalkRE().MatchString(bare) || reportRE.MatchString(t):
		return "is small talk, not a fact; leave greetings and thanks out"
	case isQuestion(t) || requestRE.MatchString(t):
		return "is a question or a request, not a fact; save the answer, once there is one"
	}
	return ""
}

func isTiny(bare string) bool {
	n := 0
	for _, r := range bare {
		if r != ' ' {
			n++
		}
		if n > 2 {
			return false
		}
	}
	return true
}

// headingRE finds headings and fences, which only the original text shows.
var headingRE = phrasesOf("heading")

var scaffoldRE = phrasesOf("scaffold")

// toolTalkRE matches talk about saving, in the form of [text.Words].
var toolTalkRE = phrasesOf("toolTalk")

// smallTalkRE matches the form of [text.Words].
var smallTalkRE = wordsOf("smallTalk")

var reportRE = phrasesOf("report")

var requestRE = phrasesOf("request")
