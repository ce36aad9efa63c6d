package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"ebb/bot/wording"
	"ebb/sessions"
)

// shownHead and shownTail bound the arguments in a notice, in characters.
const shownHead, shownTail = 700, 300

// Notice asks the members for a decision: who asked for what, with which arguments, until when, and by which words. asker is the nick of the
// last asker; now is the storage's time.
func (d *Desk) Notice(calls []sessions.Approval, asker, lang string, now time.Time) string {
	parts := make([]string, len(calls))
	for i, a := range calls {
		until := a.ExpiresAt
		if until.IsZero() {
			until = now.Add(a.Wait)
		}
		parts[i] = wording.Say(wording.ApprovalAsk, lang, a.ID, Name(asker, lang), a.Tool, Arguments(a, lang), a.ID, a.ID, wording.Moment(until.In(d.Location).Truncate(time.Second)))
	}
	return strings.Join(parts, "\n\n")
}

// Arguments shows the arguments of a call in a block of code. The middle of longer ones is cut, with their size and hash: both ends may do
// harm.
func Arguments(a sessions.Approval, lang string) string {
	text := []rune(visible(compacted(a.Arguments)))
	note := ""
	if len(text) > shownHead+shownTail {
		text = slices.Concat(text[:shownHead], []rune("\n…\n"), text[len(text)-shownTail:])
		note = "\n" + wording.Say(wording.ApprovalCut, lang, wording.Thousands(len(a.Arguments)), a.ArgumentsHash())
	}
	return "```\n" + string(text) + "\n```" + note
}

// compacted is JSON without blanks between its parts. Other text stays as it is.
func compacted(text string) string {
	var out bytes.Buffer
	if json.Compact(&out, []byte(text)) != nil {
		return text
	}
	return out.String()
}

// visible replaces characters that end a block of code, mention people, or are not seen as what they are: they could make a harmful call look
// harmless. JSON with these escapes means the same.
func visible(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '@', r == '<', r == '>':
			out.WriteRune(wide[r])
		case r == '`', unicode.Is(unicode.Cf, r), unicode.IsControl(r), r == '\u2028', r == '\u2029', unicode.Is(unicode.Co, r), strings.ContainsRune(blanks, r):
			if r > 0xffff {
				fmt.Fprintf(&out, `\U%08x`, r)
			} else {
				fmt.Fprintf(&out, `\u%04x`, r)
			}
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// wide are forms of marks that are no marks. JSON has them in texts alone.
var wide = map[rune]rune{'@': '＠', '<': '＜', '>': '＞'}

// blanks look like nothing, and are no control characters.
const blanks = "\u115f\u1160\u3164\uffa0\u00a0\u2800"
