package markdown

import (
	"regexp"
	"strings"
)

var everybody = regexp.MustCompile(`(?i)@(all\b|所有人)`)

// Harmless keeps a model's text from mentioning everyone. Other mentions need an id in the request's list.
func Harmless(text string) string {
	if !strings.Contains(text, "@") {
		return text
	}
	return everybody.ReplaceAllString(text, "＠$1")
}
