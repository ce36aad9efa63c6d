package show

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of one page, in bytes.
const (
	maxPage   = 6000
	leastPage = 200
	pageFrame = 200 // for the line that names the page and the next call
)

// roomOf is the size of a page's text; a room of 0 has no own bound.
func roomOf(room int) int {
	if room <= 0 || room > maxPage {
		room = maxPage
	}
	return max(leastPage, room-pageFrame)
}

// Page returns one page of a text, from 1, at most room bytes. Unless it is the only one, a first line names it and
// the call for the next. Without these lines, the pages are the text.
func Page(text string, page, room int, call func(page int) string) string {
	parts := splitPages(text, roomOf(room))
	switch page = max(1, page); {
	case page > len(parts):
		return fmt.Sprintf("there is no page %d; the last is page %d: %s", page, len(parts), call(len(parts)))
	case len(parts) == 1:
		return text
	case page == len(parts):
		return fmt.Sprintf("page %d of %d, the last\n%s", page, len(parts), parts[page-1])
	}
	return fmt.Sprintf("page %d of %d; next: %s\n%s", page, len(parts), call(page+1), parts[page-1])
}

// splitPages cuts at a near line break, and never inside a character.
func splitPages(text string, room int) []string {
	var out []string
	for len(text) > room {
		at := room
		for at > 0 && !utf8.RuneStart(text[at]) {
			at--
		}
		if br := strings.LastIndexByte(text[:at], '\n') + 1; br > room/2 {
			at = br
		}
		out, text = append(out, text[:at]), text[at:]
	}
	return append(out, text)
}
