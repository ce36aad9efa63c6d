package turn

import (
	"cmp"
	"strings"
	"time"

	"ebb/bot/wording"
	"ebb/sessions"
)

func isMissed(s sessions.Scheduled, now time.Time, grace time.Duration) bool {
	return now.Sub(s.DueAt) > grace
}

// lateAfter is the delay from which a reminder names its time.
const lateAfter = time.Minute

// scheduledAnswer is the answer to reminders, or to schedules that were missed. It is empty if all of these go on: their next time
// is worth more than an apology, which takes a call.
func (r *Runner) scheduledAnswer(t *Turn, now time.Time) string {
	parts := make([]string, 0, len(t.Asked))
	for _, e := range t.Asked {
		s, text := *e.Message.Scheduled, reminderText(e, r.views.OwnWords(e), t.Lang)
		at := wording.Moment(s.DueAt)
		switch {
		case isMissed(s, now, r.cfg.StaleAfter) && s.Repeats && !s.Next.IsZero():
			continue
		case isMissed(s, now, r.cfg.StaleAfter):
			text = wording.Say(wording.RemindMissed, t.Lang, at, text)
		case now.Sub(s.DueAt) > lateAfter:
			text = wording.Say(wording.RemindLate, t.Lang, text, at)
		default:
			text = wording.Say(wording.RemindDue, t.Lang, text)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n\n")
}

// lateNote is for a reply that waits for calls of the platform's API after its time.
func lateNote(t *Turn) string {
	return wording.Say(wording.RemindOverdue, t.Lang, wording.Moment(t.Asked[0].Message.Scheduled.DueAt))
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
