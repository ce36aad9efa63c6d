package identity_test

import (
	"slices"
	"strings"
	"testing"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A person's facts under the encrypted id are theirs once a frame had both ids, and no row is written again for it.
func TestPersonWithTwoIDs(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.ZhangOut, false)
	c.Turn(storetest.ZhangOut, storetest.ZhangNick, "记下了 "+storetest.Secret, c.Speak("z1", storetest.ZhangOut, storetest.ZhangNick, "我的手机号是 "+storetest.Secret, nil))
	d := storetest.OfPerson(storetest.ZhangOut, "手机号是 "+storetest.Secret)
	d.SaidBy, d.StartSeq, d.EndSeq, d.SourceGroup = storetest.ZhangOut, 3, 3, memory.GroupID(storetest.Robot, "cid")
	id := c.Save(d).Saved[0]
	dm := storetest.NewChat(t, s, "dm", storetest.ZhangID, true)
	asker := memory.Asker{Reader: dm.Reader, Person: storetest.ZhangID}

	check := func(when string, facts, messages, read, known int) {
		t.Helper()
		got := []int{
			len(storetest.Must[[]memory.Memory](t)(s.Rights.FactsOf(t.Context(), storetest.Robot, storetest.ZhangID, 0, 10))),
			len(storetest.Must[[]memory.PersonMessage](t)(s.Rights.MessagesOf(t.Context(), storetest.Robot, storetest.ZhangID, 0, 10))),
			len(storetest.Must[[]memory.Memory](t)(s.Facts.Pinned(t.Context(), dm.Reader, 10))),
			len(storetest.Must[[]memory.Hit](t)(s.Search.Search(t.Context(), dm.Reader, memory.Query{Text: "手机号", From: memory.FromMemories, Limit: 5}))),
		}
		for i, want := range []int{facts, messages, read, read} {
			if got[i] != want {
				t.Errorf("%s: facts, messages, pinned and found are %v, want %v", when, got, []int{facts, messages, read, read})
				break
			}
		}
		list, _, err := s.Rights.Known(t.Context(), asker, 0, 10)
		if err != nil || len(list) != known || known > 0 && !list[0].Own {
			t.Errorf("%s: known are %+v (%v), want %d, the person's own", when, list, err, known)
		}
	}
	check("before", 0, 1, 0, 0)

	// Another robot's knowledge says nothing of this one's people.
	c.Introduce("robot-2", storetest.ZhangID, storetest.ZhangOut)
	check("by another robot's frame", 0, 1, 0, 0)
	c.Introduce(storetest.Robot, storetest.ZhangID, storetest.ZhangOut)
	check("by a frame with both ids", 1, 4, 1, 1)
	people := storetest.Must[[]memory.Person](t)(s.Rights.People(t.Context(), storetest.Robot, "", storetest.ZhangNick))
	if len(people) != 1 || people[0].ID != storetest.ZhangID {
		t.Errorf("people of the nick are %+v, want one, by the staff id", people)
	}

	asked := c.Speak("z9", storetest.ZhangID, storetest.ZhangNick, "/forget me yes", nil)
	if before := storetest.Must[[]sessions.Event](t)(s.Erasure.MessagesBefore(t.Context(), c.Reader.Key, storetest.ZhangID, asked.EventID, 5)); len(before) != 2 {
		t.Errorf("%d messages stand before the command, want the two under the other id", len(before))
	}
	f := memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID, Self: true, From: memory.Asking{Lease: asked.Lease, Event: asked.EventID}}
	p := storetest.Must[memory.Preview](t)(s.Erasure.PreviewForget(t.Context(), f))
	if p.Facts != 1 || p.Messages < 3 || len(p.Groups) != 3 {
		t.Errorf("the preview is %+v, want the fact and the messages under both ids", p)
	}
	done := storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), f))
	if done.Memories != 1 {
		t.Errorf("forgetting gave %+v, want fact %d deleted", done, id)
	}
	after := storetest.Dump(t, pool)
	if left := storetest.Lines(after, storetest.Secret); left != "" {
		t.Errorf("left of what was said are\n%s", left)
	}
	left := slices.Collect(strings.Lines(storetest.Lines(after, string(storetest.ZhangOut))))
	if len(left) != 2 || slices.ContainsFunc(left, func(line string) bool { return !strings.Contains(line, "robot-2") }) {
		t.Errorf("left of the other id are, besides what another robot knows,\n%s", left)
	}
}

// An encrypted id that came with two staff ids gives neither of them what was said under it.
func TestSharedSenderID(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.ZhangOut, false)
	c.Introduce(storetest.Robot, storetest.ZhangID, storetest.ZhangOut)
	c.Introduce(storetest.Robot, storetest.LiID, storetest.ZhangOut)
	for _, who := range []sessions.UserID{storetest.ZhangID, storetest.LiID} {
		said := storetest.Must[[]memory.PersonMessage](t)(s.Rights.MessagesOf(t.Context(), storetest.Robot, who, 0, 10))
		if len(said) != 1 {
			t.Errorf("%s said %d messages, want the one under the own staff id", who, len(said))
		}
	}
}

// A click on a button is stored without a nick: the person keeps the one from the message before.
func TestNickBeforeAClick(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.LiID, false)
	c.Speak("m1", storetest.ZhangID, storetest.ZhangNick, "你好", nil)
	c.Speak("m2", storetest.ZhangID, "", "/stop", nil)
	for _, name := range []string{string(storetest.ZhangID), storetest.ZhangNick} {
		if got := storetest.Must[[]memory.Person](t)(s.Rights.People(t.Context(), storetest.Robot, "", name)); len(got) != 1 || got[0].Nick != storetest.ZhangNick {
			t.Errorf("%q is found as %+v", name, got)
		}
	}
}
