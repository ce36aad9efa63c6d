package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/parts"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions"
)

// usageCommand is /usage and /whoami.
type usageCommand struct {
	shared *parts.Shared
	roles  roles
	ledger ledger
	counts counts
}

func usageOf(e *env) usageCommand {
	return usageCommand{e.shared, e.roles(), e.stores.Ledger, e.stores.Limits}
}

// whoAmI is /whoami.
func (u usageCommand) whoAmI(_ context.Context, t *view.CommandTurn, _ Call) string {
	m := t.Asked.Message
	role := wording.RoleMember
	switch {
	case m == nil || m.StaffID == "":
		role = wording.RoleOutside
	case u.roles.isAdmin(t.Asked):
		role = wording.RoleAdmin
	}
	answer := wording.Say(wording.WhoAmI, t.Lang, t.Asked.SenderID, wording.Say(role, t.Lang), t.View.Session.ConversationID)
	return answer + u.limitsOf(t).bounds()
}

// show is /usage.
func (u usageCommand) show(ctx context.Context, t *view.CommandTurn, _ Call) string {
	now := u.shared.Now().UTC()
	none := wording.Say(wording.UsageNone, t.Lang)
	since := func(day time.Time) string {
		if spent := spentSince(ctx, u.ledger, t, day, u.shared.Current.Get().Currency); spent != "" {
			return spent
		}
		return none
	}
	return wording.Say(wording.UsageOf, t.Lang, since(now), since(now.AddDate(0, 0, 1-now.Day()))) + u.limitsOf(t).left(ctx)
}

type bound struct {
	name   wording.Phrase
	most   int
	use    sessions.LimitUse
	layout string // for the window's end
}

// personLimits are the limits of a command's sender.
type personLimits struct {
	limits   sessions.Limits // configured
	counts   counts
	location *time.Location
	session  sessions.Session
	asked    sessions.Event // the command
	lang     string
}

func (u usageCommand) limitsOf(t *view.CommandTurn) personLimits {
	return personLimits{u.shared.Current.For(t.Lease.Key).Limits, u.counts, u.shared.Location, t.View.Session, t.Asked, t.Lang}
}

// limited lists the configured limits. tokensShare is the asker's part of the tokens of all; 0: they are below a fifth.
func (a personLimits) limited(used sessions.Used, tokensShare int) []bound {
	const daily = "01-02 15:04"
	limits, configured := a.limits, []bound(nil)
	if a.session.ConversationType == sessions.Private {
		limits.GroupTurns, limits.UnidentifiedTurns = 0, 0
	}
	if m := a.asked.Message; m == nil || m.StaffID != "" {
		limits.UnidentifiedTurns = 0
	}
	groupShare := 0
	if used.GroupOthers > 0 && limits.GroupTurns > 0 {
		groupShare = sessions.Allowance(limits.GroupTurns, used.GroupOthers)
	}
	for _, one := range []bound{
		{wording.OnePersonTurns, limits.PersonTurns, used.PersonTurns, time.TimeOnly},
		{wording.OneGroupTurns, limits.GroupTurns, used.GroupTurns, time.TimeOnly},
		{wording.OneGroupShare, groupShare, used.GroupPart, time.TimeOnly},
		{wording.OneUnidentified, limits.UnidentifiedTurns, used.UnidentifiedTurns, time.TimeOnly},
		{wording.OneScheduled, limits.ScheduledTurns, used.ScheduledTurns, daily},
		{wording.OneCompactions, limits.Compactions, used.Compactions, daily},
		{wording.OnePersonTokens, limits.PersonTokens, used.PersonTokens, daily},
		{wording.OneTokens, limits.Tokens, used.Tokens, daily},
		{wording.OneTokensShare, tokensShare, used.PersonTokens, daily},
	} {
		if one.most > 0 {
			configured = append(configured, one)
		}
	}
	return configured
}

func (a personLimits) list(heading wording.Phrase, all []bound, describe func(bound) string) string {
	if len(all) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString(wording.Say(heading, a.lang))
	for _, one := range all {
		fmt.Fprintf(&out, "- %s%s%s\n", wording.Say(one.name, a.lang), wording.Say(wording.Colon, a.lang), describe(one))
	}
	return out.String()
}

func (a personLimits) bounds() string {
	return a.list(wording.LimitsHere, a.limited(sessions.Used{}, 0), func(b bound) string { return wording.Thousands(b.most) })
}

// left reads only the windows of the asker: another person's use is private.
func (a personLimits) left(ctx context.Context) string {
	if len(a.limited(sessions.Used{}, 0)) == 0 {
		return "" // the figures are not read for nothing
	}
	used, tokensShare, err := a.used(ctx)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read the use of limits")
		return a.list(wording.LimitsLeft, a.limited(used, 0), func(b bound) string { return "? / " + wording.Thousands(b.most) })
	}
	return a.list(wording.LimitsLeft, a.limited(used, tokensShare), a.rest)
}

func (a personLimits) used(ctx context.Context) (used sessions.Used, tokensShare int, err error) {
	s, most := a.session, a.limits.Tokens
	askers := sessions.Askers{Robot: s.RobotCode, Key: s.Key, People: []sessions.UserID{a.asked.SenderID}}
	if s.ConversationType != sessions.Private {
		askers.Group = s.ConversationID
	}
	used, err = a.counts.Used(ctx, askers)
	if err != nil || most <= 0 || used.PersonTokens.Count < sessions.Allowance(most, most) {
		return used, 0, err
	}
	others, err := a.counts.OthersTokens(ctx, askers.Robot, askers.People[0])
	if others > 0 {
		tokensShare = sessions.Allowance(most, others)
	}
	return used, tokensShare, err
}

func (a personLimits) rest(b bound) string {
	rest := max(0, b.most-b.use.Count)
	line := wording.Say(wording.LimitLeft, a.lang, wording.Thousands(b.use.Count), wording.Thousands(b.most), wording.Thousands(rest))
	if b.use.Until.IsZero() {
		return line
	}
	return line + wording.Say(wording.LimitEnds, a.lang, b.use.Until.In(a.location).Format(b.layout))
}
