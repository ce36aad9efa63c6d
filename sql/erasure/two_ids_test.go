package erasure_test

import (
	"testing"

	"ebb/memory"
	"ebb/sql/storetest"
)

// A fact goes with the messages that its author sent under either id.
func TestForgetFactSaidUnderTwoIDs(t *testing.T) {
	t.Parallel()
	_, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangOut, "暗号是 "+storetest.Secret, "好")     // 3 and 4
	c.Exchange(storetest.ZhangID, "再说一遍，暗号是 "+storetest.Secret, "好") // 5 and 6
	c.Introduce(storetest.Robot, storetest.ZhangID, storetest.ZhangOut)
	forget(c, flush(c, 6, storetest.SaidBy(c, "暗号是 "+storetest.Secret, storetest.ZhangID, 5)).Saved[0], storetest.ZhangID, true)
	storetest.WantGone(t, pool, storetest.Secret)
}

// A message sent under one id goes with the fact that was saved under the other.
func TestForgetMessageWithFactUnderOtherID(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	said := c.Speak("z1", storetest.ZhangOut, storetest.ZhangNick, "暗号是 "+storetest.Secret, nil) // 3
	c.Turn(storetest.ZhangOut, storetest.ZhangNick, "好", said)
	c.Introduce(storetest.Robot, storetest.ZhangID, storetest.ZhangOut)
	flush(c, 4, storetest.SaidBy(c, "暗号是 "+storetest.Secret, storetest.ZhangID, 3))
	asked := c.Speak("z2", storetest.ZhangID, storetest.ZhangNick, "/forget last", nil)
	if _, err := s.Erasure.ForgetMessage(t.Context(), said.EventID, memory.Asking{Lease: asked.Lease, Event: asked.EventID}); err != nil {
		t.Fatal(err)
	}
	storetest.WantGone(t, pool, storetest.Secret)
}
