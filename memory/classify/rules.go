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

var ruleFile = rules.Read(ruleLines)

func phrasesOf(list string) phraseList {
	return newPhraseList(func() []string { return ruleFile.Exprs(list) })
}

// wordsOf matches texts that consist of a list's words only.
func wordsOf(list string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return onlyWords(ruleFile.Exprs(list)...) })
}

func onlyWords(words ...string) *regexp.Regexp {
	return regexp.MustCompile(`^(?:(?:` + strings.Join(words, "|") + `) ?)+$`)
}
