package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"ebb/compaction/identify"
	"ebb/sessions"
)

// Above minCoverage of its sections, a reply that begins with an apology is a summary of one.
const minCoverage = 0.3

// sectionCoverage is the share of the requested sections in a text. Without requested ones, a heading or a list is
// enough.
func sectionCoverage(text, request string) float64 {
	want, has := 0, 0
	for l := range strings.Lines(request) {
		if l = strings.TrimSpace(l); strings.HasPrefix(l, "## ") {
			want++
			if strings.Contains("\n"+text, "\n"+l) {
				has++
			}
		}
	}
	if want > 0 {
		return float64(has) / float64(want)
	}
	listed := 0
	for l := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(l, "#"):
			return 1
		case strings.HasPrefix(l, "- "), strings.HasPrefix(l, "* "):
			listed++
		}
	}
	if listed >= 3 {
		return 1
	}
	return 0
}

func hasSections(request string) bool { return strings.Contains("\n"+request, "\n## ") }

// Half of the instructions suffice, or no content below the headings.
func repeatsRequest(text, request string) bool {
	lines, found := 0, 0
	for l := range strings.Lines(request) {
		if l = strings.TrimSpace(l); len(l) < 20 || strings.HasPrefix(l, "#") {
			continue
		}
		lines++
		if strings.Contains(text, l) {
			found++
		}
	}
	return found > 0 && found*2 >= lines || len(splitWords(proseOf(text))) == 0 && len(identify.Find(text)) == 0
}

func proseOf(text string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		if !strings.HasPrefix(l, "#") {
			b.WriteString(l)
		}
	}
	text = b.String()
	b.Reset()
	from := 0
	for _, id := range identify.Find(text) {
		b.WriteString(text[from:id.From] + " ")
		from = id.To
	}
	return b.String() + text[from:]
}

func isErrorPage(text string) bool {
	low := strings.ToLower(text[:min(len(text), 200)])
	for _, p := range []string{"<!doctype", "<html", "<?xml", "http/1.", "http/2 ", "502 bad gateway", "503 service", "504 gateway", "upstream connect error"} {
		if strings.HasPrefix(low, p) {
			return true
		}
	}
	var page map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &page) != nil {
		return strings.HasPrefix(low, `{"error`)
	}
	for _, k := range []string{"error", "errors", "code", "error_code", "error_msg", "errcode", "errmsg"} {
		if _, ok := page[k]; ok {
			return true
		}
	}
	return false
}

func (c ReplyContext) compareSource(text string) error {
	if len(c.Events) == 0 {
		return nil
	}
	var b strings.Builder
	for _, e := range c.Events {
		if e.Role != sessions.RoleTool { // results are often in programming languages
			b.WriteString("\n" + e.Content)
		}
	}
	said := b.String()
	source := c.Previous + said
	if c.Language != "" && languageShare(text, c.Language) < 1-maxForeign && languageShare(source, c.Language) > 0.5 { // expensive
		return fmt.Errorf("the summary is not in the language of the conversation (%s)", c.Language)
	}
	// Keeping the previous summary is no copying.
	if c.Source > minCopied && c.Got*10 > c.Source*7 && copiedShare(text, said) > maxCopied {
		return errors.New("the summary copies the conversation")
	}
	return nil
}

const (
	maxForeign = 0.7 // share of prose in other languages
	minProse   = 20  // words needed to detect a language
	maxCopied  = 0.6 // share of phrases that the source has, at about equal length
	minCopied  = 256 // tokens of a source that can get shorter
	copyWords  = 8   // words of such a phrase
)

// languageShare is the share of zh or en in a text's prose; 1 if there is too little.
func languageShare(text, lang string) float64 {
	var han, latin, other float64
	for _, w := range strings.FieldsFunc(proseOf(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
		letters := 0
		for _, r := range w {
			switch {
			case unicode.Is(unicode.Han, r):
				han += 0.6 // a word has one or two characters
			case unicode.Is(unicode.Latin, r):
				letters++
			default:
				other += 0.4
			}
		}
		if letters > 1 {
			latin++
		}
	}
	all := han + latin + other
	switch {
	case all < minProse:
		return 1
	case lang == "en":
		return latin / all
	}
	return han / all
}

func copiedShare(text, source string) float64 {
	has := map[string]bool{}
	said := splitWords(strings.ToLower(source))
	for i := 0; i+copyWords <= len(said); i++ {
		has[strings.Join(said[i:i+copyWords], " ")] = true
	}
	n, of := 0, 0
	phrases := splitWords(strings.ToLower(text))
	for i := 0; i+copyWords <= len(phrases); i++ {
		of++
		if has[strings.Join(phrases[i:i+copyWords], " ")] {
			n++
		}
	}
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
