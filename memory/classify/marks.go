package classify

import (
	"ebb/memory/dates"
	"ebb/memory/text"
)

// SelfReference reports 我, 本人, I, my and so on, but not 我们, our, or words with them inside (自我, I/O, phase I).
func SelfReference(body string) bool {
	return selfRE.MatchString(ordinalRE.union().ReplaceAllString(text.Canonical(text.Clip(body)), "□"))
}

var ordinalRE = phrasesOf("ordinal")

var selfRE = phrasesOf("self")

// Candidate reports whether a text may be worth remembering: it asks for that, describes its speaker, or has the marks
// of decisions and duties.
func Candidate(body string) bool {
	for s := range text.Sentences(text.Clip(body)) {
		f := text.Canonical(s)
		if askedRE.MatchString(f) {
			return true
		}
		if isQuestion(f) || openRE.MatchString(f) || requestRE.MatchString(f) || smallTalkRE().MatchString(text.Words(f)) {
			continue
		}
		if propertyRE.MatchString(f) || weightRE.MatchString(f) || identifierRE.MatchString(f) || dates.Mentions(s) {
			return true
		}
	}
	return false
}

// AsksToRemember reports an explicit request, such as "记住：…" and "please note that …".
func AsksToRemember(body string) bool {
	for s := range text.Sentences(text.Clip(body)) {
		if f := text.Canonical(s); askedRE.MatchString(f) && (!isQuestion(f) || politeRE.MatchString(f)) {
			return true
		}
	}
	return false
}

// RecallQuestion reports whether a text asks about, or builds on, earlier talk: "上次定的是什么", "do you remember".
func RecallQuestion(body string) bool {
	for s := range text.Sentences(text.Clip(body)) {
		f := text.Canonical(s)
		switch {
		case rememberRE.MatchString(f):
			return true
		case askedRE.MatchString(f):
			continue
		case recallRE.MatchString(f):
			return true
		case !isQuestion(f) && !wonderRE.MatchString(f):
			continue
		case pastRE.MatchString(f) || dates.NamesPast(s):
			return true
		}
	}
	return false
}

func isQuestion(folded string) bool { return questionRE.MatchString(folded) }

var (
	questionRE = phrasesOf("question")
	openRE     = phrasesOf("open")   // the beginnings of questions
	wonderRE   = phrasesOf("wonder") // words anywhere

	askedRE  = phrasesOf("asked")
	politeRE = phrasesOf("polite") // requests as questions

	propertyRE   = phrasesOf("property")
	weightRE     = phrasesOf("weight")
	identifierRE = phrasesOf("identifier") // amounts, times of day, links, and names that machines or offices give

	rememberRE = phrasesOf("remember")
	recallRE   = phrasesOf("recall")
	pastRE     = phrasesOf("past")
)
