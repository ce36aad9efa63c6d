package summarize

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"ebb/compaction"
	"ebb/compaction/transcript"
	"ebb/sessions"
)

// attachmentHeadings head the lines on the pictures and files of a summarized range, by language. A model may leave them out of its text, so
// they are written without one.
var attachmentHeadings = map[string]string{"zh": "## 图片与文件", "en": "## Pictures and files"}

const (
	// attachmentShare of a summary's target is for the lines on attachments: one part in four.
	attachmentShare = 4
	// leastLines have room in each summary.
	leastLines = 4
	// maxEarlier bounds the numbers of messages whose lines have no room.
	maxEarlier = 40

	maxAskedWords  = 40 // characters of the message
	maxAnswerWords = 60 // characters of the answer
)

// attachmentLine says of a message with attachments what it asked, and what the answer was.
type attachmentLine struct {
	seq  int64
	text string // empty: only the number is kept
}

// earlierMark begins the line of the numbers alone.
const earlierMark = "- …"

var (
	attachmentItem = regexp.MustCompile(`^- #(\d+): `)
	numberRE       = regexp.MustCompile(`#(\d+)`)
)

// splitAttachments takes the lines on attachments off a summary.
func splitAttachments(summary string) (text string, lines []attachmentLine) {
	var kept []string
	inside := false
	for line := range strings.SplitSeq(summary, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == attachmentHeadings["zh"], trimmed == attachmentHeadings["en"]:
			inside = true
		case inside && attachmentItem.MatchString(trimmed):
			lines = append(lines, attachmentLine{seqIn(attachmentItem.FindStringSubmatch(trimmed)[1]), trimmed})
		case inside && strings.HasPrefix(trimmed, earlierMark):
			for _, found := range numberRE.FindAllStringSubmatch(trimmed, -1) {
				lines = append(lines, attachmentLine{seq: seqIn(found[1])})
			}
		case inside && (trimmed == "" || strings.HasPrefix(trimmed, "- ")): // a model wrote it
		default:
			inside = false
			kept = append(kept, line)
		}
	}
	if len(lines) == 0 && len(kept) == strings.Count(summary, "\n")+1 {
		return summary, nil
	}
	return strings.TrimSpace(strings.Join(kept, "\n")), lines
}

func seqIn(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64) // digits, or too many of them: no event has such a number
	return n
}

// attachmentsOf are the lines on events.
func attachmentsOf(events []sessions.Event) (lines []attachmentLine) {
	for i, e := range events {
		if e.Role == sessions.RoleSummary {
			_, earlier := splitAttachments(e.Content)
			lines = append(lines, earlier...)
		}
		if e.Role != sessions.RoleUser || !e.HasFiles() || e.Content == sessions.WithheldText {
			continue
		}
		text := fmt.Sprintf("- #%d: %s [%s]: %s", e.Seq, sessions.Speaker(e.SenderNick, e.SenderID), namesOf(*e.Message), beginningOf(ownWords(e), maxAskedWords))
		if answer := answerBehind(events[i+1:]); answer != "" {
			text += " → " + beginningOf(answer, maxAnswerWords)
		}
		lines = append(lines, attachmentLine{e.Seq, text})
	}
	return lines
}

// ownWords are a message's words behind its quote.
func ownWords(e sessions.Event) string {
	if _, own, ok := strings.Cut(e.Content, "]\n"); ok && e.Message.Quote != nil {
		return own
	}
	return e.Content
}

// namesOf lists the attachments of a message: the names of files, each once.
func namesOf(m sessions.Message) string {
	var names []string
	for _, a := range m.Attachments {
		name := "图片 picture"
		if a.Name != "" {
			name = beginningOf(a.Name, maxAskedWords)
		}
		if a.IsRead() && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "引用的附件 quoted"
	}
	return strings.Join(names, ", ")
}

// beginningOf is one line of a text of people, without credentials and marks of structure.
func beginningOf(text string, most int) string {
	text = sessions.QuoteText(transcript.Clean(text))
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || strings.ContainsRune("`#<>", r) {
			return ' '
		}
		return r
	}, text)), " ")
	if rs := []rune(text); len(rs) > most {
		return string(rs[:most]) + "…"
	}
	return text
}

// answerBehind is the first answer in words; empty for none.
func answerBehind(events []sessions.Event) string {
	for _, e := range events {
		if e.Role == sessions.RoleAssistant && len(e.ToolCalls) == 0 && e.Content != sessions.ErasedText && e.Content != sessions.WithheldText {
			return e.Content
		}
	}
	return ""
}

// joinAttachments orders lines by their events, each once.
func joinAttachments(lists ...[]attachmentLine) []attachmentLine {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b attachmentLine) int {
		switch {
		case a.seq != b.seq:
			return int(min(max(a.seq-b.seq, -1), 1))
		case (a.text == "") != (b.text == ""):
			return strings.Compare(b.text, a.text) // a line before a bare number
		}
		return 0
	})
	return slices.CompactFunc(all, func(a, b attachmentLine) bool { return a.seq == b.seq })
}

// attachmentSection writes lines within tokens: the newest as they are, the numbers of earlier ones in one line. It says by which call a model
// gets them back.
func attachmentSection(lines []attachmentLine, lang string, budget int, count func(string) int) string {
	if len(lines) == 0 {
		return ""
	}
	var whole, earlier []string
	for _, l := range slices.Backward(lines) {
		n := count(l.text)
		if l.text != "" && len(earlier) == 0 && (n <= budget || len(whole) < leastLines) {
			budget -= n
			whole = append(whole, l.text)
		} else if len(earlier) < maxEarlier {
			earlier = append(earlier, fmt.Sprintf("#%d", l.seq))
		}
	}
	slices.Reverse(whole)
	slices.Reverse(earlier)
	head := map[string]string{"zh": "看图片或文件：", "en": "To see one: "}[compaction.Language(lang)]
	out := attachmentHeadings[compaction.Language(lang)] + "\n"
	if len(earlier) > 0 {
		out += earlierMark + " " + strings.Join(earlier, " ") + "\n"
	}
	for _, line := range whole {
		out += line + "\n"
	}
	return out + fmt.Sprintf("- %s%s {\"range\":\"N\"}", head, sessions.HistoryTool)
}
