package memory

import (
	"regexp"
	"strings"
	"unicode"
)

// neverStored is why a credential is refused.
const neverStored = "looks like a credential, which is never stored"

var (
	// keyRE finds credentials by their own shape.
	keyRE = regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{16,}|\bAKIA[0-9A-Z]{16}\b|-----BEGIN [A-Z ]*PRIVATE KEY`)
	// namedRE finds what a text calls a credential: the name, what joins, and the value in ASCII with what follows it.
	namedRE = regexp.MustCompile("(?i)(password|passwd|passphrase|pwd|密码|口令|secret|api[_ -]?key|access[_ -]?key|token|密钥|令牌)" +
		"[\"'`”」]*\\s*(is|was|是|为|改为|改成|设为|设成|[:：=])\\s*[\"'`“「]*([!-~]+)(\\s*\\p{Han})?")
)

// holdsSecret reports whether a text tells a credential, as people paste them into chats. To speak about credentials,
// or about tokens that are counted, is no secret.
func holdsSecret(text string) bool {
	if keyRE.MatchString(text) {
		return true
	}
	for _, m := range namedRE.FindAllStringSubmatch(text, -1) {
		name, joint, value, counted := strings.ToLower(m[1]), strings.ToLower(m[2]), strings.Trim(m[3], "\"'`,.;:!?()[]{}<>"), m[4] != ""
		switch name {
		case "password", "passwd", "passphrase", "pwd", "密码", "口令", "secret":
			if isPassword(joint, value, counted) {
				return true
			}
		default:
			if isToken(value) {
				return true
			}
		}
	}
	return false
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
