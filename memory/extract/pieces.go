package extract

import (
	"fmt"

	"ebb/memory/text"
	"ebb/sessions"
)

// leastPiece is the smallest piece in tokens.
const leastPiece = 100

// cutFirst replaces a too long next event by pieces, so that its middle is read too. Results of tools are read like
// messages: after the next compaction no view has them.
func (r *flushRun) cutFirst(limit int) { r.replaceFirst(r.flusher.Split(r.queue[0], limit)) }

// cutInTwo reports whether the next event was long enough.
func (r *flushRun) cutInTwo() bool {
	text := r.flusher.Clean(r.queue[0].Content)
	half := r.tokensOf(text)/2 + 1
	if half < leastPiece {
		return false
	}
	texts := r.cutPieces(text, half)
	r.span, r.left = 1, max(1, r.left) // not to be joined again
	r.replaceFirst(withTexts(r.queue[0], texts))
	return len(texts) > 1
}

func (r *flushRun) replaceFirst(cut []sessions.Event) {
	if len(cut) < 2 {
		return
	}
	r.queue = append(cut, r.queue[1:]...)
	if r.span > 0 {
		r.left += len(cut) - 1
	}
}

// withTexts are pieces of an event. The last has its calls.
func withTexts(e sessions.Event, texts []string) (cut []sessions.Event) {
	for i, text := range texts {
		one := e
		if one.Content = text; i < len(texts)-1 {
			one.ToolCalls = nil
		}
		cut = append(cut, one)
	}
	return cut
}

// Transcripts have texts as JSON.
func (r *flushRun) tokensOf(text string) int { return r.flusher.Count(fmt.Sprintf("%q", text)) }

func (r *flushRun) cutPieces(body string, room int) []string {
	tokens, chars := r.tokensOf(body), len([]rune(body))
	if tokens <= room || chars < 2 {
		return []string{body}
	}
	var out []string
	for _, one := range text.Split(body, max(1, min(chars-1, chars*room/tokens))) {
		out = append(out, r.cutPieces(one, room)...)
	}
	return out
}
