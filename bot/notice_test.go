package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/bot/upkeep"
	"ebb/bot/wording"
	"ebb/sessions"
)

// notices are the notices of compactions among what people read.
func (w *world) notices() (list []string) {
	for _, text := range w.wire.texts() {
		if strings.HasPrefix(text, "🗜️") || strings.HasPrefix(text, "📦") {
			list = append(list, text)
		}
	}
	return list
}

// notifying has people read of each compaction.
func notifying(c *Config) { c.CompactNotify, c.Admins = true, []sessions.UserID{"u-root"} }

// With notices configured, people read one for each automatic compaction, in their language, and none for a manual one.
func TestNoticeOfACompaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: notifying})
		w.talk(2)
		after(time.Second)
		list := w.notices()
		want(t, "notices", len(list), 2)
		rows := attempts(t, w.store)
		want(t, "the last notice", list[1], wording.Say(wording.CompactNotice, "en", wording.Thousands(rows[1].TokensBefore), wording.Thousands(rows[1].TokensAfter)))
		for i := range 5 {
			w.say(fmt.Sprint("m", i), "alice", prose(i, 100))
		}
		before := len(w.notices())
		w.say("m9", "root", "/compact")
		after(time.Second)
		rows = attempts(t, w.store)
		want(t, "the last compaction", rows[len(rows)-1].Trigger+" "+rows[len(rows)-1].Outcome, "manual committed")
		want(t, "notices after one by hand", len(w.notices()), before)
		want(t, "unsent replies", len(w.unsent()), 0)
	})
}

// No notice is sent by default, for a failed compaction, or for one that a stop interrupts.
func TestNoNoticeOfACompaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		w.talk(1)
		want(t, "notices by default", len(w.notices()), 0)
	})
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: notifying, model: &script{summary: func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Busy, Err: errors.New("busy")}
		}}})
		for i := range 40 {
			w.say(fmt.Sprint("m", i), "alice", prose(i, 100))
			after(time.Minute)
		}
		failed := slices.ContainsFunc(attempts(t, w.store), func(e sessions.LogEntry) bool { return e.Outcome == upkeep.OutcomeFailed })
		want(t, "a compaction failed", failed, true)
		want(t, "notices of failures", len(w.notices()), 0)
	})
}

// A group reads no notice about the context of one of its members.
func TestNoNoticeOfAMembersContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: func(c *Config) { notifying(c); c.Scope = sessions.ScopeMember }})
		for i := range 30 {
			w.say(fmt.Sprint("m", i), "alice", prose(i, 100))
		}
		after(time.Second)
		log, err := w.store.Compactions(t.Context(), sessions.NewKey("robot", "c1", "u-alice"), 100)
		committed := slices.ContainsFunc(log, func(e sessions.LogEntry) bool { return e.Outcome == upkeep.OutcomeCommitted })
		want(t, "a compaction committed", committed, true)
		want(t, "reading the log", err, nil)
		want(t, "notices", len(w.notices()), 0)
	})
}

// A commit whose answer is lost leaves a notice behind, which is sent once.
func TestNoticeOfALostCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: notifying})
		w.store.lose(times(1, "compact", errors.New("the answer was lost")))
		w.talk(1)
		w.say("m1", "alice", "hello")
		after(time.Minute)
		want(t, "notices", len(w.notices()), 1)
	})
}
