package knowledge

import (
	_ "embed"
	"strings"

	"ebb/sessions/rules"
)

//go:embed rules.tsv
var ruleLines string

var (
	ruleFile = rules.Read(ruleLines)
	keepRE   = ruleFile.Regexp("keep")
)

// maxAsk bounds a message that asks for nothing else, in bytes.
const maxAsk = 120

// Asks reports whether a person's words ask to keep a file, and for nothing else. Others are for the model.
func Asks(words string) bool {
	words = strings.TrimSpace(words)
	return len(words) <= maxAsk && keepRE().MatchString(strings.ToLower(words))
}
