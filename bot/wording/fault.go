package wording

import "ebb/sessions"

var faultPhrases = map[sessions.MediaFault]Phrase{
	sessions.MediaExpired: FaultExpired, sessions.MediaUnavailable: FaultUnavailable, sessions.MediaTooLarge: FaultTooLarge,
	sessions.MediaNoCalls: FaultNoCalls, sessions.MediaRefused: FaultRefused, sessions.MediaUnsupported: FaultUnsupported,
	"legacy": FaultLegacy, "encrypted": FaultEncrypted, "broken": FaultBroken, "too_complex": FaultTooComplex, "empty": FaultEmpty,
}

// FaultOf says why an attachment could not be read, behind an answer.
func FaultOf(m sessions.Media, lang string) string {
	phrase, known := faultPhrases[m.Fault]
	if !known {
		phrase = FaultOther
	}
	return Say(phrase, lang, nameOf(m, lang))
}

func nameOf(m sessions.Media, lang string) string {
	switch name := sessions.QuoteText(m.Name); {
	case name != "" && lang == "en":
		return `"` + name + `"`
	case name != "":
		return "《" + name + "》"
	case lang == "en":
		return "The picture"
	}
	return "这张图片"
}
