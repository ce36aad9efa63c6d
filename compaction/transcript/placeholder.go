package transcript

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

var (
	// dataRE finds data URIs, and the Markdown image around one with its caption. Encoded text may be broken into lines of
	// at least 60 characters, also by the escapes of a JSON string.
	dataRE = regexp.MustCompile(`(?i)(!\[[^\]\n]{0,200}\]\()?data:([a-z0-9.+-]+)/([a-z0-9.+-]+)(?:;[a-z0-9=._-]+)*;base64,` +
		`(?:[a-z0-9+/_%-]{60,}(?:\r?\n|\\r\\n|\\n))*[a-z0-9+/_%-]*={0,2}(?:\))?`)
	// runRE finds encoded bytes that nothing announces.
	runRE = regexp.MustCompile(`(?:[A-Za-z0-9+/_-]{60,76}(?:\r?\n|\\r\\n|\\n)){3,}[A-Za-z0-9+/_-]*={0,2}|[A-Za-z0-9+/_-]{200,}={0,2}`)
)

// breadcrumbs puts a short mark in the place of every picture and file whose bytes stand in a text: a summary is of
// what was said, and encoded bytes would crowd that out.
func breadcrumbs(text string) string {
	if !hasRun(text, minRun) && !foldContains(text, ";base64,") {
		return text // a look takes much less time than a search
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
			tail = ")" // it belongs to the text
		}
		return fmt.Sprintf("[%s: %s]%s", kind, name, tail)
	})
	return runRE.ReplaceAllStringFunc(text, func(run string) string {
		if !encoded(run) {
			return run
		}
		return fmt.Sprintf("[data: %d characters]", len(run))
	})
}

// minRun is the shortest row of letters that runRE begins with.
const minRun = 60

// hasRun reports whether a text holds a row of so many letters of base64.
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

// foldContains reports whether a text contains what, which is ASCII, in letters of either case.
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

// encoded reports whether a long run looks like bytes in base64: those hold letters of both cases and digits, and no
// class of them is rare. A long path or a row of one letter is no such thing.
func encoded(run string) bool {
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
