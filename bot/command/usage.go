package command

import (
	"context"
	"time"

	"ebb/bot/view"
	"ebb/bot/wording"
)

// whoAmI is /whoami.
func whoAmI(h *Handler, t *view.CommandTurn) string {
	m := t.Asked.Message
	role := wording.RoleMember
	switch {
	case m == nil || m.StaffID == "":
		role = wording.RoleOutside
	case h.isAdmin(t.Asked):
		role = wording.RoleAdmin
	}
	answer := wording.Say(wording.WhoAmI, t.Lang, t.Asked.SenderID, wording.Say(role, t.Lang), t.View.Session.ConversationID)
	return answer + limitsOf(h, t).bounds()
}

// showUsage is /usage.
func showUsage(ctx context.Context, h *Handler, t *view.CommandTurn) string {
	now := h.shared.Now().UTC()
	none := wording.Say(wording.UsageNone, t.Lang)
	since := func(day time.Time) string {
		if spent := spentSince(ctx, h.store, t, day, h.shared.Current.Get().Currency); spent != "" {
			return spent
		}
		return none
	}
	return wording.Say(wording.UsageOf, t.Lang, since(now), since(now.AddDate(0, 0, 1-now.Day()))) + limitsOf(h, t).left(ctx)
}
