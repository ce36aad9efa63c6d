package classify

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"

	"ebb/sessions/rules"
)

//go:embed rules.tsv
var ruleLines string

// ruleFile has the rules of rules.tsv.
var ruleFile = rules.Read(ruleLines)

// phrasesOf matches any expression of a list.
func phrasesOf(list string) phraseList {
	return newPhraseList(func() []string { return ruleFile.Exprs(list) })
}

// wordsOf matches texts that consist of a list's words.
func wordsOf(list string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return onlyWords(ruleFile.Exprs(list)...) })
}

func onlyWords(words ...string) *regexp.Regexp {
	return regexp.MustCompile(`^(?:(?:` + strings.Join(words, "|") + `) ?)+$`)
}
