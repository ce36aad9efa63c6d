package choice

import (
	"strings"
	"testing"
	"time"

	"ebb/bot/chat"
	"ebb/sessions"
)

// A scheduled message is answered by its kind and by the delay since its time, and never as a command.
func TestScheduledMessages(t *testing.T) {
	t.Parallel()
	chooser := testChooser(t)
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	next := now.Add(24 * time.Hour)
	for name, c := range map[string]struct {
		kind    sessions.ScheduleKind
		late    time.Duration
		next    time.Time
		text    string
		want    Kind
		answers []string
	}{
		"in time":          {sessions.Remind, time.Second, time.Time{}, "drink", Remind, []string{"⏰ Ann: drink"}},
		"a command's form": {sessions.Remind, time.Second, time.Time{}, "/new", Remind, []string{"⏰ Ann: /new"}},
		"late":             {sessions.Remind, 5 * time.Minute, next, "drink", Remind, []string{"⏰ Ann: drink", "This was due at 2026-11-27 09:55"}},
		"missed":           {sessions.Remind, time.Hour, time.Time{}, "drink", Remind, []string{"the reminder of 2026-11-27 09:00 was missed", `"Ann: drink"`}},
		"question":         {sessions.AskModel, 5 * time.Minute, time.Time{}, "/status of the project", Ask, nil},
		"missed question":  {sessions.AskModel, time.Hour, time.Time{}, "progress", Missed, []string{"was missed"}},
	} {
		s := sessions.Scheduled{Kind: c.kind, DueAt: now.Add(-c.late), Next: c.next}
		e := sessions.Event{State: sessions.Pending, Content: s.Lead() + c.text, CreatedAt: now, SenderNick: "Ann", Message: &sessions.Message{ConversationType: sessions.Group, Scheduled: &s}}
		if got := chooser.Kinds.KindOf(e, now); got != c.want {
			t.Errorf("%s: the kind is %s, want %s", name, got, c.want)
		}
		made := Choice{Kind: c.want, Asked: []sessions.Event{e}, Lang: "en"}
		if c.answers == nil {
			continue
		}
		for _, want := range c.answers {
			if got := scheduledAnswer(made, chooser.cfg.Views.Words.OwnWords, chooser.Kinds.StaleAfter, now); !strings.Contains(got, want) {
				t.Errorf("%s: the answer is %q, want %q in it", name, got, want)
			}
		}
	}
}

// A missed time of a schedule that goes on has no apology. Others that are answered with it keep theirs.
func TestMissedTimeOfRepeatedScheduleIsSilent(t *testing.T) {
	t.Parallel()
	chooser := testChooser(t)
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	event := func(text string, next time.Time) sessions.Event {
		s := sessions.Scheduled{Kind: sessions.Remind, DueAt: now.Add(-time.Hour), Next: next, Repeats: !next.IsZero()}
		return sessions.Event{Content: s.Lead() + text, Message: &sessions.Message{Scheduled: &s}}
	}
	daily, once := event("drink", now.Add(time.Hour)), event("meeting", time.Time{})
	made := Choice{Kind: Missed, Lang: "en", Asked: []sessions.Event{daily}}
	if got := scheduledAnswer(made, chooser.cfg.Views.Words.OwnWords, chooser.Kinds.StaleAfter, now); got != "" {
		t.Errorf("the answer is %q", got)
	}
	made.Asked = []sessions.Event{daily, once}
	if got := scheduledAnswer(made, chooser.cfg.Views.Words.OwnWords, chooser.Kinds.StaleAfter, now); !strings.Contains(got, "meeting") || strings.Contains(got, "drink") {
		t.Errorf("the answer to both is %q", got)
	}
}

// The text of a reminder names its creator, so the reply's address only mentions: the open API would name a person twice. An
// answer to a scheduled question is addressed as any other.
func TestReminderIsAddressedOnce(t *testing.T) {
	t.Parallel()
	for kind, named := range map[sessions.ScheduleKind]bool{sessions.Remind: true, sessions.AskModel: false} {
		asked := sessions.Event{SenderNick: "张三", Message: &sessions.Message{
			ConversationType: sessions.Group, SenderID: "zhang", SenderNick: "张三", Scheduled: &sessions.Scheduled{Kind: kind},
		}}
		if to := chat.TargetOf([]sessions.Event{asked}); len(to.Mentions) != 1 || to.Mentions[0].Named != named {
			t.Errorf("%s mentions %+v, want one person, who is named in the text: %t", kind, to.Mentions, named)
		}
	}
}

// Reminders of a group that are answered together each name their creator, and no text passes for another's or for markup. In a
// private chat there is one person alone.
func TestRemindersNameTheirCreator(t *testing.T) {
	t.Parallel()
	chooser := testChooser(t)
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	s := sessions.Scheduled{Kind: sessions.Remind, DueAt: now}
	of := func(kind sessions.ConversationType, nick, text string) sessions.Event {
		return sessions.Event{Content: s.Lead() + text, SenderNick: nick, Message: &sessions.Message{ConversationType: kind, Scheduled: &s}}
	}
	for name, c := range map[string]struct {
		asked []sessions.Event
		want  string
	}{
		"several": {
			[]sessions.Event{of(sessions.Group, "张三", "喝水"), of(sessions.Group, "李*四", "[点我](https://x.example)\n\n⏰ 老板：转账")},
			"⏰ 张三：喝水\n\n⏰ 李＊四：［点我］(https://x.example)\n> \n> ⏰ 老板：转账",
		},
		"no name": {[]sessions.Event{of(sessions.Group, "\u200b", "喝水")}, "⏰ 成员：喝水"},
		"private": {[]sessions.Event{of(sessions.Private, "张三", "# 喝水")}, "⏰ ＃ 喝水"},
	} {
		made := Choice{Kind: Remind, Lang: "zh", Asked: c.asked}
		if got := scheduledAnswer(made, chooser.cfg.Views.Words.OwnWords, chooser.Kinds.StaleAfter, now); got != c.want {
			t.Errorf("%s: the answer is %q, want %q", name, got, c.want)
		}
	}
}

// A late word about an expired call is no late reminder.
func TestExpiryHasNoNoteOfAReminder(t *testing.T) {
	t.Parallel()
	asked := []sessions.Event{{Message: &sessions.Message{Scheduled: &sessions.Scheduled{Kind: sessions.Expired, DueAt: time.Unix(1, 0)}}}}
	if note := LateNote(Choice{Kind: Expired, Lang: "en", Asked: asked}); note != "" {
		t.Errorf("the note is %q", note)
	}
	asked[0].Message.Scheduled.Kind = sessions.Remind
	if note := LateNote(Choice{Kind: Remind, Lang: "en", Asked: asked}); !strings.Contains(note, "could not be sent then") {
		t.Errorf("the note of a reminder is %q", note)
	}
}
