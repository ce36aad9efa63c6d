package sql_test

import (
	"testing"

	"ebb/memory"
	"ebb/sessions"
)

// quiet commits a turn without an answer, as one that a limit or a quiet stop ends.
func (c *chat) quiet(taken ...sessions.Accepted) {
	c.t.Helper()
	t := sessions.Turn{}
	for _, a := range taken {
		t.Taken, t.TakenTokens = append(t.Taken, a.EventID), append(t.TakenTokens, 5)
	}
	must[sessions.Committed](c.t)(c.store.Commit(c.t.Context(), c.lease, t))
}

// A turn without an answer does not take the answer of the next turn: the answer to another member stays. The same holds for the
// preview, for the log of the one who asks, for a single message, and for the facts that turns saved.
func TestATurnWithoutAnAnswerIsItsOwn(t *testing.T) {
	t.Parallel()
	t.Run("a person", func(t *testing.T) {
		t.Parallel()
		s, pool, c := openChat(t)
		c.quiet(c.speak("z1", zhangID, zhangNick, "快点回答我紫色大象", nil))
		c.turn(liID, "李娜", "会议在三点整", c.speak("l1", liID, "李娜", "几点开会呢", nil))
		c.turn(zhangID, zhangNick, "张的答复内容", c.speak("z2", zhangID, zhangNick, "第二个问题", nil))
		c.quiet(c.speak("l2", liID, "李娜", "李娜的安静消息", nil))
		p := must[memory.Preview](t)(s.PreviewForget(t.Context(), memory.Forget{Robot: robot, Person: zhangID}))
		if p.Messages != 2 || p.Answers != 1 {
			t.Errorf("the preview counts %d messages and %d answers, want 2 and 1", p.Messages, p.Answers)
		}
		forgetZhang(t, s)
		gone(t, pool, "紫色大象", "张的答复内容", "第二个问题")
		stays(t, pool, "会议在三点整", "几点开会呢", "李娜的安静消息")
	})
	t.Run("one message", func(t *testing.T) {
		t.Parallel()
		s, pool, c := openChat(t)
		first := c.speak("z1", zhangID, zhangNick, "快点回答我紫色大象", nil)
		c.quiet(first)
		c.turn(zhangID, zhangNick, "会议在三点整", c.speak("z2", zhangID, zhangNick, "几点开会呢", nil))
		asked := c.speak("z3", zhangID, zhangNick, "/forget last", nil)
		must[memory.Forgotten](t)(s.ForgetMessage(t.Context(), first.EventID, memory.Asking{Lease: asked.Lease, Event: asked.EventID}))
		gone(t, pool, "紫色大象")
		stays(t, pool, "会议在三点整", "几点开会呢")
	})
	t.Run("a fact", func(t *testing.T) {
		t.Parallel()
		s, pool, c := openChat(t)
		// The quiet turn saved nothing. The next one saved another member's fact, and its time is later than both turns' beginnings.
		c.quiet(c.speak("z1", zhangID, zhangNick, "快点回答我紫色大象", nil))
		asked := c.speak("l1", liID, "李娜", "记住：例会改到四点", nil)
		fact := group(c, "例会改到四点")
		fact.SaidBy = liID
		id := c.save(fact).Saved[0]
		c.turn(liID, "李娜", "记住了", asked)
		execute(t, pool, "UPDATE memories SET created_at = created_at - interval '1 hour'") // the clock of the server was set
		c.forget(id, liID, true)
		gone(t, pool, "例会改到四点")
		stays(t, pool, "紫色大象")
		forgetZhang(t, s)
		gone(t, pool, "紫色大象")
	})
}

// Two people are one turn, which saved a fact of each. One of them stopped it: the fact of the other is of their own turn.
func TestForgetAFactOfAStoppedTurn(t *testing.T) {
	t.Parallel()
	for name, who := range map[string]sessions.UserID{"the one who stopped": zhangID, "the other": liID} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool, c := openChat(t)
			own := c.speak("z1", zhangID, zhangNick, "我的车位是 B2-117", nil)
			other := c.speak("l1", liID, "李娜", "记住：例会改到四点", nil)
			his, hers := group(c, "张伟把车停在地下二层"), group(c, "每周例会从四点开始") // their words alone find neither
			his.SaidBy, hers.SaidBy = zhangID, liID
			c.save(his, hers)
			for range 2 { // the answer of the first may be lost
				if err := s.Pass(t.Context(), c.lease, []sessions.UserID{liID}); err != nil {
					t.Fatal(err)
				}
			}
			stop := c.speak("z2", zhangID, zhangNick, "停", nil)
			must[sessions.Committed](t)(s.Commit(t.Context(), c.lease, sessions.Turn{
				Taken: []int64{own.EventID}, TakenTokens: []int{5}, Stops: []sessions.Event{{ID: stop.EventID, Tokens: 1}},
				Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "（已停止）", Tokens: 3}},
			}))
			c.turn(liID, "李娜", "记住了", other)
			event, goes, kept := own.EventID, his.Content, hers.Content
			if who == liID {
				event, goes, kept = other.EventID, hers.Content, his.Content
			}
			asked := c.speak("f", who, "", "/forget last", nil)
			must[memory.Forgotten](t)(s.ForgetMessage(t.Context(), event, memory.Asking{Lease: asked.Lease, Event: asked.EventID}))
			gone(t, pool, goes)
			stays(t, pool, kept)
		})
	}
}
