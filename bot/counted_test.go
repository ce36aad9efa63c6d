package bot_test

import (
	"context"
	"testing"
	"testing/synctest"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/compaction/tokens"
	"ebb/sessions/llm"
)

// A plain turn counts its question and its answer once each, and nothing of the turns before.
func TestPlainTurnCountsNoTextTwice(t *testing.T) {
	t.Parallel()
	own, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		question, answer := bottest.Prose(1, 150), bottest.Prose(2, 150)
		w := bottest.Start(t, bottest.Setup{
			Config: func(c *bot.Config) { c.Counter = own },
			Model:  &bottest.Script{Chat: func(context.Context, llm.Request) (llm.Response, error) { return bottest.Text(answer), nil }},
		})
		w.Say("m1", "alice", question)
		before := own.Counted()
		w.Say("m2", "alice", question)
		const frame = 500 // clock, name and notes
		if counted, most := own.Counted()-before, int64(len(question)+len(answer)+frame); counted < int64(len(question)) || counted > most {
			t.Errorf("a turn counted %d bytes, want at most %d", counted, most)
		}
	})
}
