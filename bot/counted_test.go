package bot

import (
	"context"
	"testing"
	"testing/synctest"

	"ebb/bot/llm"
	"ebb/compaction/tokens"
)

// A plain turn counts its question and its answer once each, and nothing of the turns before.
func TestPlainTurnCountsNoTextTwice(t *testing.T) {
	t.Parallel()
	own, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		question, answer := prose(1, 150), prose(2, 150)
		w := start(t, setup{
			config: func(c *Config) { c.Counter = own },
			model:  &script{chat: func(context.Context, llm.Request) (llm.Response, error) { return text(answer), nil }},
		})
		w.say("m1", "alice", question)
		before := own.Counted()
		w.say("m2", "alice", question)
		const frame = 500 // clock, name and notes
		if counted, most := own.Counted()-before, int64(len(question)+len(answer)+frame); counted < int64(len(question)) || counted > most {
			t.Errorf("a turn counted %d bytes, want at most %d", counted, most)
		}
	})
}
