package command

import (
	"context"
	"time"

	"ebb/bot/view"
	"ebb/bot/wording"
)

type asking struct {
	*Handler
	*view.Exchange
}

func (a asking) who() string {
	m := a.Asked[0].Message
	role := wording.RoleMember
	switch {
	case m == nil || m.StaffID == "":
		role = wording.RoleOutside
	case a.isAdmin(a.Asked[0]):
		role = wording.RoleAdmin
	}
	answer := wording.Say(wording.WhoAmI, a.Lang, a.Asked[0].SenderID, wording.Say(role, a.Lang), a.View.Session.ConversationID)
	return answer + a.bounds()
}

func (a asking) usage(ctx context.Context) string {
	now := a.now().UTC()
	none := wording.Say(wording.UsageNone, a.Lang)
	since := func(day time.Time) string {
		if spent := spentSince(ctx, a.store, a.Exchange, day, a.cfg.Current.Get().Currency); spent != "" {
			return spent
		}
		return none
	}
	return wording.Say(wording.UsageOf, a.Lang, since(now), since(now.AddDate(0, 0, 1-now.Day()))) + a.left(ctx)
}
