package summarize

import (
	"strings"

	"ebb/compaction/tokens"
	"ebb/sessions"
)

// WriteNote is Summarize without a model: a gap note replaces the events. Too many notes are joined into one with the
// oldest names.
func (e *Engine) WriteNote(t Task) Draft {
	note := GapNote(t.Events, e.Summarizer.Location, e.Summarizer.Language, hiddenIdentifiers) + e.noteAttachments(attachmentsOf(t.Events))
	fresh := sessions.NewSummary{StartSeq: t.From + 1, EndSeq: t.Through, Text: note, Tokens: e.Summarizer.Counter.Count(note)}
	d := Draft{Summaries: []sessions.NewSummary{fresh}}
	if len(t.Active) < maxNotes {
		return d
	}
	var texts []string
	var attached []attachmentLine
	for _, a := range t.Active {
		text, lines := splitAttachments(a.Text)
		texts, attached = append(texts, text), joinAttachments(attached, lines)
	}
	joined := tokens.Shorten(strings.Join(texts, "\n"), maxNoteText, sessions.ReadCallOf(t.Active[0].StartSeq, t.From)) + e.noteAttachments(attached)
	old := sessions.NewSummary{StartSeq: t.Active[0].StartSeq, EndSeq: t.From, Text: joined, Tokens: e.Summarizer.Counter.Count(joined), Level: 1}
	d.Summaries = []sessions.NewSummary{old, fresh}
	return d
}

// noteAttachments is the section on attachments behind a note; empty for none.
func (e *Engine) noteAttachments(lines []attachmentLine) string {
	if len(lines) == 0 {
		return ""
	}
	return "\n\n" + attachmentSection(lines, e.Summarizer.Language, maxNoteAttachments, e.Summarizer.Counter.Count)
}

// Bounds of notes: identifiers of one note, notes in a view, bytes of joined notes.
const (
	hiddenIdentifiers = 24
	maxNotes          = 8
	maxNoteText       = 4000
	// maxNoteAttachments is in tokens.
	maxNoteAttachments = 400
)
