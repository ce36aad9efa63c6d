package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/wording"
	"ebb/sessions"
)

type bound struct {
	name   wording.Phrase
	most   int
	use    sessions.Use
	layout string // for the window's end
}

// limited lists the configured limits. tokensShare is the asker's part of the tokens of all; 0: they are below a fifth.
func (a asking) limited(used sessions.Used, tokensShare int) []bound {
	const daily = "01-02 15:04"
	limits, configured := a.cfg.Current.For(a.Key).Limits, []bound(nil)
	if a.View.Session.ConversationType == sessions.Private {
		limits.GroupTurns, limits.UnidentifiedTurns = 0, 0
	}
	if m := a.Asked[0].Message; m == nil || m.StaffID != "" {
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

func (a asking) list(heading wording.Phrase, all []bound, describe func(bound) string) string {
	if len(all) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString(wording.Say(heading, a.Lang))
	for _, one := range all {
		fmt.Fprintf(&out, "- %s%s%s\n", wording.Say(one.name, a.Lang), wording.Say(wording.Colon, a.Lang), describe(one))
	}
	return out.String()
}

func (a asking) bounds() string {
	return a.list(wording.LimitsHere, a.limited(sessions.Used{}, 0), func(b bound) string { return wording.Thousands(b.most) })
}

// left reads only the windows of the asker: another person's use is private.
func (a asking) left(ctx context.Context) string {
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

func (a asking) used(ctx context.Context) (used sessions.Used, tokensShare int, err error) {
	s, most := a.View.Session, a.cfg.Current.For(a.Key).Limits.Tokens
	askers := sessions.Askers{Robot: s.RobotCode, Key: a.Key, People: []sessions.UserID{a.Asked[0].SenderID}}
	if s.ConversationType != sessions.Private {
		askers.Group = s.ConversationID
	}
	used, err = a.store.Used(ctx, askers)
	if err != nil || most <= 0 || used.PersonTokens.Count < sessions.Allowance(most, most) {
		return used, 0, err
	}
	others, err := a.store.OthersTokens(ctx, askers.Robot, askers.People[0])
	if others > 0 {
		tokensShare = sessions.Allowance(most, others)
	}
	return used, tokensShare, err
}

func (a asking) rest(b bound) string {
	rest := max(0, b.most-b.use.Count)
	line := wording.Say(wording.LimitLeft, a.Lang, wording.Thousands(b.use.Count), wording.Thousands(b.most), wording.Thousands(rest))
	if b.use.Until.IsZero() {
		return line
	}
	return line + wording.Say(wording.LimitEnds, a.Lang, b.use.Until.In(a.cfg.Location).Format(b.layout))
}
