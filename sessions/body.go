package sessions

import (
	"strings"
	"unicode/utf8"
)

// Body is a text for a request, behind the name of its speaker. It quotes lines that imitate structure: another
// message, a clock line, a quote, a fence.
func Body(text string) string {
	first, rest, more := strings.Cut(text, "\n")
	if !more {
		return text
	}
	return first + "\n" + Lines(rest)
}

// Lines is [Body] for a text without a speaker before it.
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

// maxLabel is in bytes.
const maxLabel = 4*maxNick + 128

// posesAsStructure is broader than real requests, since other brackets and colons mislead a model too.
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

// isID accepts one word with a digit.
func isID(name string) bool {
	return name != "" && !strings.ContainsAny(name, " \t/") && strings.ContainsAny(name, "0123456789")
}
