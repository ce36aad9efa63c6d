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

func (a asking) limited(used sessions.Used) []bound {
	const daily = "01-02 15:04"
	limits, configured := a.cfg.Current.For(a.Key).Limits, []bound(nil)
	if a.View.Session.ConversationType == sessions.Private {
		limits.GroupTurns, limits.UnidentifiedTurns = 0, 0
	}
	if m := a.Asked[0].Message; m == nil || m.StaffID != "" {
		limits.UnidentifiedTurns = 0
	}
	for _, one := range []bound{
		{wording.OnePersonTurns, limits.PersonTurns, used.PersonTurns, time.TimeOnly},
		{wording.OneGroupTurns, limits.GroupTurns, used.GroupTurns, time.TimeOnly},
		{wording.OneUnidentified, limits.UnidentifiedTurns, used.UnidentifiedTurns, time.TimeOnly},
		{wording.OnePersonTokens, limits.PersonTokens, used.PersonTokens, daily},
		{wording.OneTokens, limits.Tokens, used.Tokens, daily},
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
	return a.list(wording.LimitsHere, a.limited(sessions.Used{}), func(b bound) string { return wording.Thousands(b.most) })
}

// left reads only the windows of the asker: another person's use is private.
func (a asking) left(ctx context.Context) string {
	if len(a.limited(sessions.Used{})) == 0 {
		return "" // the figures are not read for nothing
	}
	s := a.View.Session
	askers := sessions.Askers{Robot: s.RobotCode, People: []sessions.UserID{a.Asked[0].SenderID}}
	if s.ConversationType != sessions.Private {
		askers.Group = s.ConversationID
	}
	used, err := a.store.Used(ctx, askers)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read the use of limits")
		return a.list(wording.LimitsLeft, a.limited(used), func(b bound) string { return "? / " + wording.Thousands(b.most) })
	}
	return a.list(wording.LimitsLeft, a.limited(used), a.rest)
}

func (a asking) rest(b bound) string {
	rest := max(0, b.most-b.use.Count)
	line := wording.Say(wording.LimitLeft, a.Lang, wording.Thousands(b.use.Count), wording.Thousands(b.most), wording.Thousands(rest))
	if b.use.Until.IsZero() {
		return line
	}
	return line + wording.Say(wording.LimitEnds, a.Lang, b.use.Until.In(a.cfg.Location).Format(b.layout))
}
