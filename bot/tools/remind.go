package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ebb/bot/chat"
	"ebb/bot/schedule"
	"ebb/bot/schedule/when"
	"ebb/memory/draft"
	"ebb/memory/text"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// RemindTool is the name of the tool that sets reminders.
const RemindTool = "remind"

// remindCommand is the command whose right the tool needs too.
const remindCommand = "remind"

type remindArgs struct {
	When string                `json:"when"`
	Text string                `json:"text"`
	Kind sessions.ScheduleKind `json:"kind"`
}

var remindSpec = llm.ToolSpec{
	Name:        RemindTool,
	Description: "Set a reminder in this chat when asked.",
	Schema: object([]string{"when", "text"}, map[string]any{
		"when": field("string", "in their words: 每周五9点, tomorrow at 3 pm"),
		"text": field("string", "in the asker's words"),
		"kind": map[string]any{"type": "string", "enum": []sessions.ScheduleKind{sessions.Remind, sessions.AskModel},
			"description": "ask: text is your task then"},
	}),
}

// Remind returns the tool for reminders.
func Remind(p *schedule.Planner) chat.Tool {
	return tool[remindArgs]{spec: remindSpec, call: (reminder{p}).call}
}

type reminder struct{ planner *schedule.Planner }

// The call's id makes a repeated call find its schedule.
func (r reminder) call(ctx context.Context, in chat.ToolInput, args remindArgs) (string, error) {
	if args.Kind == "" {
		args.Kind = sessions.Remind
	}
	if args.Kind != sessions.Remind && args.Kind != sessions.AskModel {
		return "", fmt.Errorf("remind: kind is %q, want remind or ask", args.Kind)
	}
	asked := slices.DeleteFunc(slices.Clone(in.Current), func(e sessions.Event) bool { return e.Role != sessions.RoleUser || e.Message == nil })
	if len(asked) == 0 {
		return "", errors.New("remind: no message asks for it")
	}
	if slices.ContainsFunc(asked, sessions.Event.IsScheduled) {
		return "", fmt.Errorf("remind: %w; answer the scheduled message instead", schedule.ErrNested)
	}
	by, err := askerOf(asked, args.When, args.Text)
	if err != nil {
		return "", err
	}
	if !in.May(by, remindCommand) {
		return "", errors.New("remind: they have no right to set reminders; nothing was set")
	}
	p, err := r.planner.Set(ctx, in.Lease, schedule.Request{
		When: args.When, Text: args.Text, Kind: args.Kind, By: by, Now: by.CreatedAt,
		Origin: sessions.OriginOf(by.MsgID, in.CallID),
	})
	if err != nil {
		return "", remindFault(ctx, err)
	}
	return fmt.Sprintf("set as reminder %d: %s; due %s. Answer with the time.", p.ID, p.Times("en"), p.Coming(", ")), nil
}

// askerOf returns the message that asks for a reminder. Among several people it is the newest one of the person who wrote both text
// and time, if no other wrote the text. A name from the model may repeat what another person wrote.
func askerOf(asked []sessions.Event, when, what string) (sessions.Event, error) {
	words := map[sessions.UserID]string{}
	for _, e := range asked {
		own, _ := draft.OwnWords(e)
		words[e.SenderID] += text.Canonical(own) + "\n"
	}
	by := asked[len(asked)-1]
	if len(words) == 1 {
		return by, nil
	}
	when, what = text.Canonical(strings.TrimSpace(when)), text.Canonical(strings.TrimSpace(cmp.Or(what, when)))
	wrote := slices.DeleteFunc(slices.Collect(maps.Keys(words)), func(id sessions.UserID) bool { return id == "" || !strings.Contains(words[id], what) })
	if len(wrote) != 1 || what == "" || !strings.Contains(words[wrote[0]], when) {
		return by, errSeveral
	}
	for _, e := range asked {
		if e.SenderID == wrote[0] {
			by = e
		}
	}
	return by, nil
}

var errSeveral = errors.New("remind: several people wrote, and time and text are not the words of one of them; " +
	"repeat the call in the words of the person who asks, or let them write it again alone; nothing was set")

func remindFault(ctx context.Context, err error) error {
	for _, known := range []error{
		schedule.ErrOff, schedule.ErrNoText, schedule.ErrLongText, schedule.ErrOften, schedule.ErrOftenAsked, schedule.ErrEnded, schedule.ErrUnreachable,
		sessions.ErrConversationSchedules, sessions.ErrPersonSchedules, sessions.ErrLeftSchedules, sessions.ErrNoCalls, sessions.ErrCallShare,
		when.ErrUnknown, when.ErrPast, when.ErrSoon, when.ErrFar, when.ErrUnsupported,
	} {
		if errors.Is(err, known) {
			return fmt.Errorf("remind: %w; nothing was set. Examples of times: %s", known, examples)
		}
	}
	return storeFault(ctx, err, "remind: the reminder could not be stored, nothing was set")
}

const examples = "in 10 minutes, 明天下午3点, 每周五9点, every day at 9:30"
