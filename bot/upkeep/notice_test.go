package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// notices are the notices of compactions among what people read.
func notices(w *bottest.World) (list []string) {
	for _, text := range w.Wire.Texts() {
		if strings.HasPrefix(text, "🗜️") || strings.HasPrefix(text, "📦") {
			list = append(list, text)
		}
	}
	return list
}

// notifying has people read of each compaction.
func notifying(c *bot.Config) { c.CompactNotify, c.Admins = true, []sessions.UserID{"u-root"} }

// With notices configured, people read one for each automatic compaction, in their language, and none for a manual one.
func TestNoticeOfACompaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: notifying})
		w.Talk(2)
		bottest.After(time.Second)
		list := notices(w)
		bottest.Want(t, "notices", len(list), 2)
		rows := bottest.Attempts(t, w.Store)
		bottest.Want(t, "the last notice", list[1], wording.Say(wording.CompactNotice, "en", wording.Thousands(rows[1].TokensBefore), wording.Thousands(rows[1].TokensAfter)))
		for i := range 5 {
			w.Say(fmt.Sprint("m", i), "alice", bottest.Prose(i, 100))
		}
		before := len(notices(w))
		w.Say("m9", "root", "/compact")
		bottest.After(time.Second)
		rows = bottest.Attempts(t, w.Store)
		bottest.Want(t, "the last compaction", string(rows[len(rows)-1].Trigger)+" "+string(rows[len(rows)-1].Outcome), "manual committed")
		bottest.Want(t, "notices after one by hand", len(notices(w)), before)
		bottest.Want(t, "unsent replies", len(w.Unsent()), 0)
	})
}

// No notice is sent by default, for a failed compaction, or for one that a stop interrupts.
func TestNoNoticeOfACompaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{})
		w.Talk(1)
		bottest.Want(t, "notices by default", len(notices(w)), 0)
	})
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: notifying, Model: &bottest.Script{Summary: func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Busy, Err: errors.New("busy")}
		}}})
		for i := range 40 {
			w.Say(fmt.Sprint("m", i), "alice", bottest.Prose(i, 100))
			bottest.After(time.Minute)
		}
		failed := slices.ContainsFunc(bottest.Attempts(t, w.Store), func(e sessions.LogEntry) bool { return e.Outcome == sessions.CompactionFailed })
		bottest.Want(t, "a compaction failed", failed, true)
		bottest.Want(t, "notices of failures", len(notices(w)), 0)
	})
}

// A group reads no notice about the context of one of its members.
func TestNoNoticeOfAMembersContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { notifying(c); c.Scope = sessions.ScopeMember }})
		for i := range 30 {
			w.Say(fmt.Sprint("m", i), "alice", bottest.Prose(i, 100))
		}
		bottest.After(time.Second)
		log, err := w.Store.Compactions(t.Context(), sessions.NewKey("robot", "c1", "u-alice"), 100)
		committed := slices.ContainsFunc(log, func(e sessions.LogEntry) bool { return e.Outcome == sessions.CompactionCommitted })
		bottest.Want(t, "a compaction committed", committed, true)
		bottest.Want(t, "reading the log", err, nil)
		bottest.Want(t, "notices", len(notices(w)), 0)
	})
}

// A commit whose answer is lost leaves a notice behind, which is sent once.
func TestNoticeOfALostCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: notifying})
		w.Store.Lose(bottest.Times(1, "compact", errors.New("the answer was lost")))
		w.Talk(1)
		w.Say("m1", "alice", "hello")
		bottest.After(time.Minute)
		bottest.Want(t, "notices", len(notices(w)), 1)
	})
}
