package turn

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/llm"
	"ebb/bot/wording"
	"ebb/sessions"
)

// admit counts a turn against the limits, also that of a command that costs. Messages of people over a limit wait behind the others. If only such messages
// remain, the turn becomes one of kindLimited. It has all of them for a limit of the conversation or the installation,
// else those of one person. A person with a message that an earlier attempt counted is not counted again.
func (r *Runner) admit(ctx context.Context, t *Turn) error {
	limits := r.cfg.Current.For(t.Key).Limits
	work := workOf(t, r.handler)
	if work == "" || limits == (sessions.Limits{}) {
		return nil
	}
	a := uncounted(t)
	a.Work = work
	if len(a.People) == 0 {
		return nil
	}
	reached, err := r.store.Admit(ctx, limits, a)
	if err != nil {
		return fmt.Errorf("count turn: %w", err)
	}
	stops := func(person sessions.UserID) *sessions.Reached {
		if !slices.Contains(a.People, person) {
			return nil
		}
		return latest(reached, person)
	}
	take := t.movedFirst(func(e sessions.Event) bool { return stops(e.SenderID) == nil })
	if take == 0 {
		t.plan.Kind, t.reached = kindLimited, stops(t.Asked[0].SenderID)
		take = t.plan.Take
		if person := t.reached.Person; person != "" {
			take = t.movedFirst(func(e sessions.Event) bool { return e.SenderID == person })
		}
	}
	t.plan.Take = take
	t.Asked = t.Asked[:take]
	return nil
}

// workOf is empty for a turn that costs nothing.
func workOf(t *Turn, c Commands) sessions.Work {
	switch {
	case t.plan.Kind == kindCommand:
		return c.Work(t.Asked[0])
	case t.plan.Kind != kindAsk:
		return ""
	case t.Asked[0].IsScheduled():
		return sessions.Asking
	}
	return sessions.Answering
}

// uncounted counts the group with the first asker.
func uncounted(t *Turn) sessions.Askers {
	a := askersOf(t)
	a.Key = t.Key
	isCounted := func(p sessions.UserID) bool {
		return slices.ContainsFunc(t.Asked, func(e sessions.Event) bool { return e.Admitted && e.SenderID == p })
	}
	if slices.ContainsFunc(a.People, isCounted) {
		a.Group = ""
	}
	a.People, a.Unidentified = slices.DeleteFunc(a.People, isCounted), slices.DeleteFunc(a.Unidentified, isCounted)
	for _, e := range t.Asked {
		if slices.Contains(a.People, e.SenderID) {
			a.Asked = append(a.Asked, sessions.AskedMessage{Event: e.ID, By: e.SenderID})
		}
	}
	return a
}

func askersOf(t *Turn) sessions.Askers {
	s := t.View.Session
	a := sessions.Askers{Robot: s.RobotCode}
	if s.ConversationType != sessions.Private {
		a.Group = s.ConversationID
	}
	for _, e := range t.Asked {
		if slices.Contains(a.People, e.SenderID) {
			continue
		}
		a.People = append(a.People, e.SenderID)
		if a.Group != "" && e.Message != nil && e.Message.StaffID == "" {
			a.Unidentified = append(a.Unidentified, e.SenderID)
		}
	}
	return a
}

func latest(reached []sessions.Reached, person sessions.UserID) *sessions.Reached {
	var last *sessions.Reached
	for i, one := range reached {
		if (one.Person == "" || one.Person == person) && (last == nil || one.Until.After(last.Until)) {
			last = &reached[i]
		}
	}
	return last
}

func (t *Turn) movedFirst(match func(sessions.Event) bool) int {
	moveFirst(t.View.Pending[:len(t.Asked)], match)
	return moveFirst(t.Asked, match)
}

// moveFirst moves matching events before the others, and returns their number.
func moveFirst(events []sessions.Event, match func(sessions.Event) bool) int {
	var yes, no []sessions.Event
	for _, e := range events {
		if match(e) {
			yes = append(yes, e)
		} else {
			no = append(no, e)
		}
	}
	copy(events, append(yes, no...))
	return len(yes)
}

// notifyLimit is empty where the notice was given in this window, or the group has had too many.
func (r *Runner) notifyLimit(ctx context.Context, t *Turn) (string, error) {
	limit := t.reached
	n := sessions.Notice{
		Kind: string(limit.Limit), Robot: t.View.Session.RobotCode, Subject: string(limit.Person), Until: limit.Until, By: t.Asked[0].MsgID,
	}
	if limit.Person == "" {
		n.Subject = string(t.View.Session.ConversationID)
	}
	if t.View.Session.ConversationType != sessions.Private {
		n.Group = t.View.Session.ConversationID
	}
	due, err := r.store.Notify(ctx, n)
	if err != nil || !due {
		return "", err
	}
	r.stats.LimitReached(limit.Limit)
	limits := r.cfg.Current.For(t.Key).Limits
	switch at := limit.Until.In(r.cfg.Location); limit.Limit {
	case sessions.PersonTurns:
		return wording.Say(wording.LimitPersonTurns, t.Lang, limits.PersonTurns, at.Format(time.TimeOnly)), nil
	case sessions.GroupTurns:
		return wording.Say(wording.LimitGroupTurns, t.Lang, limits.GroupTurns, at.Format(time.TimeOnly)), nil
	case sessions.UnidentifiedTurns:
		return wording.Say(wording.LimitUnidentified, t.Lang, limits.UnidentifiedTurns, at.Format(time.TimeOnly)), nil
	case sessions.ScheduledTurns:
		return wording.Say(wording.LimitScheduled, t.Lang, limits.ScheduledTurns, at.Format("01-02 15:04")), nil
	case sessions.Compactions:
		return wording.Say(wording.LimitCompactions, t.Lang, limits.Compactions, at.Format("01-02 15:04")), nil
	case sessions.GroupShare:
		return wording.Say(wording.LimitGroupShare, t.Lang, at.Format(time.TimeOnly)), nil
	case sessions.TokensShare:
		return wording.Say(wording.LimitTokensShare, t.Lang, at.Format("01-02 15:04")), nil
	case sessions.PersonTokens:
		return wording.Say(wording.LimitPersonTokens, t.Lang, wording.Thousands(limits.PersonTokens), at.Format("01-02 15:04")), nil
	default:
		return wording.Say(wording.LimitTokens, t.Lang, at.Format("01-02 15:04")), nil
	}
}

// spend divides the tokens: each asker has those of the own words, and an equal part of the rest. A failure is logged: the answer is more important.
func (r *Runner) spend(ctx context.Context, t *Turn, used sessions.Usage) {
	tokens, limits := used.Prompt+used.Completion, r.cfg.Current.For(t.Key).Limits
	if limits.PersonTokens <= 0 && limits.Tokens <= 0 || tokens <= 0 {
		return
	}
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.CommitTimeout)
	defer stop()
	who := askersOf(t)
	own := make([]int, len(who.People))
	for _, e := range t.Asked {
		own[slices.Index(who.People, e.SenderID)] += e.Tokens
	}
	spent := make(map[sessions.UserID]int, len(own))
	for i, part := range sessions.SharesOf(tokens, own) {
		spent[who.People[i]] = part
	}
	if err := r.store.SpendTokens(one, who.Robot, spent); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Tokens of a turn not counted for its askers")
	}
}

// metered counts the tokens of a command for its person, whatever becomes of the answer.
func metered(ctx context.Context, r *Runner, t *Turn) string {
	work, used := llm.WithMeter(ctx)
	defer func() { r.spend(ctx, t, used()) }()
	return r.handler.Command(work, &t.Exchange)
}
