package redact

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"ebb/sessions/rules"
)

// Mark replaces a credential.
const Mark = "[已隐去]"

//go:embed rules.tsv
var ruleLines string

var (
	ruleFile = rules.Read(ruleLines)

	// A private key stands between two lines. One that was cut has no last line, only more of its letters.
	keyBeginRE = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY[A-Z ]*-*`)
	keyEndRE   = regexp.MustCompile(`-----END [A-Z ]*PRIVATE KEY[A-Z ]*-*`)
	keyBodyRE  = regexp.MustCompile(`^[A-Za-z0-9+/=\s\\]*`)

	bearerRE = ruleFile.Regexp("bearer")()
	// Three searches for the names that occur are faster than one for all.
	namedRE    = ruleFile.Regexp("named")()
	namedHanRE = ruleFile.Regexp("namedHan")()
	keyRE      = ruleFile.Regexp("key")()
	bareRE     = ruleFile.Regexp("bare")()
	bareHanRE  = ruleFile.Regexp("bareHan")()
	accountRE  = ruleFile.Regexp("account")()
	aboutRE    = ruleFile.Regexp("about")()
	measureRE  = ruleFile.Regexp("measure")()
)

// maxPurpose bounds the purpose between a password's name and its joining word, in bytes.
const maxPurpose = 48

var plainWords = strings.Fields(`required optional null none nil true false string text empty blank expired expires expire reset resets changed change
	wrong invalid incorrect unknown tbd todo hidden masked redacted policy policies manager managers vault rotation rotates field fields login logins app ui
	api sdk bug page form length rules rule strength prompt prompts was is are has the and for not must should will can too hash hashes hashed bcrypt argon
	scrypt ldap sso otp totp mfa rsa aes md5 server service team protection protected leak leaked same input check checker generator recovery forgot box via
	wiki bitwarden keepass lastpass onepassword keychain vaultwarden owner ok passkey passkeys webauthn fido fido2 keycloak oauth oauth2 2fa`)

// Hints: a lower-case text without any of them names no password, code or key. Most texts need no search.
var (
	latinNames = []string{"pass", "pwd", "pin", "otp", "code"}
	hanNames   = []string{"密码", "密碼", "口令", "证码", "證碼", "校验码", "动态码", "门禁码", "授权码", "解锁码", "pin码"}
	keyNames   = []string{"secret", "token", "密钥", "令牌"}
	accountees = []string{"root", "admin", "administrator", "sa", "oracle"}
	// latinRE finds whole names, since "pin" and "code" are common.
	latinRE = ruleFile.Regexp("latin")()
)

// Bytes of a name before its hint, and from there on.
const (
	beforeSign = 16
	fromSign   = 16
)

// lowerASCII leaves other letters: in lower case, some become ASCII.
func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

func namesLatin(low string) bool {
	for _, sign := range latinNames {
		for at := 0; ; {
			n := strings.Index(low[at:], sign)
			if n < 0 {
				break
			}
			at += n
			if latinRE.MatchString(low[max(0, at-beforeSign):min(len(low), at+fromSign)]) {
				return true
			}
			at += len(sign)
		}
	}
	return false
}

func namesAccount(low string) bool {
	for before, rest, ok := strings.Cut(low, "/"); ok; before, rest, ok = strings.Cut(rest, "/") {
		before = strings.TrimRightFunc(before, unicode.IsSpace)
		if slices.ContainsFunc(accountees, func(name string) bool { return strings.HasSuffix(before, name) }) {
			return true
		}
	}
	return false
}

// HasSecret reports whether a text contains a credential. Text about credentials, or about counted tokens, does not.
func HasSecret(text string) bool { return len(findSecrets(text)) > 0 }

// Secrets replaces every credential of a text by [Mark].
func Secrets(text string) string {
	// A credential may hide another one behind it. Crafted input must not cost quadratic time: later rounds drop whole
	// lines, then the whole text.
	const whole, lines = 8, 16
	for round := 0; ; round++ {
		found := findSecrets(text)
		switch {
		case len(found) == 0:
			return text
		case round >= lines:
			return Mark
		case round >= whole:
			for i := range found {
				if n := strings.IndexByte(text[found[i][1]:], '\n'); n >= 0 {
					found[i][1] += n
				} else {
					found[i][1] = len(text)
				}
			}
			found = mergeSpans(found)
		}
		var b strings.Builder
		at := 0
		for _, s := range found {
			b.WriteString(text[at:s[0]])
			if !strings.HasSuffix(b.String()[max(0, b.Len()-len(Mark)):], Mark) {
				b.WriteString(Mark)
			}
			at = s[1]
		}
		b.WriteString(text[at:])
		text = b.String()
	}
}

// findSecrets returns byte offsets, in order and without overlap.
func findSecrets(text string) [][2]int { return findKinds(text, signsOf(text)) }

// A scan for hints is faster than a search.
type secretHints struct{ shapes, framed, account, bearer, key, latin, han bool }

var allSigns = secretHints{true, true, true, true, true, true, true}

func signsOf(text string) secretHints {
	if strings.ContainsAny(text, "\u017f\u212a") { // these fold to s and k without case
		return allSigns
	}
	low := lowerASCII(text)
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(low, p) })
	}
	return secretHints{
		shapes: slices.ContainsFunc(shapes, func(r shapeRule) bool { return r.mayMatch(text) }),
		framed: has("authorization") || has("://") && has("@"), account: namesAccount(low), bearer: has("bearer"),
		key: has(keyNames...) || has("key") && has("api", "access"), latin: namesLatin(low), han: has(hanNames...),
	}
}

// findKinds runs only the expressions whose hint the text has: a scan of each costs more than the rest of a message's way.
func findKinds(text string, by secretHints) [][2]int {
	found := findPrivateKeys(text)
	add := func(from, to int) {
		if strings.ContainsFunc(text[from:to], isAlnum) {
			found = append(found, [2]int{from, to})
		}
	}
	for _, rule := range shapes {
		if rule.framed && !by.framed || !rule.framed && !by.shapes {
			continue
		}
		for _, m := range rule.re.FindAllStringSubmatchIndex(text, -1) {
			add(m[len(m)-2], m[len(m)-1])
		}
	}
	if by.account {
		found = append(found, findAccounts(text)...)
	}
	if by.bearer {
		for _, m := range bearerRE.FindAllStringSubmatchIndex(text, -1) {
			if isToken(text[m[2]:m[3]]) {
				add(m[2], m[3])
			}
		}
	}
	if by.key {
		found = append(found, findNamed(keyRE, text)...)
	}
	if by.latin {
		found = append(append(found, findNamed(namedRE, text)...), findBare(bareRE, text)...)
	}
	if by.han {
		found = append(append(found, findNamed(namedHanRE, text)...), findBare(bareHanRE, text)...)
	}
	return mergeSpans(found)
}

// findAccounts accepts letters with digits and signs behind a slash, not paths.
func findAccounts(text string) [][2]int {
	var found [][2]int
	for _, m := range accountRE.FindAllStringSubmatchIndex(text, -1) {
		value, rest := text[m[2]:m[3]], text[m[3]:]
		if len(value) >= 6 && strings.ContainsFunc(value, unicode.IsDigit) && strings.ContainsFunc(value, unicode.IsLetter) && !strings.HasPrefix(rest, "/") {
			found = append(found, [2]int{m[2], m[3]})
		}
	}
	return found
}

func findNamed(re *regexp.Regexp, text string) [][2]int {
	var found [][2]int
	for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
		name, joint := strings.ToLower(text[m[2]:m[3]]), strings.ToLower(text[m[6]:m[7]])
		from, to := valueOf(text, m[8], m[10], m[11])
		if n := strings.IndexByte(text[from:to], '&'); n >= 0 && !isPasswordName(name) {
			to = from + n // next parameter of a URL
		}
		value := text[from:to]
		if m[4] >= 0 && (m[5]-m[4] > maxPurpose || name == "secret" || !isPasswordName(name) || measureRE.MatchString(value)) {
			continue // "the token of the week is …"
		}
		if strings.ContainsFunc(value, isAlnum) && isNamed(name, joint, value, m[12] >= 0) && !isAbout(value, text[to:]) {
			found = append(found, [2]int{from, to})
		}
	}
	return found
}

// A value may be the next name, so the search continues at the value.
func findBare(re *regexp.Regexp, text string) [][2]int {
	var found [][2]int
	for at := 0; ; {
		m := re.FindStringSubmatchIndex(text[at:])
		if m == nil {
			return found
		}
		for i := range m {
			if m[i] >= 0 {
				m[i] += at
			}
		}
		from, to := valueOf(text, m[6], m[8], m[9])
		if isBare(strings.ToLower(text[m[2]:m[3]]), text[from:to], m[4] < m[5], m[10] >= 0 && to == m[9]) && !isAbout(text[from:to], text[to:]) {
			found = append(found, [2]int{from, to})
		}
		at = m[8]
	}
}

// A bare password has four digits or more, or letters mixed with digits or signs. Letters alone count only at the
// end behind a Chinese name and a blank. parted: a blank precedes. goesOn: a word follows, as in "密码 90 天一换" and
// "password policy changes".
func isBare(name, value string, parted, goesOn bool) bool {
	letters, others := countLetters(value)
	digits := strings.ContainsFunc(value, unicode.IsDigit)
	chinese := strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(unicode.Han, r) })
	switch {
	case !parted && (!chinese || !digits):
		return false
	case len(value) < 3 || isPlainWord(value) || letters > 0 && measureRE.MatchString(value):
		return false
	case letters == 0:
		return len(value) >= 4 && !goesOn && strings.IndexFunc(value, func(r rune) bool { return !unicode.IsDigit(r) }) < 0
	case others == 0:
		return chinese && !goesOn && !isCode(name) && strings.ToLower(value) == value
	}
	return digits || !isCode(name) && strings.ContainsAny(value, "!@#$%^&*+=")
}

// isCode accepts names of sent or set codes, not of chosen passwords.
func isCode(name string) bool {
	return strings.HasPrefix(name, "pin") || name == "otp" || strings.HasSuffix(name, "code") && name != "passcode" ||
		slices.Contains([]string{"验证码", "校验码", "动态码", "驗證碼", "门禁码", "授权码", "解锁码"}, name)
}

func isPlainWord(value string) bool { return slices.Contains(plainWords, strings.ToLower(value)) }

// isAbout accepts texts such as "密码是 bcrypt 加密的".
func isAbout(value, rest string) bool {
	_, others := countLetters(value)
	return others == 0 && aboutRE.MatchString(rest)
}

// findPrivateKeys searches each end once: a search from every beginning would be quadratic.
func findPrivateKeys(text string) [][2]int {
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

// valueOf narrows a run of ASCII to its value: up to the closing quote, or without surrounding punctuation.
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

// counted: a Chinese word follows the value.
func isNamed(name, joint, value string, counted bool) bool {
	switch {
	case isCode(name):
		letters, _ := countLetters(value)
		return len(value) >= 4 && strings.ContainsFunc(value, unicode.IsDigit) && (letters == 0 && !counted || letters > 0 && !measureRE.MatchString(value))
	case isPasswordName(name):
		return isPassword(joint, value, counted)
	}
	return isToken(value)
}

// isPasswordName accepts names of chosen passwords, not of generated tokens.
func isPasswordName(name string) bool {
	switch name {
	case "password", "passwd", "passphrase", "passcode", "pwd", "密码", "密碼", "口令", "secret":
		return true
	}
	return isCode(name) || strings.HasSuffix(name, "pass")
}

func mergeSpans(spans [][2]int) [][2]int {
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

// isPassword accepts no quantity and, in a sentence, no short or plain word ("the password is required").
func isPassword(joint, value string, counted bool) bool {
	letters, others := countLetters(value)
	if len(value) < 2 || letters == 0 && counted || isPlainWord(value) {
		return false
	}
	if strings.ContainsAny(joint, ":：=") {
		return true
	}
	plain := others == 0 && strings.ToLower(value[1:]) == value[1:]
	if joint == "is" || joint == "was" || joint == "'s" || joint == "’s" {
		return len(value) >= 4 && !plain
	}
	return len(value) >= 3
}

// Generated values are long, and mixed or without words.
func isToken(value string) bool {
	letters, others := countLetters(value)
	return letters > 0 && (len(value) >= 8 && others > 0 && strings.ContainsFunc(value, unicode.IsDigit) || len(value) >= 20)
}

func countLetters(value string) (letters, others int) {
	for _, r := range value {
		if unicode.IsLetter(r) {
			letters++
		} else {
			others++
		}
	}
	return letters, others
}
