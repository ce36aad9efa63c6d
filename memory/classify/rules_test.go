package classify

import (
	"testing"

	"golang.org/x/text/unicode/norm"

	"ebb/memory/text"
	"ebb/sessions/rules"
	"ebb/sessions/rules/rulestest"
)

// judgments are the verdicts that a match of a list must bring about.
var judgments = map[string]func(string) bool{
	"widen": isInstruction, "conceal": isInstruction, "order": isInstruction,
	"scaffold": isJunk, "toolTalk": isJunk, "smallTalk": isJunk, "report": isJunk, "request": isJunk, "question": isJunk,
	"self": SelfReference, "asked": Candidate, "property": Candidate, "weight": Candidate, "identifier": Candidate,
	"polite": AsksToRemember, "remember": RecallQuestion, "recall": RecallQuestion,
	"sensitive": Sensitive, "identityCard": Sensitive, "style": AnswerStyle,
	"heading": isJunk, "shell": HasCredential, "login": HasCredential, "card": Sensitive, "askedLead": hasLead, "speakerLead": hasLead,
	"asking": isTrimmed, "speaker": isTrimmed,
}

func isInstruction(s string) bool { return Instruction(s) != "" }
func isJunk(s string) bool        { return Junk(s) != "" }
func isTrimmed(s string) bool     { return TrimLead(s) != s }

func hasLead(s string) bool {
	said, _, _ := cutLead(s, nil)
	return said != s
}

// Each rule of rules.tsv matches its first example, and not its second. The judgment of the whole text agrees.
func TestRuleExamples(t *testing.T) {
	t.Parallel()
	rulestest.Examples(t, ruleFile, func(r rules.Rule, example string) bool {
		fold, matches := text.Canonical, newPhraseList(func() []string { return []string{r.Expr} }).MatchString
		switch r.List {
		case "smallTalk":
			matches = onlyWords(r.Expr).MatchString
			fallthrough
		case "toolTalk":
			fold = func(s string) string { return text.Words(text.Canonical(s)) }
		case "heading", "mark", "shell", "login", "card", "askedLead", "speakerLead", "asking", "speaker":
			fold = norm.NFKC.String
		default:
			if _, listed := lists[r.List]; !listed {
				t.Errorf("%s: no such list", r.List)
			}
		}
		return matches(fold(example))
	})
	for _, r := range ruleFile.All() {
		if judge := judgments[r.List]; judge != nil && !judge(r.Match) {
			t.Errorf("%s: %q is not judged so", r.List, r.Match)
		}
	}
}
