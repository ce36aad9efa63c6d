package render

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"ebb/bot/wording"
)

// Words are those of a language.
type Words struct {
	Lang string
	all  map[string]string
}

// T returns a text with its arguments. A key without a text is returned itself.
func (w Words) T(key string, args ...any) string {
	text, ok := w.all[key]
	if !ok {
		return key
	}
	if len(args) > 0 {
		return wording.Count(text, args...)
	}
	return text
}

// codePart is a part of a code: words, with a number before or after them as in "12 events" and "saved 3".
var codePart = regexp.MustCompile(`^([0-9]+ )?(.*?)( [0-9][0-9-]*)?$`)

// Code returns the words for a value in a table, as in "saved 3, known 1". kind is the part of the keys before the
// value; the outcome of an action may be a key itself. A part without words stays.
func (w Words) Code(kind, code string) string {
	parts := strings.Split(code, ", ")
	for i, part := range parts {
		m := codePart.FindStringSubmatch(part)
		if text := cmp.Or(w.all[kind+"."+m[2]], w.all[m[2]]); text != "" {
			parts[i] = m[1] + wording.Form(text, m[1]) + m[3]
		}
	}
	return strings.Join(parts, w.T("list.comma"))
}

// CodeView has the code as filters and the API know it.
type CodeView struct{ Code, Text string }

// Reason returns the words for the reason that begins a failed compaction's error. The rest is a provider's text.
func (w Words) Reason(text string) string {
	for end := len(text); end > 0; end = strings.LastIndex(text[:end], ": ") {
		if reason := w.all["reason."+text[:end]]; reason != "" {
			return reason
		}
	}
	return text
}

// Failure returns the words for the error of a compaction, and the error as the technical detail. A masked error has none.
func (w Words) Failure(text string) CodeView {
	switch reason := w.Reason(text); {
	case strings.HasPrefix(text, masked):
		return CodeView{Text: text}
	case reason == text:
		return CodeView{text, w.T("reason.unnamed")}
	default:
		return CodeView{text, reason}
	}
}

// Speaker returns the source of a hit, as in "said by u-1「Li」", for people.
func (w Words) Speaker(source string) string {
	if text := cmp.Or(w.all["source."+source], w.all["role."+source]); text != "" {
		return text
	}
	return strings.Replace(strings.TrimPrefix(source, "said by "), ", a claim about 说的是 ", w.T("source.about"), 1)
}

// relative returns the distance of a time from now in its largest unit, as in "in 3 hours" and "2 days ago".
func (w Words) relative(at, now time.Time) string {
	d, key := at.Sub(now), "relative.in_"
	if d < 0 {
		d, key = -d, "relative.ago_"
	}
	units := []struct {
		name string
		size time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}}
	for _, u := range units {
		if n := int((d + u.size/2) / u.size); n >= 2 || n == 1 && d >= u.size {
			return w.T(key+u.name, n)
		}
	}
	return w.T("relative.now")
}

// masked begins each masked text.
const masked = "•••"

// Mask replaces a text by its length.
func Mask(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(masked+" (%d)", utf8.RuneCountInString(text))
}
