package classify

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"ebb/memory/text"
	"ebb/sessions/redact"
)

// HasCredential reports a credential, in any character width, or the remains of a redacted one. The mark alone is
// none: "logs show [redacted]".
func HasCredential(body string) bool {
	plain := norm.NFKC.String(text.DropInvisible(body))
	return redact.HasSecret(body) || redact.HasSecret(plain) || shellRE().MatchString(plain) || loginRE().MatchString(plain)
}

var (
	markRE = ruleFile.Regexp("mark")
	// shellRE finds the name or account of a credential with the mark behind it.
	shellRE = ruleFile.Regexp("shell")
	// loginRE finds the same in a link.
	loginRE  = ruleFile.Regexp("login")
	clauseRE = text.LazyRegexp(`[^，,;；。！!？?、]*[，,;；。！!？?、]|[^，,;；。！!？?、]+`)
)

// leastRest words make a statement without a figure.
const leastRest = 5

// DropRedacted removes the remains of credentials, and clauses that hold nothing else.
func DropRedacted(body string) string {
	if !markRE().MatchString(body) {
		return body
	}
	var b strings.Builder
	for _, clause := range clauseRE().FindAllString(body, -1) {
		rest := shellRE().ReplaceAllString(loginRE().ReplaceAllString(clause, "://"), "")
		thin := len(text.Tokenize(rest)) < leastRest && !text.HasDigit(rest)
		alone := len(text.Tokenize(markRE().ReplaceAllString(clause, ""))) == 0
		if rest != clause && thin || alone && markRE().MatchString(clause) {
			continue
		}
		b.WriteString(rest)
	}
	return strings.TrimRight(text.Clean(b.String()), "，,;；、 ")
}
