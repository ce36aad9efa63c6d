package dingtalk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/payload"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/sessions"
)

func TestDecodeReadsEveryVariantOfTheSimulator(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, dingtalktest.Fast())
	g := start(t, s, nil)
	for name, v := range dingtalktest.Variants() {
		v.MsgID = "variant " + name
		s.Say(v)
		m := g.next(t)
		if string(m.ID) != v.MsgID {
			t.Fatalf("%s: got message %q", name, m.ID)
		}
		if m.Text == "" && m.Quote == nil && !m.OverQuota && strings.TrimSpace(v.Text) != "" {
			t.Errorf("%s: nothing of %q was read", name, v.Text)
		}
		if strings.Contains(fmt.Sprint(m.Text), "map[") {
			t.Errorf("%s: the text is Go's own notation: %q", name, m.Text)
		}
	}
}

// A panic in the decoder refuses the frame, frees what it held, and ends nothing.
func TestPanicOfDecoderRefusesTheFrame(t *testing.T) {
	t.Parallel()
	tr := newTransport(t, "http://127.0.0.1:1", nil)
	in := intake{t: tr, ctx: testContext(t), decode: func(string, sessions.RobotCode) (sessions.Message, error) { panic("secret") }}
	for range 2 * maxHeldFrames {
		ack := in.takeFrame(&payload.DataFrame{Data: "{}"}, 2)()
		if ack.Code != 500 || strings.Contains(ack.Message+ack.Data, "secret") {
			t.Fatalf("the ack is %+v", ack)
		}
	}
	if n := tr.Stats().Unreadable; n != 2*maxHeldFrames {
		t.Errorf("%d frames counted as unreadable", n)
	}
}
