package erasure_test

import (
	"testing"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/storetest"
)

// quiet commits a turn without an answer, as one that a limit or a quiet stop ends.
func quiet(c *storetest.Chat, taken ...sessions.Accepted) {
	c.T.Helper()
	t := sessions.TurnResult{}
	for _, a := range taken {
		t.Taken, t.TakenTokens = append(t.Taken, a.EventID), append(t.TakenTokens, 5)
	}
	storetest.Must[sessions.Committed](c.T)(c.Store.Turns.Commit(c.T.Context(), c.Lease, t))
}

// A turn without an answer does not take the answer of the next turn: the answer to another member stays. The same holds for the
// preview, for the log of the one who asks, for a single message, and for the facts that turns saved.
func TestATurnWithoutAnAnswerIsItsOwn(t *testing.T) {
	t.Parallel()
	t.Run("a person", func(t *testing.T) {
		t.Parallel()
		s, pool, c := storetest.OpenChat(t)
		quiet(c, c.Speak("z1", storetest.ZhangID, storetest.ZhangNick, "快点回答我紫色大象", nil))
		c.Turn(storetest.LiID, "李娜", "会议在三点整", c.Speak("l1", storetest.LiID, "李娜", "几点开会呢", nil))
		c.Turn(storetest.ZhangID, storetest.ZhangNick, "张的答复内容", c.Speak("z2", storetest.ZhangID, storetest.ZhangNick, "第二个问题", nil))
		quiet(c, c.Speak("l2", storetest.LiID, "李娜", "李娜的安静消息", nil))
		p := storetest.Must[memory.Preview](t)(s.Erasure.PreviewForget(t.Context(), memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID}))
		if p.Messages != 2 || p.Answers != 1 {
			t.Errorf("the preview counts %d messages and %d answers, want 2 and 1", p.Messages, p.Answers)
		}
		storetest.ForgetZhang(t, s)
		storetest.WantGone(t, pool, "紫色大象", "张的答复内容", "第二个问题")
		stays(t, pool, "会议在三点整", "几点开会呢", "李娜的安静消息")
	})
	t.Run("one message", func(t *testing.T) {
		t.Parallel()
		s, pool, c := storetest.OpenChat(t)
		first := c.Speak("z1", storetest.ZhangID, storetest.ZhangNick, "快点回答我紫色大象", nil)
		quiet(c, first)
		c.Turn(storetest.ZhangID, storetest.ZhangNick, "会议在三点整", c.Speak("z2", storetest.ZhangID, storetest.ZhangNick, "几点开会呢", nil))
		asked := c.Speak("z3", storetest.ZhangID, storetest.ZhangNick, "/forget last", nil)
		storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetMessage(t.Context(), first.EventID, memory.Asking{Lease: asked.Lease, Event: asked.EventID}))
		storetest.WantGone(t, pool, "紫色大象")
		stays(t, pool, "会议在三点整", "几点开会呢")
	})
	t.Run("a fact", func(t *testing.T) {
		t.Parallel()
		s, pool, c := storetest.OpenChat(t)
		// The quiet turn saved nothing. The next one saved another member's fact, and its time is later than both turns' beginnings.
		quiet(c, c.Speak("z1", storetest.ZhangID, storetest.ZhangNick, "快点回答我紫色大象", nil))
		asked := c.Speak("l1", storetest.LiID, "李娜", "记住：例会改到四点", nil)
		fact := storetest.GroupFact(c, "例会改到四点")
		fact.SaidBy = storetest.LiID
		id := c.Save(fact).Saved[0]
		c.Turn(storetest.LiID, "李娜", "记住了", asked)
		storetest.Execute(t, pool, "UPDATE memories SET created_at = created_at - interval '1 hour'") // the clock of the server was set
		forget(c, id, storetest.LiID, true)
		storetest.WantGone(t, pool, "例会改到四点")
		stays(t, pool, "紫色大象")
		storetest.ForgetZhang(t, s)
		storetest.WantGone(t, pool, "紫色大象")
	})
}

// Two people are one turn, which saved a fact of each. One of them stopped it: the fact of the other is of their own turn.
func TestForgetAFactOfAStoppedTurn(t *testing.T) {
	t.Parallel()
	for name, who := range map[string]sessions.UserID{"the one who stopped": storetest.ZhangID, "the other": storetest.LiID} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool, c := storetest.OpenChat(t)
			own := c.Speak("z1", storetest.ZhangID, storetest.ZhangNick, "我的车位是 B2-117", nil)
			other := c.Speak("l1", storetest.LiID, "李娜", "记住：例会改到四点", nil)
			his, hers := storetest.GroupFact(c, "张伟把车停在地下二层"), storetest.GroupFact(c, "每周例会从四点开始") // their words alone find neither
			his.SaidBy, hers.SaidBy = storetest.ZhangID, storetest.LiID
			c.Save(his, hers)
			for range 2 { // the answer of the first may be lost
				if err := s.Facts.Pass(t.Context(), c.Lease, []sessions.UserID{storetest.LiID}); err != nil {
					t.Fatal(err)
				}
			}
			stop := c.Speak("z2", storetest.ZhangID, storetest.ZhangNick, "停", nil)
			storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{
				Taken: []int64{own.EventID}, TakenTokens: []int{5}, Stops: []sessions.Event{{ID: stop.EventID, Tokens: 1}},
				Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "（已停止）", Tokens: 3}},
			}))
			c.Turn(storetest.LiID, "李娜", "记住了", other)
			event, goes, kept := own.EventID, his.Content, hers.Content
			if who == storetest.LiID {
				event, goes, kept = other.EventID, hers.Content, his.Content
			}
			asked := c.Speak("f", who, "", "/forget last", nil)
			storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetMessage(t.Context(), event, memory.Asking{Lease: asked.Lease, Event: asked.EventID}))
			storetest.WantGone(t, pool, goes)
			stays(t, pool, kept)
		})
	}
}
