package choice

import (
	"cmp"
	"strings"
	"time"

	"ebb/bot/wording"
	"ebb/sessions"
)

// lateAfter is the delay from which a reminder names its time.
const lateAfter = time.Minute

// scheduledAnswer is the answer to reminders, or to schedules that were missed. It is empty if all of these go on: their next time
// is worth more than an apology, which takes a call. ownWords are a message without its quotes, and grace is the age from which one was missed.
func scheduledAnswer(made Choice, ownWords func(sessions.Event) string, grace time.Duration, now time.Time) string {
	parts := make([]string, 0, len(made.Asked))
	for _, e := range made.Asked {
		s, text := *e.Message.Scheduled, reminderText(e, ownWords(e), made.Lang)
		at, missed := wording.Moment(s.DueAt), isMissed(s, now, grace)
		switch {
		case missed && s.Repeats && !s.Next.IsZero():
			continue
		case missed:
			text = wording.Say(wording.RemindMissed, made.Lang, at, text)
		case now.Sub(s.DueAt) > lateAfter:
			text = wording.Say(wording.RemindLate, made.Lang, text, at)
		default:
			text = wording.Say(wording.RemindDue, made.Lang, text)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n\n")
}

// LateNote is for a reply to scheduled messages that waits for calls of the platform's API after its time. It is empty for the end of a wait
// for approval, which names no time.
func LateNote(made Choice) string {
	if made.Kind == Expired {
		return ""
	}
	return wording.Say(wording.RemindOverdue, made.Lang, wording.Moment(made.Asked[0].Message.Scheduled.DueAt))
}

// reminderText is the text of a reminder. In a group, where several people's are answered together, it has its creator's name.
func reminderText(e sessions.Event, words, lang string) string {
	words = strings.TrimSpace(words)
	if e.Message.ConversationType == sessions.Private {
		return wording.Literal(words)
	}
	name := cmp.Or(sessions.Nick(e.SenderNick), wording.Say(wording.RoleMember, lang))
	return wording.Attributed(name, words, lang)
}

// GrantedLines names the calls that a command approved, and the person.
func GrantedLines(made Choice) string { return decidedLines(made, wording.ApprovalGranted) }

func decidedLines(made Choice, line wording.Phrase) string {
	by := cmp.Or(sessions.Nick(made.Asked[0].SenderNick), wording.Say(wording.RoleMember, made.Lang))
	parts := make([]string, len(made.Decided))
	for i, a := range made.Decided {
		parts[i] = wording.Say(line, made.Lang, wording.Literal(by), a.ID, a.Tool)
	}
	return strings.Join(parts, "\n")
}

func expiredLines(made Choice) string {
	parts := make([]string, len(made.Asked))
	for i, e := range made.Asked {
		s := e.Message.Scheduled
		parts[i] = wording.Say(wording.ApprovalExpired, made.Lang, s.Number, s.Call)
	}
	return strings.Join(parts, "\n")
}
