package stream

import (
	"context"
	"fmt"
	"testing"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/payload"
	"github.com/rs/zerolog"

	"ebb/bot/chat"
)

// A press names the organization of its id, and a message that of the robot: the same id of another organization is another person's.
func TestClickNamesItsOrganization(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	g := start(t, s, nil)
	var by []string
	g.OnClick(func(_ context.Context, c chat.Click) chat.Clicked {
		by = append(by, fmt.Sprint(c.By, " of ", c.Organization))
		return chat.Clicked{}
	})
	s.Say(inGroup)
	own := g.Next(t).Organization
	for _, org := range []string{own, "dingother", ""} {
		g.clicks.judgeClick(zerolog.Nop().WithContext(t.Context()), &payload.DataFrame{Data: fmt.Sprintf(`{"outTrackId":"card","corpId":%q,"userId":"u0001","content":{"cardPrivateData":{"actionIds":["stop"]}}}`, org)})
	}
	if got := fmt.Sprint(by); own == "" || got != "[u0001 of "+own+" u0001 of dingother u0001 of ]" {
		t.Errorf("pressed by %s, and the robot is of %q", got, own)
	}
}
