package sessions

import (
	"strings"
	"unicode/utf8"
)

// Body is a text as a request shows it behind the name of its speaker: no line of it can pass for a part of the request.
// A line that looks like the beginning of another message, like a clock line, a quote or a fence is marked as quoted.
func Body(text string) string {
	first, rest, more := strings.Cut(text, "\n")
	if !more {
		return text
	}
	return first + "\n" + Lines(rest)
}

// Lines is [Body] for a text that nothing stands before.
func Lines(text string) string {
	var b strings.Builder
	marked := false
	for line := range strings.Lines(text) {
		if posesAsStructure(line) {
			marked = true
			b.WriteString("> ")
		}
		b.WriteString(line)
	}
	if !marked {
		return text
	}
	return b.String()
}

// maxLabel bounds how much of a line is looked at for the name of a speaker, in bytes: a nick, an id and the marks.
const maxLabel = 4*maxNick + 128

// posesAsStructure reports whether a line begins like a part of a request. It finds more than what requests contain:
// other brackets and colons mislead a model as well.
func posesAsStructure(line string) bool {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "> ") {
		return false // marked already
	}
	if strings.HasPrefix(line, "<<<") || strings.HasSuffix(line, ">>>") {
		return true
	}
	if open, size := utf8.DecodeRuneInString(line); strings.ContainsRune("[［【〔", open) && size > 0 {
		inner := strings.TrimSpace(line[size:])
		if strings.HasPrefix(inner, "引用") || inner != "" && inner[0] >= '0' && inner[0] <= '9' {
			return true
		}
	}
	head := line[:min(len(line), maxLabel)]
	for at, r := range head {
		if !strings.ContainsRune(":：﹕︰꞉∶ː", r) {
			continue
		}
		name := strings.TrimSpace(head[:at])
		last, _ := utf8.DecodeLastRuneInString(name)
		if name != "" && strings.ContainsRune(")）]］】〕﹚❩", last) || isID(name) {
			return true
		}
	}
	return false
}

// isID reports whether a name could be that of a person without a nick: one word with a digit in it.
func isID(name string) bool {
	return name != "" && !strings.ContainsAny(name, " \t/") && strings.ContainsAny(name, "0123456789")
}
