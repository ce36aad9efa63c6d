package tokens

import (
	"fmt"
	"unicode/utf8"
)

// shorten returns what show makes of a text, and its tokens: of the whole text, or of its two ends where that takes more
// than limit tokens.
func (c *Counter) Shorten(text string, limit int, show func(string) string) (shown string, tokens int) {
	shown = show(text)
	tokens = c.Count(shown)
	// Bytes per token differ by language and by place in a text: what is left is counted again until it fits.
	for n := len(text); tokens > limit && n > 0; {
		n = int(float64(n) * min(0.9, 0.95*float64(max(0, limit))/float64(tokens)))
		shown = show(HeadTail(text, n))
		tokens = c.Count(shown)
	}
	return shown, tokens
}

// HeadTail shortens a text to about limit bytes: its beginning, a note of what is missing, its end. It never cuts
// inside a character.
func HeadTail(text string, limit int) string { return Shorten(text, limit, "") }

// Shorten is HeadTail with the call that reads the whole text, where there is one, in the note.
func Shorten(text string, limit int, call string) string {
	if len(text) <= limit {
		return text
	}
	if call != "" {
		call = "; whole: " + call
	}
	head, tail := limit*2/3, len(text)-limit/3
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s …[%d bytes left out%s]… %s", text[:head], tail-head, call, text[tail:])
}
