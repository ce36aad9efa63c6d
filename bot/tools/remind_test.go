package tools

import (
	"testing"

	"ebb/sessions"
)

// A reminder belongs to the person who asks for it. The call names one of several askers.
func TestAskerOfAReminder(t *testing.T) {
	t.Parallel()
	said := func(id sessions.UserID, nick, msg string) sessions.Event {
		return sessions.Event{SenderID: id, SenderNick: nick, MsgID: sessions.MessageID(msg)}
	}
	zhang, again, li, namesake := said("z", "张伟", "1"), said("z", "张伟", "2"), said("l", "李娜", "3"), said("n", "张伟", "4")
	for name, c := range map[string]struct {
		asked []sessions.Event
		who   string
		want  sessions.MessageID // empty: a refusal
	}{
		"one":                {[]sessions.Event{zhang}, "", "1"},
		"one, twice":         {[]sessions.Event{zhang, again}, "somebody", "2"},
		"several, one named": {[]sessions.Event{zhang, li}, "@张伟", "1"},
		"several, by id":     {[]sessions.Event{zhang, li}, "l", "3"},
		"several, no name":   {[]sessions.Event{zhang, li}, "", ""},
		"several, a third":   {[]sessions.Event{zhang, li}, "王芳", ""},
		"namesakes":          {[]sessions.Event{zhang, namesake}, "张伟", ""},
		"namesakes, by id":   {[]sessions.Event{zhang, namesake}, "z", "1"},
	} {
		by, err := askerOf(c.asked, c.who)
		if (err == nil) != (c.want != "") || err == nil && by.MsgID != c.want {
			t.Errorf("%s: %q and %v, want %q", name, by.MsgID, err, c.want)
		}
	}
}
