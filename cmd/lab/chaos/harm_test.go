package chaos

import (
	"strings"
	"testing"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/sessions"
	"ebb/sql/inspect"
)

// The halves compare ordinary members alone. An unanswered question counts as asked.
func TestHalvesCompareOrdinaryMembers(t *testing.T) {
	t.Parallel()
	said := map[string]remark{}
	add := func(mark string, pushed, took int, change func(*remark)) {
		u := remark{mark: mark, pushed: at(pushed)}
		if took > 0 {
			u.answeredAt = at(pushed + took)
		}
		if change != nil {
			change(&u)
		}
		said[mark] = u
	}
	add("q0000001", 100, 200, nil)
	add("q0000002", 200, 0, nil)
	add("q0000003", 900, 9000, harmful)
	add("q0000004", 1100, 700, nil)
	add("q0000005", 1200, 9000, func(u *remark) { u.command = true })
	before, during := halves(said, at(1000))
	ms := time.Millisecond
	if want := (share{asked: 2, answered: 1, p50: 200 * ms, p90: 200 * ms, p99: 200 * ms}); before != want {
		t.Errorf("before: %+v, want %+v", before, want)
	}
	if want := (share{asked: 1, answered: 1, p50: 700 * ms, p90: 700 * ms, p99: 700 * ms}); during != want {
		t.Errorf("during: %+v, want %+v", during, want)
	}
	if _, broken := harmReport(before, during); len(broken) != 3 {
		t.Errorf("3.5 times slower: found %q, want three breaches", broken)
	}
	during.p50, during.p90, during.p99 = 299*ms, 300*ms, 250*ms
	if table, broken := harmReport(before, during); len(broken) > 0 || !strings.Contains(table, "p90 with them: x 1.50") {
		t.Errorf("1.5 times slower: found %q in\n%s", broken, table)
	}
}

// Members who mean harm act in the second half alone, and with no other trouble where that is switched off.
func TestHarmIsInTheSecondHalf(t *testing.T) {
	t.Parallel()
	plan := planFaults(Command{For: time.Minute, Seed: 7, Replicas: 2, Every: time.Second, Harm: time.Second, Calm: true})
	if len(plan) < 20 {
		t.Fatalf("%d acts in half a minute, want about 30", len(plan))
	}
	for _, f := range plan {
		if f.at < 30*time.Second || !strings.HasPrefix(f.kind, "harm ") {
			t.Errorf("planned %+v, want only harm in the second half", f)
		}
	}
}

// An order to stop passes what waits, and its answer may quote the question that it stopped.
func TestCheckerAllowsAnOrderToStop(t *testing.T) {
	t.Parallel()
	e := wholeEvidence()
	stop := remark{mark: "q0000009", place: "cid-a", thread: "cid-a", sent: at(150), pushed: at(150), acked: at(160)}
	harmful(&stop)
	e.said["q0000009"] = stop
	e.log = append(e.log,
		inspect.Logged{Key: groupA, Seq: 6, Role: sessions.RoleUser, State: sessions.Done, MsgID: "q0000009"},
		inspect.Logged{Key: groupA, Seq: 7, Role: sessions.RoleAssistant, State: sessions.Done, Content: "已停止回答“q0000001 请问”"})
	e.letters = append(e.letters, e.letters[0])
	e.letters[len(e.letters)-1].Text = "已停止回答“q0000001 请问”"
	e.replies = append(e.replies, dingtalktest.Reply{Conversation: "cid-a", Text: "已停止回答“q0000001 请问”"})
	if f := e.checkAll(); len(f.broken) > 0 {
		t.Errorf("found %q", f.broken)
	}
}

// The notice of a limit is bounded, so a message over it may have no answer. Another one has.
func TestCheckerAllowsALimitWithoutANotice(t *testing.T) {
	t.Parallel()
	for _, harm := range []bool{true, false} {
		e := wholeEvidence()
		over := remark{mark: "q0000009", place: "cid-a", thread: "cid-a", sent: at(150), pushed: at(150), acked: at(160), wiped: true, harm: harm}
		e.said["q0000009"] = over
		e.log = append(e.log, inspect.Logged{Key: groupA, Seq: 6, Role: sessions.RoleUser, State: sessions.Done, MsgID: "q0000009"})
		if f := e.checkAll(); harm != (len(f.broken) == 0) {
			t.Errorf("from a member who means harm %t: found %q", harm, f.broken)
		}
	}
}
