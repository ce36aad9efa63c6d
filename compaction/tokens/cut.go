package tokens

import (
	"fmt"
	"unicode/utf8"
)

// Shorten renders a text within limit tokens by its two ends, and returns its tokens.
func (c *Counter) Shorten(text string, limit int, show func(string) string) (shown string, tokens int) {
	shown = show(text)
	tokens = c.Count(shown)
	// Bytes per token vary within a text, so the rest is counted until it fits.
	for n := len(text); tokens > limit && n > 0; {
		n = int(float64(n) * min(0.9, 0.95*float64(max(0, limit))/float64(tokens)))
		shown = show(HeadTail(text, n))
		tokens = c.Count(shown)
	}
	return shown, tokens
}

// HeadTail shortens a text to about limit bytes: its beginning, a note, its end. It splits no character.
func HeadTail(text string, limit int) string { return Shorten(text, limit, "") }

// Shorten is [HeadTail] with the call that reads the whole text in the note.
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
