package written

import (
	_ "embed"
	"strings"

	"ebb/sessions/rules"
)

//go:embed rules.tsv
var ruleLines string

var (
	ruleFile = rules.Read(ruleLines)

	opens     = ruleFile.Regexp("opens")
	announces = ruleFile.Regexp("announces")
	offers    = ruleFile.Regexp("offers")
)

// Bounds of the places that decide, in characters.
const (
	maxOpening = 120
	maxEnding  = 120
)

// IsTalk reports whether a text goes on with a conversation: it begins as a reply does, or ends with an offer or a question to
// its reader. Headings, rows and items of a list are neither. A request for a summary or for facts wants none of this.
func IsTalk(text string) bool {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	first, last := strings.TrimSpace(lines[0]), strings.TrimSpace(lines[len(lines)-1])
	if !listed.MatchString(first) && opens().MatchString(first) && !announces().MatchString(clip(strings.Join(lines, " "), maxOpening)) {
		return true
	}
	return !listed.MatchString(last) && offers().MatchString(ending(last))
}

func clip(s string, n int) string {
	if rs := []rune(s); len(rs) > n {
		return string(rs[:n])
	}
	return s
}

func ending(s string) string {
	if rs := []rune(s); len(rs) > maxEnding {
		return string(rs[len(rs)-maxEnding:])
	}
	return s
}
