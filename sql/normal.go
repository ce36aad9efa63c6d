package sql

import (
	"crypto/sha256"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"ebb/memory"
	"ebb/sessions"
)

// fold makes texts comparable that differ in case or in the width of their characters only.
func fold(s string) string { return cases.Fold().String(norm.NFKC.String(s)) }

// normal is what two contents have in common when they say the same in the same words: case, width, white space and
// the punctuation of sentences do not count. Marks that carry meaning stay: 1.5 is not 15, C# is not C, -3 is not 3.
func normal(content string) string {
	runes := []rune(fold(content))
	var b strings.Builder
	space := false
	for i, r := range runes {
		if unicode.IsSpace(r) || sentenceMark(runes, i) {
			space = true
			continue
		}
		// Between Latin words white space counts, if only as one blank; beside a Chinese character it never does.
		if space && b.Len() > 0 && r < unicode.MaxLatin1 && lastRune(b.String()) < unicode.MaxLatin1 {
			b.WriteByte(' ')
		}
		space = false
		b.WriteRune(r)
	}
	return b.String()
}

func lastRune(s string) rune {
	last := rune(0)
	for _, r := range s[max(len(s)-4, 0):] {
		last = r
	}
	return last
}

// sentenceMark tells whether the character at i only divides sentences or quotes.
func sentenceMark(runes []rune, i int) bool {
	r := runes[i]
	if strings.ContainsRune("。、「」『』【】《》〈〉“”‘’…·—", r) {
		return true
	}
	if !strings.ContainsRune(`.,;:!?()[]{}"'`, r) {
		return false
	}
	inside := i > 0 && i+1 < len(runes) && wordly(runes[i-1]) && wordly(runes[i+1])
	return !inside // 12:30, 1,000, v1.2, don't
}

func wordly(r rune) bool { return r < unicode.MaxLatin1 && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// factHash is what makes two drafts of one scope the same fact. A fact about a person is the same only if it was
// learnt in the same session, for who may read it depends on where it was said.
func factHash(source sessions.Key, d memory.Draft) []byte {
	text := normal(d.Content)
	if text == "" { // nothing but punctuation
		text = d.Content
	}
	if d.Scope == memory.ScopeUser {
		text += "\x00" + string(source)
	}
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
