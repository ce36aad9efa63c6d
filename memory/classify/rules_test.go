package classify

import (
	"regexp"
	"testing"

	"ebb/memory/text"
)

// judgments are the verdicts that a match of a list must bring about.
var judgments = map[string]func(string) bool{
	"widen": isInstruction, "conceal": isInstruction, "order": isInstruction,
	"scaffold": isJunk, "toolTalk": isJunk, "smallTalk": isJunk, "report": isJunk, "request": isJunk, "question": isJunk,
	"self": SelfReference, "asked": Candidate, "property": Candidate, "weight": Candidate, "identifier": Candidate,
	"polite": AsksToRemember, "remember": RecallQuestion, "recall": RecallQuestion,
	"sensitive": Sensitive, "identityCard": Sensitive, "style": AnswerStyle,
}

func isInstruction(s string) bool { return Instruction(s) != "" }
func isJunk(s string) bool        { return Junk(s) != "" }

// Each rule of rules.tsv matches its first example, and not its second. The judgment of the whole text agrees.
func TestRuleExamples(t *testing.T) {
	t.Parallel()
	if len(rules()) == 0 {
		t.Fatal("no rules")
	}
	for _, r := range rules() {
		_, listed := lists[r.list]
		fold, matches := text.Canonical, newPhraseList(func() []string { return []string{r.expr} }).MatchString
		switch r.list {
		case "smallTalk":
			listed, matches = true, onlyWords(r.expr).MatchString
			fallthrough
		case "toolTalk":
			fold = func(s string) string { return text.Words(text.Canonical(s)) }
		}
		if !listed {
			t.Errorf("%s: no such list", r.list)
		}
		if regexp.MustCompile(`(?:^|[^pP])\{[A-Za-z]+\}`).MatchString(r.expr) {
			t.Errorf("%s: an unknown part in %s", r.list, r.expr)
		}
		if !matches(fold(r.match)) {
			t.Errorf("%s: %q does not match %s", r.list, r.match, r.expr)
		}
		if matches(fold(r.miss)) {
			t.Errorf("%s: %q matches %s", r.list, r.miss, r.expr)
		}
		if judge := judgments[r.list]; judge != nil && !judge(r.match) {
			t.Errorf("%s: %q is not judged so", r.list, r.match)
		}
	}
}
