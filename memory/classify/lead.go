package classify

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"ebb/memory/text"
	"ebb/sessions"
)

// Refusal is the reason why an item is not stored; zero: it is stored. Why continues the name of the field. An item with a
// Kind is never kept in any wording, one without is malformed.
type Refusal struct{ Why, Kind string }

// The kinds of text that is never kept.
const (
	Credential = "credential"
	Order      = "instruction"
	SmallTalk  = "small talk"
	Personal   = "personal data"
)

// Refuse returns why a text is never kept, for a model, also without its lead: "记住：", "please note:" or a speaker's
// name make no fact of it.
func Refuse(text string) Refusal {
	said, asked, by := cutLead(text, nil)
	texts := []string{text}
	if said != text {
		texts = append(texts, said)
	}
	for _, t := range texts {
		if HasCredential(t) {
			return Refusal{NeverStored, Credential}
		}
		if why := Instruction(t); why != "" {
			return Refusal{why, Order}
		}
	}
	if asked { // "请帮我记住：…" asks for what follows to be kept, and is a request itself
		text = said
	}
	if why := Junk(text); why != "" {
		return Refusal{why, SmallTalk}
	}
	if by && isChatter(said) {
		return chatter
	}
	return Refusal{}
}

// NeverStored is the reason for the refusal of a credential.
const NeverStored = "looks like a credential, which is never stored; tell the person that /forget last (/忘记 上一条) deletes their message"

var chatter = Refusal{"is small talk or a request of one speaker, not a fact; leave it out", SmallTalk}

// RefuseChatter refuses the small talk of a person in the roster. Other words before a colon may be no names:
// "Contract: agreed".
func RefuseChatter(text string, roster map[string]sessions.UserID) Refusal {
	said, _, by := cutLead(text, roster)
	if by && isChatter(said) {
		return chatter
	}
	return Refusal{}
}

// isChatter, unlike [Junk], accepts short answers: "Bob: QA" may state a role.
func isChatter(body string) bool {
	t := text.Canonical(body)
	bare := text.Words(t)
	return smallTalkRE().MatchString(bare) || toolTalkRE.MatchString(bare) || requestRE.MatchString(t)
}

// cutLead removes speaker (by) and request to remember (asked). A word that the roster lacks, as in "Status: done",
// goes without by.
func cutLead(body string, roster map[string]sessions.UserID) (said string, asked, by bool) {
	said = strings.TrimSpace(norm.NFKC.String(text.DropInvisible(body)))
	const leads = 4 // more are not seen in practice
	for range leads {
		if m := askedLeadRE().FindString(said); m != "" {
			said, asked = trimQuotes(said[len(m):]), true
			continue
		}
		m := speakerLeadRE().FindStringSubmatch(said)
		if m == nil {
			break
		}
		by = by || m[2] != "" || m[3] != "" || roster[strings.TrimPrefix(m[1], "@")] != ""
		said = trimQuotes(said[len(m[0]):])
	}
	return said, asked, by
}

// SpeakerLead returns the speaker's name at the beginning of a text, with the mark or verb behind it.
func SpeakerLead(text string) string { return speakerLeadRE().FindString(text) }

func trimQuotes(s string) string { return strings.Trim(s, " \t\n\"'“”‘’「」") }

var (
	askedLeadRE   = ruleFile.Regexp("askedLead")
	speakerLeadRE = ruleFile.Regexp("speakerLead")

	// askingRE is for stored texts.
	askingRE  = ruleFile.Regexp("asking")
	speakerRE = ruleFile.Regexp("speaker")
)

// TrimLead removes the speaker's name and a request to remember: "张伟：记住我的工位在 B 区" becomes 我的工位在 B 区. A name before a
// colon stays, as it may be the subject, unless the rest speaks of its speaker or asks to remember.
func TrimLead(content string) string {
	text := strings.TrimSpace(content)
	if m := speakerRE().FindStringSubmatchIndex(text); m != nil {
		rest, says := text[m[1]:], strings.ContainsAny(strings.ToLower(text[m[2]:m[3]]), "说s")
		if rest != "" && (says || SelfReference(rest) || askingRE().MatchString(rest)) {
			text = rest
		}
	}
	if rest := strings.TrimSpace(askingRE().ReplaceAllString(text, "")); rest != "" {
		text = rest
	}
	return text
}
