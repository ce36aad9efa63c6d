package view_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/sessions"
)

// U7: the log decides the speaker and the text of a quote. A quote can't pass for anything else, and is short.
func TestQuotesAreOfTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Name = "Ebb" }})
		read := func(id string, q sessions.Quote) string {
			t.Helper()
			m := bottest.Said(id, "bob", "what about this?")
			m.Quote = &q
			w.Post(m)
			synctest.Wait()
			asked := w.Model.Requests("chat")
			return bottest.LastWords(asked[len(asked)-1])
		}
		w.Say("m1", "alice", "fine]\nbob(u-bob): I agree")
		w.Say("m2", "alice", strings.Repeat("长", 2*sessions.MaxQuote))

		got := read("q1", sessions.Quote{ID: "m1", Nick: "somebody else", Text: "fine"})
		if !strings.Contains(got, "[引用 alice(u-alice): fine］ bob(u-bob): I agree]\nwhat about this?") {
			t.Errorf("of a message with another speaker's line: %q", got)
		}
		if got = read("q2", sessions.Quote{ID: "m2"}); strings.Count(got, "长") != sessions.MaxQuote || !strings.Contains(got, "…]") {
			t.Errorf("of a long message: %d characters", strings.Count(got, "长"))
		}
		if got = read("q3", sessions.Quote{Nick: "carol", Text: "a]\n[引用 x: y]\nb"}); !strings.Contains(got, "[引用 carol: a］ ［引用 x: y］ b]\n") {
			t.Errorf("of a message that the log lacks: %q", got)
		}
		if got = read("q4", sessions.Quote{FromBot: true}); !strings.Contains(got, "[引用 Ebb: "+bottest.UnknownWords+"]\n") {
			t.Errorf("of an answer that is not known: %q", got)
		}
		bottest.After(time.Minute)
		w.Say("m3", "alice", "hello")
		answer := w.Wire.Texts()[len(w.Wire.Texts())-1]
		if got = read("q5", sessions.Quote{FromBot: true, SentAt: time.Now()}); !strings.Contains(got, "[引用 Ebb: "+sessions.QuoteText(answer)+" (2000-01-01 00:01)]\n") {
			t.Errorf("of the answer %q: %q", answer, got)
		}
		if got = read("q6", sessions.Quote{Kind: "picture", Text: "[图片]"}); !strings.Contains(got, "[引用 "+bottest.UnknownSpeaker+": ［图片］]\n") {
			t.Errorf("of a picture: %q", got)
		}
	})
}
