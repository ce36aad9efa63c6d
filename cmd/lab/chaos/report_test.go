package chaos

import (
	"strings"
	"testing"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/sessions"
)

// Messages that waited at a crash count, and no others.
func TestRecoveries(t *testing.T) {
	at := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
	in := func(s int) time.Time { return at.Add(time.Duration(s) * time.Second) }
	e := &evidence{
		crashes: []crash{{at, false}, {in(20), true}},
		said: map[string]remark{
			"waited":    {pushed: in(-2), answeredAt: in(3)},
			"longest":   {pushed: in(-1), answeredAt: in(7)},
			"before":    {pushed: in(-5), answeredAt: in(-1)},
			"after":     {pushed: in(1), answeredAt: in(9)},
			"command":   {pushed: in(-1), answeredAt: in(15), command: true},
			"erased":    {pushed: in(-1), answeredAt: in(15), wiped: true},
			"unsettled": {pushed: in(-1)},
		},
	}
	all := e.recoveries()
	if len(all) != 2 || all[0].waited != 2 || all[0].took != 7*time.Second || all[1].waited != 0 {
		t.Fatalf("recoveries: %+v", all)
	}
	table := recoveryTable(all)
	for _, want := range []string{"the kill of one gateway            1        2", "the kill of all gateways           1        0"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in:\n%s", want, table)
		}
	}
}

// The reply of one card that left it excuses no call on another card of the conversation, and none two minutes later.
func TestCheckerExcusesTheCardOfAReplyAlone(t *testing.T) {
	t.Parallel()
	e := wholeEvidence()
	e.letters[2].ID, e.letters[2].Nonce = 7, "c4"
	for _, how := range []map[letterID]time.Time{e.again, e.unsure} {
		clear(e.again)
		clear(e.unsure)
		e.strange = nil
		how[letterID{groupB, 7}] = at(80_000)
		checkOthersCards(t, e)
	}
}

func checkOthersCards(t *testing.T, e *evidence) {
	t.Helper()
	for _, v := range []dingtalktest.Violation{{TrackID: "c5", Time: at(90_000)}, {Time: at(90_000)}, {TrackID: "c4", Time: at(201_000)}, {TrackID: "c4", Time: at(90_000)}} {
		v.Kind, v.Conversation = dingtalktest.CardAfterFinalize, "cid-b"
		e.strange = append(e.strange, v)
	}
	if f := e.checkAll(); len(f.broken) != 3 {
		t.Errorf("of four calls after the end of cards, the last one after an end without an answer, these are found: %q", f.broken)
	}
}

// An erasure after the call takes the card's name from the reply, and the call stays excused. One before it, and a reply of another
// conversation, excuse nothing.
func TestCheckerExcusesTheCardOfAnErasedReply(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key    sessions.Key
		erased time.Time
		want   int
	}{{groupB, at(91_000), 0}, {groupB, at(20_000), 1}, {groupA, at(91_000), 1}} {
		e := wholeEvidence()
		e.letters[2].ID, e.letters[2].Nonce = 7, "c4-other"
		e.erased = []erasure{{touched: []string{"cid-b"}, begun: tt.erased, receipt: tt.erased.Add(time.Second)}}
		e.unsure[letterID{tt.key, 7}] = at(80_000)
		e.strange = []dingtalktest.Violation{{Kind: dingtalktest.CardAfterFinalize, TrackID: "c4", Conversation: "cid-b", Time: at(90_000)}}
		if f := e.checkAll(); len(f.broken) != tt.want {
			t.Errorf("%v: %q, want %d faults", tt, f.broken, tt.want)
		}
	}
}
