package classify

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

//go:embed rules.tsv
var ruleLines string

// rules are those of rules.tsv.
var rules = sync.OnceValue(func() []rule { return parseRules(ruleLines) })

type rule struct {
	list        string
	match, miss string // examples
	expr        string
}

// parseRules reads rules. The text is linked in and tested, so a mistake panics.
func parseRules(lines string) []rule {
	var list []rule
	var parts []string // names and expressions
	for line := range strings.Lines(lines) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if f[0] == "part" {
			parts = append(parts, "{"+f[1]+"}", f[2])
			continue
		}
		expr := strings.ReplaceAll(strings.NewReplacer(parts...).Replace(f[3]), " ", `\s*`)
		list = append(list, rule{list: f[0], match: f[1], miss: f[2], expr: expr})
	}
	return list
}

// exprsOf lists the expressions of a list.
func exprsOf(list string) []string {
	var all []string
	for _, r := range rules() {
		if r.list == list {
			all = append(all, r.expr)
		}
	}
	return all
}

// phrasesOf matches any expression of a list.
func phrasesOf(list string) phraseList {
	return newPhraseList(func() []string { return exprsOf(list) })
}

// wordsOf matches texts that consist of a list's words.
func wordsOf(list string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return onlyWords(exprsOf(list)...) })
}

func onlyWords(words ...string) *regexp.Regexp {
	return regexp.MustCompile(`^(?:(?:` + strings.Join(words, "|") + `) ?)+$`)
}
