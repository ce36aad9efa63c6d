package sessions

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Redacted stands in the place of a credential.
const Redacted = "[已隐去]"

var (
	// keyREs find credentials by their own shape: a group, where there is one, is the credential.
	keyREs = []*regexp.Regexp{
		regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{16,}`),
		regexp.MustCompile(`\bAKIA[0-9A-Z]{16}\b`),
		regexp.MustCompile(`\bLTAI[0-9A-Za-z]{12,}`),
		regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{30,}`),
		regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-)[A-Za-z0-9_-]{16,}`),
		regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`),
	}
	// framedREs find them by what is sent around them.
	framedREs = []*regexp.Regexp{
		regexp.MustCompile(`(?i)\bauthorization["']?\s*[:=]\s*["']?basic\s+([A-Za-z0-9+/]{8,}=*)`),
		regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://[^\s/:@\p{Han}]*:([^\s/@]+)@`),
	}
	// A private key stands between two lines. One that was cut has no last line, only more of its letters.
	keyBeginRE = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY[A-Z ]*-*`)
	keyEndRE   = regexp.MustCompile(`-----END [A-Z ]*PRIVATE KEY[A-Z ]*-*`)
	keyBodyRE  = regexp.MustCompile(`^[A-Za-z0-9+/=\s\\]*`)
	// bearerRE finds what is sent as a token.
	bearerRE = regexp.MustCompile(`(?i)\bbearer\s+([A-Za-z0-9._~+/-]{8,}=*)`)
	// namedRE finds what a text calls a credential: the name, what joins, the quote, and the value in ASCII with what
	// follows it.
	namedRE = regexp.MustCompile("(?i)(password|passwd|passphrase|pwd|密码|口令|secret|api[_ -]?key|access[_ -]?key|token|密钥|令牌)" +
		"[\\\\\"'`”」]*\\s*(is|was|是|为|改为|改成|设为|设成|[:：=])\\s*([\\\\\"'`“「]*)([!-~]+)(\\s*\\p{Han})?")
)

// secretNames: without any of them in a text, in lower case, nothing is called a credential there.
var secretNames = []string{"bearer", "pass", "pwd", "密码", "口令", "secret", "key", "token", "密钥", "令牌"}

// HoldsSecret reports whether a text tells a credential, as people paste them into chats. To speak about credentials,
// or about tokens that are counted, is no secret.
func HoldsSecret(text string) bool { return len(secrets(text)) > 0 }

// Redact puts [Redacted] in the place of every credential that [HoldsSecret] finds, and keeps what stands around it.
func Redact(text string) string {
	// A credential may hide another behind it. Every round takes letters or digits away, so there is a last one.
	for {
		found := secrets(text)
		if len(found) == 0 {
			return text
		}
		var b strings.Builder
		at := 0
		for _, s := range found {
			b.WriteString(text[at:s[0]])
			if !strings.HasSuffix(b.String()[max(0, b.Len()-len(Redacted)):], Redacted) {
				b.WriteString(Redacted)
			}
			at = s[1]
		}
		b.WriteString(text[at:])
		text = b.String()
	}
}

// secrets lists where credentials stand in a text, as pairs of byte offsets: in order, without overlap.
func secrets(text string) [][2]int {
	found := privateKeys(text)
	add := func(from, to int) {
		if strings.ContainsFunc(text[from:to], isAlnum) {
			found = append(found, [2]int{from, to})
		}
	}
	low := strings.ToLower(text)
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(low, p) })
	}
	keys := keyREs
	if has("://") || has("authorization") {
		keys = append(slices.Clip(keys), framedREs...)
	}
	for _, re := range keys {
		for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
			add(m[len(m)-2], m[len(m)-1])
		}
	}
	if !has(secretNames...) {
		return joined(found)
	}
	for _, m := range bearerRE.FindAllStringSubmatchIndex(text, -1) {
		if isToken(text[m[2]:m[3]]) {
			add(m[2], m[3])
		}
	}
	for _, m := range namedRE.FindAllStringSubmatchIndex(text, -1) {
		name, joint := strings.ToLower(text[m[2]:m[3]]), strings.ToLower(text[m[4]:m[5]])
		from, to := valueOf(text, m[6], m[8], m[9])
		if n := strings.IndexByte(text[from:to], '&'); n >= 0 && !isPasswordName(name) {
			to = from + n // the next parameter of a URL
		}
		if isNamed(name, joint, text[from:to], m[10] >= 0) {
			add(from, to)
		}
	}
	return joined(found)
}

