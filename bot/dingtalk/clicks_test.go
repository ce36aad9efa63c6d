package dingtalk

import (
	"context"
	"fmt"
	"testing"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/payload"
	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/sessions"
)

// A press by an id of another organization is a press of an unknown person: the id may be that of a member or an administrator here.
func TestClickOfAnotherOrganization(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	g := start(t, s, nil)
	var by []sessions.UserID
	g.OnClick(func(_ context.Context, c chat.Click) chat.Clicked {
		by = append(by, c.By)
		return chat.Clicked{}
	})
	s.Say(inGroup)
	g.next(t)
	own := g.org.Load()
	if own == nil {
		t.Fatal("the organization is unknown after a message")
	}
	in := intake{t: g.Transport, ctx: zerolog.Nop().WithContext(t.Context())}
	for _, org := range []string{*own, "dingother", ""} {
		in.click(&payload.DataFrame{Data: fmt.Sprintf(`{"outTrackId":"card","corpId":%q,"userId":"u0001","content":{"cardPrivateData":{"actionIds":["stop"]}}}`, org)})
	}
	if got := fmt.Sprint(by); got != "[u0001  u0001]" {
		t.Errorf("pressed by %s", got)
	}
}
