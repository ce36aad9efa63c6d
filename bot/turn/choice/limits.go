package choice

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/parts"
	"ebb/bot/wording"
	"ebb/sessions"
)

// Counts has the counts that limits bound.
type Counts interface {
	Admit(ctx context.Context, limits sessions.Limits, a sessions.Askers) ([]sessions.Reached, error)
	Used(ctx context.Context, a sessions.Askers) (sessions.Used, error)
	SpendTokens(ctx context.Context, robot sessions.RobotCode, spent map[sessions.UserID]int) error
	Notify(ctx context.Context, n sessions.Notice) (bool, error)
}

// Limits counts turns and tokens against the limits of people, groups and the installation.
type Limits struct {
	shared  *parts.Shared
	counts  Counts
	reached func(limit sessions.Limit) // counts notices
}

// admit counts a turn against the limits, also that of a command that costs. Messages of people over a limit wait behind the others. If only such messages
// remain, the turn becomes one of [Limited]. It has all of them for a limit of the conversation or the installation,
// else those of one person. A person with a message that an earlier attempt counted is not counted again.
func (l Limits) admit(ctx context.Context, made Choice, commands Commands) (Choice, error) {
	limits := l.shared.Current.For(made.Lease.Key).Limits
	work := workOf(made, commands)
	if work == "" || limits == (sessions.Limits{}) {
		return made, nil
	}
	a := uncounted(made)
	a.Work = work
	if len(a.People) == 0 {
		return made, nil
	}
	one, stop := context.WithTimeout(ctx, l.shared.CommitTimeout) // a statement that hangs frees the slot
	defer stop()
	reached, err := l.counts.Admit(one, limits, a)
	if err != nil {
		return made, fmt.Errorf("count turn: %w", err)
	}
	stops := func(person sessions.UserID) *sessions.Reached {
		if !slices.Contains(a.People, person) {
			return nil
		}
		return latest(reached, person)
	}
	take := made.MoveFirst(func(e sessions.Event) bool { return stops(e.SenderID) == nil })
	if take == 0 {
		made.Kind, made.Reached = Limited, stops(made.Asked[0].SenderID)
		take = len(made.Asked)
		if person := made.Reached.Person; person != "" {
			take = made.MoveFirst(func(e sessions.Event) bool { return e.SenderID == person })
		}
	}
	made.Asked = made.Asked[:take]
	return made, nil
}

// workOf is empty for a turn that costs nothing.
func workOf(made Choice, c Commands) sessions.Work {
	switch {
	case made.Kind == Command:
		return c.Work(made.Asked[0])
	case made.Kind != Ask:
		return ""
	case made.Asked[0].IsScheduled():
		return sessions.Asking
	}
	return sessions.Answering
}

// uncounted counts the group with the first asker.
func uncounted(made Choice) sessions.Askers {
	a := askersOf(made)
	a.Key = made.Lease.Key
	isCounted := func(p sessions.UserID) bool {
		return slices.ContainsFunc(made.Asked, func(e sessions.Event) bool { return e.Admitted && e.SenderID == p })
	}
	if slices.ContainsFunc(a.People, isCounted) {
		a.Group = ""
	}
	a.People, a.Unidentified = slices.DeleteFunc(a.People, isCounted), slices.DeleteFunc(a.Unidentified, isCounted)
	for _, e := range made.Asked {
		if slices.Contains(a.People, e.SenderID) {
			a.Asked = append(a.Asked, sessions.AskedMessage{Event: e.ID, By: e.SenderID})
		}
	}
	return a
}

