package chaos

import (
	"strings"
	"testing"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sql/inspect"
)

// Each line breaks the promise of a reminder, or excuses it. The violation names the reminder.
func TestCheckerOfReminders(t *testing.T) {
	t.Parallel()
	const due = "@访客0001 ⏰ 访客0001：R000007 交周报"
	say := func(place, text string, ms int) func(*evidence) {
		return func(e *evidence) {
			e.replies = append(e.replies, dingtalktest.Reply{Conversation: place, Text: text, Time: at(ms)})
		}
	}
	set := say("cid-a", "q0000001 周五\n\n---\n\n"+wording.Say(wording.RemindSet, "zh", 3, "2026年3月2日 09:00", "R000007 交周报"), 100)
	daily := func(ms int) func(*evidence) { return func(e *evidence) { e.reminders[0].daily = at(ms) } }
	sentAgain := func(e *evidence) {
		e.letters = append(e.letters, inspect.Letter{Key: groupA, ID: 9, Text: "⏰ R000007 交周报"})
		e.again = map[letterID]time.Time{{groupA, 9}: at(80_000)}
	}
	erased := func(e *evidence) {
		sentAgain(e)
		e.letters[0].Conversation, e.letters[0].Text = "cid-a", sessions.ErasedText
	}
	forget := func(e *evidence) {
		e.erased = []erasure{{kind: "forget me", words: []string{"R000007"}, begun: at(500), receipt: at(1000)}}
	}
	for name, tt := range map[string]struct {
		changes []func(*evidence)
		want    string
	}{
		"set and delivered":               {[]func(*evidence){set, say("cid-a", due, 900)}, ""},
		"not set":                         {nil, ""},
		"lost":                            {[]func(*evidence){set}, "reminder R000007 of 访客0001 in cid-a was set and not delivered"},
		"elsewhere":                       {[]func(*evidence){set, say("cid-b", due, 900)}, "reminder R000007 of 访客0001 in cid-a was sent to cid-b"},
		"twice":                           {[]func(*evidence){set, say("cid-a", due+"\n\n"+due, 900)}, "reminder R000007 of 访客0001 arrived 2 times in cid-a"},
		"twice, an answer was lost":       {[]func(*evidence){set, say("cid-a", due, 900), say("cid-a", due, 950), sentAgain}, ""},
		"twice, its reply was erased":     {[]func(*evidence){set, say("cid-a", due, 900), say("cid-a", due, 950), erased}, ""},
		"two replies":                     {[]func(*evidence){set, say("cid-a", due, 900), sentAgain, sentAgain}, "reminder R000007 of 访客0001 left 2 replies"},
		"daily, lost":                     {[]func(*evidence){set, daily(1000)}, "reminder R000007 of 访客0001 in cid-a was set and not delivered"},
		"daily, due after the run":        {[]func(*evidence){set, daily(60_000)}, ""},
		"daily, asked for after its time": {[]func(*evidence){set, daily(50)}, ""},
		"of a forgotten person":           {[]func(*evidence){set, say("cid-a", due, 900), forget}, ""},
		"of a forgotten person, late":     {[]func(*evidence){set, say("cid-a", due, 1100), forget}, "forget me: R000007 was erased and sent 100ms later to cid-a"},
		"of a forgotten person, dropped":  {[]func(*evidence){set, forget}, ""},
	} {
		e := &evidence{
			said:      map[string]remark{"q0000007": {mark: "q0000007", acked: at(80)}},
			reminders: []reminder{{word: "R000007", mark: "q0000007", place: "cid-a", who: "访客0001"}},
			ended:     at(30_000),
		}
		for _, change := range tt.changes {
			change(e)
		}
		f := &findings{}
		e.checkReminders(f)
		e.checkErased(f)
		if got := strings.Join(f.broken, "; "); tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) || len(f.broken) > 1 {
			t.Errorf("%s: found %q, want %q", name, got, tt.want)
		}
	}
}

// Messages of schedules pass the checks of turns in two conversations, where they may have the same id. They are no members' own.
func TestCheckerKnowsMessagesOfSchedules(t *testing.T) {
	t.Parallel()
	e := wholeEvidence()
	for _, key := range []sessions.Key{groupA, groupB} {
		e.log = append(e.log,
			inspect.Logged{Key: key, Seq: 8, Role: sessions.RoleUser, State: sessions.Done, MsgID: "schedule:1:1772442000", Content: "[定时 2026-03-02 09:00]\n交周报"},
			inspect.Logged{Key: key, Seq: 9, Role: sessions.RoleAssistant, State: sessions.Done, Content: "⏰ 交周报"})
		place := strings.TrimPrefix(string(key), "robot/")
		e.letters = append(e.letters, inspect.Letter{Key: key, ID: 9, Conversation: sessions.ConversationID(place), Sent: true, Text: "⏰ 交周报"})
		e.arrive(place, "⏰ 交周报")
	}
	e.noteScheduled()
	if f := e.checkAll(); len(f.broken) > 0 || f.said != 6 || f.commands != 1 {
		t.Errorf("said %d, commands %d, found %q", f.said, f.commands, f.broken)
	}
	e.replies = e.replies[:len(e.replies)-1]
	if f := e.checkAll(); len(f.broken) != 1 || !strings.Contains(f.broken[0], "1 replies to cid-b were marked as sent and 0 arrived") {
		t.Errorf("without one delivery found %q", f.broken)
	}
}
