package classify

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"ebb/memory/text"
	"ebb/sessions/redact"
)

// HasCredential reports whether a text states a credential in any character width, or the remains of a redacted one. A
// mention of the mark is not a secret: "logs show [redacted]".
func HasCredential(body string) bool {
	plain := norm.NFKC.String(text.DropInvisible(body))
	return redact.HasSecret(body) || redact.HasSecret(plain) || shellRE().MatchString(plain) || loginRE().MatchString(plain)
}

const (
	markOf  = `[\[【(<［（＜]\s*(?:已隐去|redacted)\s*[\]】)>］）＞]["'”’」` + "`" + `\\]*`
	labelOf = `(?:密[码碼钥]|口令|令牌|[验驗][证證][码碼]|(?:校验|动态|门禁|授权|解锁|pin)码|凭[证据]|` +
		`\b(?:[a-z0-9]+[_-])*(?:passw(?:or)?d|passphrase|passcode|pass|pwd|pin|otp|code|secret|(?:api|access)?[ -]?key|token|bearer|basic|authorization|credential)s?\b)`
	joinOf = `["'”’」` + "`" + `\\]*(?:\s+(?:for|of|on|to)\s[\w. -]{1,40}?)?[\s:：=＝]*(?:(?:is|was|now|就?是|为|叫|都|默认|(?:改|换|设|重置)(?:为|成|到))[\s:：=＝]*){0,3}["'“‘「` + "`" + `\\]*`
)

var (
	markRE = text.LazyRegexp(`(?i)` + markOf)
	// shellRE finds the remains of a credential: its name, or the account, and the mark in its place.
	shellRE = text.LazyRegexp(`(?i)(?:(?:` + labelOf + joinOf + `)+|\b(?:root|admin|administrator|sa|oracle)\s?/\s?)` + markOf)
	// loginRE finds it in a link.
	loginRE  = text.LazyRegexp(`(?i)://[^\s/:@]*:` + markOf + `@`)
	clauseRE = text.LazyRegexp(`[^，,;；。！!？?、]*[，,;；。！!？?、]|[^，,;；。！!？?、]+`)
)

// leastRest is the number of words or Chinese characters that make a statement without a figure.
const leastRest = 5

// DropRedacted returns a text without the remains of credentials, and without clauses that hold nothing else. Text next
// to a credential is kept, such as the place and the owner of a database.
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
