package transcript

import (
	"strings"
	"unicode/utf8"

	"ebb/sessions"
)

// leastPiece is the smallest piece in tokens: smaller ones would be more frame than text.
const leastPiece = 100

// Split returns the pieces of an event whose line has more than limit tokens, else the event alone. A piece has at most
// half of it, so that the first shares a text with the question before. Joined, the texts of the pieces are the event's
// clean text; a piece ends with a line or a sentence where it can. Calls follow in a piece of their own.
func (s Writer) Split(e sessions.Event, limit int) []sessions.Event {
	line := s.lineOf(e)
	most, whole := limit-fenceTokens, line.String()
	if len(whole) <= most { // a token has at least one byte
		return []sessions.Event{e}
	}
	size := s.Counter.Count(whole)
	line.Text = ""
	frame := s.Counter.Count(line.String())
	if size <= most || most-frame < leastPiece {
		return []sessions.Event{e}
	}
	most = max(most/2, frame+leastPiece)
	var out []sessions.Event
	text, bytes := s.Cleaner.cleanText(e.Content), len(whole)/size*(most-frame)
	for text != "" {
		n := pieceEnd(text, bytes)
		for {
			line.Text = text[:n]
			tokens := s.Counter.Count(line.String())
			less := pieceEnd(text, int(0.95*float64(n)*float64(most)/float64(tokens)))
			if tokens <= most || less >= n {
				break
			}
			n = less // this part is denser than the whole
		}
		out = append(out, s.piece(e, text[:n]))
		text = text[n:]
	}
	if len(e.ToolCalls) > 0 {
		last := s.piece(e, "")
		last.ToolCalls = e.ToolCalls
		out = append(out, last)
	}
	return out
}

func (s Writer) piece(e sessions.Event, text string) sessions.Event {
	e.Content, e.ToolCalls, e.Tokens = text, nil, s.Counter.Count(text)
	if s.Cleaner != nil {
		s.Cleaner[text] = text // a part of a clean text may look like something else
	}
	return e
}

// pieceEnd is the end of a line, a sentence, a word or a character in the second half of n bytes: at least of one.
func pieceEnd(text string, n int) int {
	if n >= len(text) {
		return len(text)
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	if n <= 0 {
		_, n = utf8.DecodeRuneInString(text)
		return n
	}
	for _, marks := range []string{"\n", "。！？；!?;", " "} {
		if at := strings.LastIndexAny(text[:n], marks); at >= n/2 {
			_, size := utf8.DecodeRuneInString(text[at:])
			return at + size
		}
	}
	return n
}
