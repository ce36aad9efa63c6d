package command

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"ebb/bot/manage"
	"ebb/bot/schedule"
	"ebb/bot/schedule/when"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions"
)

// remindCommand is /remind.
type remindCommand struct {
	planner *schedule.Planner
	manage  *manage.Manager
	by      manage.Actor
	lease   sessions.Lease
	asked   sessions.Event // the command
	lang    string
}

// remindUse is a use of /remind.
func remindUse(do func(remindCommand, context.Context, string) string) run {
	return func(e *env, ctx context.Context, t *view.CommandTurn, c Call) string {
		return do(remindCommand{e.opts.Planner, e.manage, e.roles().actor(t), t.Lease, t.Asked, t.Lang}, ctx, c.Arg)
	}
}

// isList reports whether an argument asks for a list.
func isList(arg string) bool {
	return slices.Contains([]string{"", "list", "ls", "show", "all", "列表", "清单", "列出", "全部", "所有", "查看"}, strings.ToLower(trimMarks(arg)))
}

func (r remindCommand) set(ctx context.Context, text string) string {
	return r.add(ctx, text, sessions.Remind)
}

func (r remindCommand) ask(ctx context.Context, text string) string {
	return r.add(ctx, text, sessions.AskModel)
}

// add sets a schedule. The times count from the message, which may have waited. A repeated attempt finds the schedule by the
// message's id.
func (r remindCommand) add(ctx context.Context, text string, kind sessions.ScheduleKind) string {
	asked := r.asked
	p, err := r.planner.Set(ctx, r.lease, schedule.Request{
		When: text, Kind: kind, By: asked, Origin: sessions.OriginOf(asked.MsgID, ""), Now: asked.CreatedAt,
	})
	if err != nil {
		return r.timeRefusal(ctx, 0, text, err)
	}
	return r.describe(wording.RemindSet, p)
}

// describe reads a schedule back.
func (r remindCommand) describe(head wording.Phrase, p schedule.Planned) string {
	out := wording.Say(head, r.lang, p.ID, r.times(p), wording.Literal(headOf(p.Text, quotedChars)))
	if !p.Spec.Repeats() {
		return out
	}
	return out + wording.Say(wording.RemindNext, r.lang, p.Coming(wording.Say(wording.Comma, r.lang)))
}

func (r remindCommand) times(p schedule.Planned) string {
	words := p.Times(r.lang)
	if p.Kind == sessions.AskModel {
		words += wording.Say(wording.RemindAsks, r.lang)
	}
	return words
}

func (r remindCommand) list(ctx context.Context, _ string) string {
	list, err := r.planner.Active(ctx, r.lease.Key, r.by.SeesSchedule)
	switch {
	case err != nil:
		return r.refusal(ctx, 0, err)
	case len(list) == 0:
		return wording.Say(wording.RemindNone, r.lang)
	}
	var out strings.Builder
	out.WriteString(wording.Say(wording.RemindList, r.lang))
	for _, p := range list {
		next := "" // the words of a single time have its date
		if p.Spec.Repeats() {
			next = wording.Say(wording.RemindLineNext, r.lang, wording.Moment(p.Dates[0]))
		}
		out.WriteString(wording.Say(wording.RemindLine, r.lang, p.ID, r.times(p), next,
			wording.Literal(headOf(p.Text, quotedChars)), wording.Literal(sessions.Nick(p.Creator.SenderNick))))
	}
	return out.String() + wording.Say(wording.RemindHow, r.lang)
}

func (r remindCommand) cancel(ctx context.Context, number string) string {
	id := memoryID(number)
	s, err := r.manage.CancelSchedule(ctx, r.by, r.lease.Key, id)
	if err != nil {
		return r.refusal(ctx, id, err)
	}
	return wording.Say(wording.RemindGone, r.lang, id, wording.Literal(headOf(s.Text, quotedChars)))
}