// privateKeys lists where private keys stand. Each end is looked for once: a search from every beginning would take
// quadratic time.
func privateKeys(text string) [][2]int {
	begins := keyBeginRE.FindAllStringIndex(text, -1)
	if len(begins) == 0 {
		return nil
	}
	var found [][2]int
	ends, at := keyEndRE.FindAllStringIndex(text, -1), 0
	for _, b := range begins {
		if b[0] < at {
			continue
		}
		for len(ends) > 0 && ends[0][0] < b[1] {
			ends = ends[1:]
		}
		if len(ends) > 0 {
			at = ends[0][1]
		} else {
			at = b[1] + len(keyBodyRE.FindString(text[b[1]:]))
		}
		found = append(found, [2]int{b[0], at})
	}
	return found
}

// valueOf narrows a run of ASCII to the value in it: up to the quote that was opened before it, or without the
// punctuation around it.
func valueOf(text string, quote, from, to int) (start, end int) {
	if q := strings.IndexAny(text[quote:from], "\"'`"); q >= 0 {
		if n := strings.IndexByte(text[from:to], text[quote+q]); n >= 0 {
			to = from + n
		}
	}
	const around = "\\\"'`,.;:!?()[]{}<>"
	for from < to && strings.IndexByte(around, text[from]) >= 0 {
		from++
	}
	for from < to && strings.IndexByte(around, text[to-1]) >= 0 {
		to--
	}
	return from, to
}

// isNamed reports whether a value is the credential that its name says; counted: a Chinese word follows it.
func isNamed(name, joint, value string, counted bool) bool {
	if isPasswordName(name) {
		return isPassword(joint, value, counted)
	}
	return isToken(value)
}

// isPasswordName reports whether a name is of what people choose, rather than of what a machine made.
func isPasswordName(name string) bool {
	switch name {
	case "password", "passwd", "passphrase", "pwd", "密码", "口令", "secret":
		return true
	}
	return false
}

// joined sorts spans and makes one of those that overlap.
func joined(spans [][2]int) [][2]int {
	slices.SortFunc(spans, func(a, b [2]int) int {
		if a[0] != b[0] {
			return a[0] - b[0]
		}
		return a[1] - b[1]
	})
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s[0] < out[n-1][1] {
			out[n-1][1] = max(out[n-1][1], s[1])
			continue
		}
		out = append(out, s)
	}
	return out
}

func isAlnum(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// isPassword reports whether a value after a password's name is one: whatever is not a quantity, nor, in a sentence, a
// few letters or a plain English word ("the password is required").
func isPassword(joint, value string, counted bool) bool {
	letters, others := shape(value)
	if len(value) < 2 || letters == 0 && counted {
		return false
	}
	if strings.ContainsAny(joint, ":：=") {
		return true
	}
	plain := others == 0 && strings.ToLower(value[1:]) == value[1:]
	return len(value) >= 4 && (!plain || joint != "is" && joint != "was")
}

// isToken reports whether a value is a string that a machine made: long, and mixed or without words.
func isToken(value string) bool {
	letters, others := shape(value)
	return letters > 0 && (len(value) >= 8 && others > 0 && strings.ContainsFunc(value, unicode.IsDigit) || len(value) >= 20)
}

// shape counts the letters of an ASCII text and what else is in it.
func shape(value string) (letters, others int) {
	for _, r := range value {
		if unicode.IsLetter(r) {
			letters++
		} else {
			others++
		}
	}
	return letters, others
}
