package markdown

import (
	"regexp"
	"strings"
)

var everybody = regexp.MustCompile(`(?i)@(all\b|所有人)`)

// These links send a message in the name of the person who presses them, such as a command.
var button = regexp.MustCompile(`(?i)\b(dtmd)(?::|&colon;|&#0*58;|&#x0*3a;)`)

// Harmless keeps a model's text from mentioning everyone, and from links that send a message in a reader's name.
// Other mentions need an id in the request's list.
func Harmless(text string) string {
	if strings.Contains(text, "@") {
		text = everybody.ReplaceAllString(text, "＠$1")
	}
	return button.ReplaceAllString(text, "$1：")
}