// change is "/remind change 3 tomorrow at 9".
func (r remindCommand) change(ctx context.Context, arg string) string {
	number, phrase := cutWord(arg)
	id := memoryID(number)
	s, err := r.manage.OwnSchedule(ctx, r.by, r.lease.Key, id)
	switch {
	case err != nil:
		return r.refusal(ctx, id, err)
	case phrase == "":
		return wording.Say(wording.RemindNoTime, r.lang, id, id)
	}
	p, err := r.planner.Move(ctx, r.lease, s, phrase, r.asked.CreatedAt)
	if err != nil {
		return r.timeRefusal(ctx, id, phrase, err)
	}
	return r.describe(wording.RemindMoved, p)
}

// partChars bounds the unreadable words of a time that an answer repeats.
const partChars = 20

// timeRefusal answers a schedule that was refused. It names the words of its time that have no sense behind others that have.
func (r remindCommand) timeRefusal(ctx context.Context, id int64, text string, err error) string {
	unread, ok := errors.AsType[*when.Error](err)
	if text = strings.TrimSpace(text); !ok || !unread.Part || unread.At == 0 || unread.At >= len(text) {
		return r.refusal(ctx, id, err)
	}
	part := strings.TrimLeft(text[unread.At:], " ,，、;；")
	if part == "" {
		return r.refusal(ctx, id, err)
	}
	return wording.Say(wording.RemindPart, r.lang, wording.Literal(headOf(part, partChars)))
}

// refusal answers a schedule that was refused. id is its number; 0 for a new one.
func (r remindCommand) refusal(ctx context.Context, id int64, err error) string {
	say := func(p wording.Phrase, args ...any) string { return wording.Say(p, r.lang, args...) }
	switch {
	case errors.Is(err, manage.Over):
		return say(wording.RemindOver, id)
	case errors.Is(err, sessions.ErrNotFound):
		return say(wording.RemindUnknown, id)
	case errors.Is(err, manage.NotSetter):
		return say(wording.RemindNotYours, id)
	case errors.Is(err, schedule.ErrOff):
		return say(wording.RemindOff)
	case errors.Is(err, schedule.ErrNoText):
		return say(wording.RemindNoText)
	case errors.Is(err, schedule.ErrLongText):
		return say(wording.RemindLong, schedule.MaxText)
	case errors.Is(err, schedule.ErrOften):
		return say(wording.RemindOften, int(schedule.MinPeriod.Minutes()))
	case errors.Is(err, schedule.ErrOftenAsked):
		return say(wording.RemindOftenAsked, int(schedule.MinAskPeriod.Minutes()))
	case errors.Is(err, schedule.ErrUnreachable):
		return say(wording.RemindUnreachable)
	case errors.Is(err, schedule.ErrNested):
		return say(wording.RemindNested)
	case errors.Is(err, sessions.ErrConversationSchedules):
		return say(wording.RemindFullHere, sessions.MaxSchedules)
	case errors.Is(err, sessions.ErrLeftSchedules):
		return say(wording.RemindLeft, sessions.LeftSchedules)
	case errors.Is(err, sessions.ErrPersonSchedules):
		return say(wording.RemindFullYours, sessions.MaxPersonSchedules)
	case errors.Is(err, sessions.ErrNoCalls):
		return say(wording.RemindNoCalls)
	case errors.Is(err, sessions.ErrCallShare):
		return say(wording.RemindShare)
	case errors.Is(err, when.ErrPast), errors.Is(err, schedule.ErrEnded):
		return say(wording.RemindPast)
	case errors.Is(err, when.ErrFar):
		return say(wording.RemindFar)
	case errors.Is(err, when.ErrSoon):
		return say(wording.RemindSoon)
	case errors.Is(err, when.ErrUnsupported):
		return say(wording.RemindNever)
	}
	if _, ok := errors.AsType[*when.Error](err); ok || errors.Is(err, when.ErrUnknown) {
		return say(wording.RemindPhrase)
	}
	zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read or change reminders")
	return say(wording.RemindFailed)
}
