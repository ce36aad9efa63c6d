package erasure_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// An erasure by the administrator of one group wipes the memory with its repeats in that group alone. Repeats by the same person in
// another group, or in private, and the memories from there stay as they are, word for word.
func TestForgetWithinAGroup(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	said := "网关的暗号是 " + storetest.Secret
	c := storetest.NewChat(t, s, "mine", "u", false)
	c.Exchange(storetest.ZhangID, said, "记下了，"+said) // 3 and 4
	c.Exchange(storetest.ZhangID, "再说一遍，"+said, "好") // 5 and 6
	own := flush(c, 6, storetest.SaidBy(c, said, storetest.ZhangID, 3)).Saved[0]
	others := []*storetest.Chat{storetest.NewChat(t, s, "other", "u", false), storetest.NewChat(t, s, "dm", storetest.ZhangID, true)}
	for _, o := range others {
		o.Exchange(storetest.ZhangID, said, "记下了，"+said)
		flush(o, 4, storetest.SaidBy(o, said, storetest.ZhangID, 3))
	}
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1' WHERE conversation_id = 'dm'")
	kept := func(conversation sessions.ConversationID) []string {
		var rows []string
		for line := range strings.Lines(storetest.Dump(t, pool)) {
			if strings.Contains(line, string(sessions.NewKey(storetest.Robot, conversation, ""))) {
				rows = append(rows, line)
			}
		}
		slices.Sort(rows)
		return rows
	}
	before := append(kept("other"), kept("dm")...)
	done := storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetMemory(t.Context(), own, memory.Asking{GroupOnly: true}))
	if done.Memories != 1 || done.Messages != 4 || done.Sessions != 1 {
		t.Errorf("forgetting gave %+v, want the fact and its two turns of one session", done)
	}
	if left := strings.Join(kept("mine"), ""); strings.Contains(left, storetest.Secret) {
		t.Errorf("left in the group is\n%s", storetest.Lines(left, storetest.Secret))
	}
	if after := append(kept("other"), kept("dm")...); !slices.Equal(after, before) || len(before) < 10 {
		t.Errorf("elsewhere the rows are\n%s\nwant\n%s", strings.Join(after, ""), strings.Join(before, ""))
	}

	// A memory that the team has is not the group's alone: nothing changes.
	c.Exchange(storetest.ZhangID, "发布在周五 "+storetest.Secret+"2", "好")
	saved := storetest.Must[memory.Receipt](t)(s.Flushes.Flush(t.Context(), c.Lease, memory.Flush{
		From: 6, Through: 8, Last: true, Drafts: []memory.Draft{storetest.SaidBy(c, "发布在周五 "+storetest.Secret+"2", storetest.ZhangID, 7)},
	})).Saved[0]
	shared := storetest.Must[memory.Memory](t)(s.Rights.Promote(t.Context(), saved, storetest.LiID))
	whole := storetest.Dump(t, pool)
	for _, id := range []int64{shared.ID, saved} {
		if _, err := s.Erasure.ForgetMemory(t.Context(), id, memory.Asking{GroupOnly: true}); !errors.Is(err, memory.ErrOthersKnow) {
			t.Errorf("the erasure of memory %d gave %v", id, err)
		}
	}
	if storetest.Dump(t, pool) != whole {
		t.Error("a refused erasure changed something")
	}
}

// A group's erasure of a person leaves a fact that the team has, and its preview counts what goes.
func TestPreviewWithinAGroupLeavesOutTheTeams(t *testing.T) {
	t.Parallel()
	s, _, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangID, "网关的暗号是 "+storetest.Secret, "好") // 3 and 4
	c.Exchange(storetest.ZhangID, "发布在周五下午", "好")                  // 5 and 6
	saved := flush(c, 6, storetest.SaidBy(c, "网关的暗号是 "+storetest.Secret, storetest.ZhangID, 3), storetest.SaidBy(c, "发布在周五下午", storetest.ZhangID, 5)).Saved
	storetest.Must[memory.Memory](t)(s.Rights.Promote(t.Context(), saved[1], storetest.LiID))
	forget := memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID, Group: c.Reader.Key}
	shown := storetest.Must[memory.Preview](t)(s.Erasure.PreviewForget(t.Context(), forget))
	done := storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), forget))
	if shown.Facts != done.Memories || done.Memories != 1 {
		t.Errorf("the preview shows %d facts, and %d go, want 1", shown.Facts, done.Memories)
	}
}
