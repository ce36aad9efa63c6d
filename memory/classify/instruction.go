package classify

import "ebb/memory/text"

// Instruction returns why a text is an instruction that poses as a fact, for a model; empty if it is none.
// Instructions are orders to readers of the memory, talk of prompts, and wishes to hide the bot's nature or to have
// more readers. A wish about answers ("用中文回答我") is a preference.
//
// This check is the weakest of several defenses: models see memories as data, whose scope never follows from their
// words. It reads through full-width and invisible characters, capitals and spelled words.
func Instruction(body string) string {
	t := harmlessRE.union().ReplaceAllString(text.JoinSpelled(text.Canonical(body)), "□")
	switch {
	case widenRE.MatchString(t):
		return "asks for who may read it, which no text decides; save the fact alone, without where to put it"
	case concealRE.MatchString(t):
		return "asks to hide something about the assistant; that is an instruction, not a fact"
	case orderRE.MatchString(t):
		return "is an instruction to the assistant, not a fact; save what people decided, prefer or are, in the third person"
	}
	return ""
}

// harmlessRE finds an order's words in prohibitions, past actions, settings of programs and wishes about answers.
var harmlessRE = phrasesOf("harmless")

var widenRE = phrasesOf("widen")

var concealRE = phrasesOf("conceal")

var orderRE = phrasesOf("order")