func askersOf(made Choice) sessions.Askers {
	s := made.View.Session
	a := sessions.Askers{Robot: s.RobotCode}
	if s.ConversationType != sessions.Private {
		a.Group = s.ConversationID
	}
	for _, e := range made.Asked {
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

// notice is empty where the notice was given in this window, or the group has had too many.
func (l Limits) notice(ctx context.Context, made Choice) (string, error) {
	limit := made.Reached
	n := sessions.Notice{
		Kind: string(limit.Limit), Robot: made.View.Session.RobotCode, Subject: string(limit.Person), Until: limit.Until, By: made.Asked[0].MsgID,
	}
	if limit.Person == "" {
		n.Subject = string(made.View.Session.ConversationID)
	}
	if made.View.Session.ConversationType != sessions.Private {
		n.Group = made.View.Session.ConversationID
	}
	one, stop := context.WithTimeout(ctx, l.shared.CommitTimeout)
	defer stop()
	due, err := l.counts.Notify(one, n)
	if err != nil || !due {
		return "", err
	}
	l.reached(limit.Limit)
	limits := l.shared.Current.For(made.Lease.Key).Limits
	switch at := limit.Until.In(l.shared.Location); limit.Limit {
	case sessions.PersonTurns:
		return wording.Say(wording.LimitPersonTurns, made.Lang, limits.PersonTurns, at.Format(time.TimeOnly)), nil
	case sessions.GroupTurns:
		return wording.Say(wording.LimitGroupTurns, made.Lang, limits.GroupTurns, at.Format(time.TimeOnly)), nil
	case sessions.UnidentifiedTurns:
		return wording.Say(wording.LimitUnidentified, made.Lang, limits.UnidentifiedTurns, at.Format(time.TimeOnly)), nil
	case sessions.ScheduledTurns:
		return wording.Say(wording.LimitScheduled, made.Lang, limits.ScheduledTurns, at.Format("01-02 15:04")), nil
	case sessions.Compactions:
		return wording.Say(wording.LimitCompactions, made.Lang, limits.Compactions, at.Format("01-02 15:04")), nil
	case sessions.GroupShare:
		return wording.Say(wording.LimitGroupShare, made.Lang, at.Format(time.TimeOnly)), nil
	case sessions.TokensShare:
		return wording.Say(wording.LimitTokensShare, made.Lang, at.Format("01-02 15:04")), nil
	case sessions.PersonTokens:
		return wording.Say(wording.LimitPersonTokens, made.Lang, wording.Thousands(limits.PersonTokens), at.Format("01-02 15:04")), nil
	default:
		return wording.Say(wording.LimitTokens, made.Lang, at.Format("01-02 15:04")), nil
	}
}

// Spend divides the tokens: each asker has those of the own words, and an equal part of the rest. A failure is logged: the answer is more important.
func (l Limits) Spend(ctx context.Context, made Choice, used sessions.Usage) {
	tokens, limits := used.Prompt+used.Completion, l.shared.Current.For(made.Lease.Key).Limits
	if limits.PersonTokens <= 0 && limits.Tokens <= 0 || tokens <= 0 {
		return
	}
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), l.shared.CommitTimeout)
	defer stop()
	who := askersOf(made)
	own := make([]int, len(who.People))
	for _, e := range made.Asked {
		own[slices.Index(who.People, e.SenderID)] += e.Tokens
	}
	spent := make(map[sessions.UserID]int, len(own))
	for i, part := range sessions.SharesOf(tokens, own) {
		spent[who.People[i]] = part
	}
	if err := l.counts.SpendTokens(one, who.Robot, spent); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Tokens of a turn not counted for its askers")
	}
}

// Exceeds reports whether a waiting message is over a limit, and counts nothing. It reports true if the storage does not answer.
func (l Limits) Exceeds(ctx context.Context, key sessions.Key, e sessions.Event) bool {
	limits := l.shared.Current.For(key).Limits
	if limits == (sessions.Limits{}) || e.Admitted {
		return false
	}
	a := sessions.Askers{Robot: e.Message.RobotCode, People: []sessions.UserID{e.SenderID}}
	if e.Message.ConversationType != sessions.Private {
		a.Group = e.Message.ConversationID
	}
	if a.Group == "" || e.Message.StaffID != "" {
		limits.UnidentifiedTurns = 0
	}
	if !e.IsScheduled() {
		limits.ScheduledTurns = 0
	}
	one, stop := context.WithTimeout(ctx, l.shared.CommitTimeout)
	defer stop()
	used, err := l.counts.Used(one, a)
	full := func(bound int, use sessions.LimitUse) bool { return bound > 0 && use.Count >= bound }
	return err != nil || full(limits.PersonTurns, used.PersonTurns) || full(limits.GroupTurns, used.GroupTurns) ||
		full(limits.PersonTokens, used.PersonTokens) || full(limits.Tokens, used.Tokens) || full(limits.UnidentifiedTurns, used.UnidentifiedTurns) ||
		full(limits.ScheduledTurns, used.ScheduledTurns) || full(sessions.Allowance(limits.GroupTurns, used.GroupOthers), used.GroupPart)
}
