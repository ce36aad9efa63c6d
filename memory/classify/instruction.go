package classify

import "ebb/memory/text"

// Instruction returns why a text is an instruction that poses as a fact, in words that a model can act on; empty if it
// is none. Instructions are orders to readers of the memory, talk of prompts, wishes to hide the nature of the bot, and
// wishes for more readers, which only the program decides. A wish about answers ("用中文回答我") is a preference.
//
// This check is one defense of several, and the weakest: models see memories as data, and their scope never follows
// from their words. It reads through full-width and invisible characters, capitals, and words spelled letter by letter.
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

// harmlessRE finds text with the words of an order that is not one. Examples are orders not to do something, past
// actions, settings of programs, and wishes about the manner of an answer.
var harmlessRE = phrasesOf("harmless")

// widenRE finds wishes to be read by more people.
var widenRE = phrasesOf("widen")

// concealRE finds wishes to hide the assistant's nature or instructions.
var concealRE = phrasesOf("conceal")

// orderRE finds orders to the assistant.
var orderRE = phrasesOf("order")
