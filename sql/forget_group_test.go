package sql_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
)

// An erasure by the administrator of one group wipes the memory with its repeats in that group alone. Repeats by the same person in
// another group, or in private, and the memories from there stay as they are, word for word.
func TestForgetWithinAGroup(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	said := "网关的暗号是 " + secret
	c := newChat(t, s, "mine", "u", false)
	c.exchange(zhangID, said, "记下了，"+said) // 3 and 4
	c.exchange(zhangID, "再说一遍，"+said, "好") // 5 and 6
	own := c.flush(6, from(c, said, zhangID, 3)).Saved[0]
	others := []*chat{newChat(t, s, "other", "u", false), newChat(t, s, "dm", zhangID, true)}
	for _, o := range others {
		o.exchange(zhangID, said, "记下了，"+said)
		o.flush(4, from(o, said, zhangID, 3))
	}
	execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1' WHERE conversation_id = 'dm'")
	kept := func(conversation sessions.ConversationID) []string {
		var rows []string
		for line := range strings.Lines(dump(t, pool)) {
			if strings.Contains(line, string(sessions.NewKey(robot, conversation, ""))) {
				rows = append(rows, line)
			}
		}
		slices.Sort(rows)
		return rows
	}
	before := append(kept("other"), kept("dm")...)
	done := must[memory.Forgotten](t)(s.ForgetMemory(t.Context(), own, memory.Asking{GroupOnly: true}))
	if done.Memories != 1 || done.Messages != 4 || done.Sessions != 1 {
		t.Errorf("forgetting gave %+v, want the fact and its two turns of one session", done)
	}
	if left := strings.Join(kept("mine"), ""); strings.Contains(left, secret) {
		t.Errorf("left in the group is\n%s", lines(left, secret))
	}
	if after := append(kept("other"), kept("dm")...); !slices.Equal(after, before) || len(before) < 10 {
		t.Errorf("elsewhere the rows are\n%s\nwant\n%s", strings.Join(after, ""), strings.Join(before, ""))
	}

	// A memory that the team has is not the group's alone: nothing changes.
	c.exchange(zhangID, "发布在周五 "+secret+"2", "好")
	saved := must[memory.Receipt](t)(s.Flush(t.Context(), c.lease, memory.Flush{
		From: 6, Through: 8, Last: true, Drafts: []memory.Draft{from(c, "发布在周五 "+secret+"2", zhangID, 7)},
	})).Saved[0]
	shared := must[memory.Memory](t)(s.Promote(t.Context(), saved, liID))
	whole := dump(t, pool)
	for _, id := range []int64{shared.ID, saved} {
		if _, err := s.ForgetMemory(t.Context(), id, memory.Asking{GroupOnly: true}); !errors.Is(err, memory.ErrOthersKnow) {
			t.Errorf("the erasure of memory %d gave %v", id, err)
		}
	}
	if dump(t, pool) != whole {
		t.Error("a refused erasure changed something")
	}
}
