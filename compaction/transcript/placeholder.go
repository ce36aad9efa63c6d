package transcript

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

var (
	// dataRE matches data URIs, and the Markdown image around one. Encoded text may be wrapped at 60 characters or
	// more, also in a JSON string.
	dataRE = regexp.MustCompile(`(?i)(!\[[^\]\n]{0,200}\]\()?data:([a-z0-9.+-]+)/([a-z0-9.+-]+)(?:;[a-z0-9=._-]+)*;base64,` +
		`(?:[a-z0-9+/_%-]{60,}(?:\r?\n|\\r\\n|\\n))*[a-z0-9+/_%-]*={0,2}(?:\))?`)
	runRE = regexp.MustCompile(`(?:[A-Za-z0-9+/_-]{60,76}(?:\r?\n|\\r\\n|\\n)){3,}[A-Za-z0-9+/_-]*={0,2}|[A-Za-z0-9+/_-]{200,}={0,2}`)
)

// Encoded bytes would crowd out the words.
func replaceEncoded(text string) string {
	if !hasRun(text, minRun) && !foldContains(text, ";base64,") {
		return text // the scan is much faster than the expressions
	}
	text = dataRE.ReplaceAllStringFunc(text, func(uri string) string {
		m := dataRE.FindStringSubmatch(uri)
		kind, tail := "file", ""
		if strings.EqualFold(m[2], "image") {
			kind = "image"
		}
		name := strings.ToLower(m[3])
		if caption := strings.TrimSuffix(strings.TrimPrefix(m[1], "!["), "]("); caption != "" {
			name = caption
		}
		if m[1] == "" && strings.HasSuffix(uri, ")") {
			tail = ")" // the bracket belongs to the text
		}
		return fmt.Sprintf("[%s: %s]%s", kind, name, tail)
	})
	return runRE.ReplaceAllStringFunc(text, func(run string) string {
		if !isEncoded(run) {
			return run
		}
		return fmt.Sprintf("[data: %d characters]", len(run))
	})
}

// minRun is the shortest match of runRE's first part.
const minRun = 60

// hasRun reports a run of base64 characters of the given length.
func hasRun(text string, length int) bool {
	n := 0
	for i := range len(text) {
		b := text[i]
		if 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '/' <= b && b <= '9' || b == '+' || b == '-' || b == '_' {
			if n++; n >= length {
				return true
			}
		} else {
			n = 0
		}
	}
	return false
}

// foldContains ignores the case of an ASCII string.
func foldContains(text, what string) bool {
	for at := strings.IndexByte(text, what[0]); at >= 0 && at+len(what) <= len(text); {
		if strings.EqualFold(text[at:at+len(what)], what) {
			return true
		}
		next := strings.IndexByte(text[at+1:], what[0])
		if next < 0 {
			return false
		}
		at += 1 + next
	}
	return false
}

// isEncoded reports letters of both cases and digits, none of them rare, unlike long paths and repeated letters.
func isEncoded(run string) bool {
	var upper, lower, digit int
	for _, r := range run {
		switch {
		case unicode.IsUpper(r):
			upper++
		case unicode.IsLower(r):
			lower++
		case unicode.IsDigit(r):
			digit++
		}
	}
	return min(upper, lower)*10 > len(run) && digit*40 > len(run)
}
