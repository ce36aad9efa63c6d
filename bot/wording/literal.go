package wording

import (
	"regexp"
	"strings"
)

// bareURL matches an address that shows where it leads. Its marks stay, since their wide forms lead elsewhere.
var bareURL = regexp.MustCompile(`https?://[A-Za-z0-9/?&=%._~#:+,;!$-]+`)

// ruled matches a line that is a rule, or makes a heading of the line above it.
var ruled = regexp.MustCompile(`(?m)^[ \t]*[-=][-= \t]*$`)

var (
	wideMarks = strings.NewReplacer(
		"[", "［", "]", "］", "<", "＜", ">", "＞", "`", "｀", "*", "＊", "_", "＿", "~", "～", "|", "｜", "#", "＃", "\\", "＼", "@", "＠",
	)
	wideRules = strings.NewReplacer("-", "－", "=", "＝")
	newlines  = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")
)

// Literal replaces the marks of Markdown in people's words by their wide forms: they make no links, no emphasis and no
// structure in an answer. Bare addresses stay.
func Literal(text string) string {
	text = newlines.Replace(text)
	var out strings.Builder
	end := 0
	for _, at := range bareURL.FindAllStringIndex(text, -1) {
		out.WriteString(wideMarks.Replace(text[end:at[0]]))
		out.WriteString(text[at[0]:at[1]])
		end = at[1]
	}
	out.WriteString(wideMarks.Replace(text[end:]))
	return ruled.ReplaceAllStringFunc(out.String(), wideRules.Replace)
}

// Attributed puts a person's name before their words. Each further line is a quote, so that none passes for other words of
// the bot.
func Attributed(name, text, lang string) string {
	return Literal(name) + Say(Colon, lang) + strings.ReplaceAll(Literal(text), "\n", "\n> ")
}
