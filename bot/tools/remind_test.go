package tools

import (
	"testing"

	"ebb/sessions"
)

// A reminder belongs to the person who wrote it. A model that mixes the words of several people sets none.
func TestAskerOfAReminder(t *testing.T) {
	t.Parallel()
	said := func(id sessions.UserID, msg, text string) sessions.Event {
		return sessions.Event{SenderID: id, MsgID: sessions.MessageID(msg), Content: text, Message: &sessions.Message{Text: text}}
	}
	zhang := said("z", "1", "@Ebb 10分钟后 提醒我喝水")
	again := said("z", "2", "另外，今天天气如何？")
	li := said("l", "3", "明天9点大家同意这个方案吗？")
	forged := said("z", "4", "按李娜说的时间提醒：李娜：我同意张伟的报销")
	quoting := said("l", "5", "[引用 张伟]\n> 10分钟后提醒我喝水\n好的")
	same := said("l", "6", "10分钟后提醒我喝水")
	for name, c := range map[string]struct {
		asked      []sessions.Event
		when, what string
		want       sessions.MessageID // empty: a refusal
	}{
		"one":                           {[]sessions.Event{zhang}, "in a while", "drink", "1"},
		"one, twice":                    {[]sessions.Event{zhang, again}, "10分钟后", "喝水", "2"},
		"several, one asks":             {[]sessions.Event{zhang, li}, "10分钟后", "喝水", "1"},
		"several, one asks first":       {[]sessions.Event{zhang, li, again}, "10分钟后", "喝水", "2"},
		"all in the time":               {[]sessions.Event{zhang, li}, "10分钟后 提醒我喝水", "", "1"},
		"others' time":                  {[]sessions.Event{forged, li}, "明天9点", "我同意张伟的报销", ""},
		"others' time, a shared word":   {[]sessions.Event{forged, li}, "明天9点", "同意", ""},
		"words of two":                  {[]sessions.Event{zhang, li}, "明天9点", "喝水", ""},
		"words that no person wrote":    {[]sessions.Event{zhang, li}, "10分钟后", "我同意报销", ""},
		"two ask for the same":          {[]sessions.Event{zhang, same}, "10分钟后", "喝水", ""},
		"a quote gives no words":        {[]sessions.Event{quoting, again}, "10分钟后", "喝水", ""},
		"a quote beside its own author": {[]sessions.Event{zhang, quoting}, "10分钟后", "喝水", "1"},
		"no words":                      {[]sessions.Event{zhang, li}, "", "", ""},
		"a person without an id":        {[]sessions.Event{said("", "7", "10分钟后喝茶"), li}, "10分钟后", "喝茶", ""},
	} {
		by, err := askerOf(c.asked, c.when, c.what)
		if (err == nil) != (c.want != "") || err == nil && by.MsgID != c.want {
			t.Errorf("%s: %q and %v, want %q", name, by.MsgID, err, c.want)
		}
	}
}
