package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/bot/schedule"
	"ebb/bot/schedule/when"
	"ebb/sessions"
)

// RemindTool is the name of the tool that sets reminders.
const RemindTool = "remind"

// remindCommand is the command whose right the tool needs too.
const remindCommand = "remind"

type remindArgs struct {
	When string                `json:"when"`
	Text string                `json:"text"`
	For  string                `json:"for"`
	Kind sessions.ScheduleKind `json:"kind"`
}

var remindSpec = llm.ToolSpec{
	Name:        RemindTool,
	Description: "Set a reminder in this chat when someone asks for one.",
	Schema: object([]string{"when", "text"}, map[string]any{
		"when": field("string", "the time in the user's words: 10分钟后, 每周五9点, tomorrow at 3 pm"),
		"text": field("string", "what to say then"),
		"for":  field("string", "name of who asks for it, if several ask"),
		"kind": map[string]any{"type": "string", "enum": []sessions.ScheduleKind{sessions.Remind, sessions.AskModel},
			"description": "remind (default) sends the text; ask gives it to you as a task then"},
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
	by, err := askerOf(asked, args.For)
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

// askerOf returns the newest message of the asker with a name. The name of a single asker doesn't count.
func askerOf(asked []sessions.Event, name string) (sessions.Event, error) {
	by := asked[len(asked)-1]
	isOther := func(e sessions.Event) bool { return e.SenderID != by.SenderID }
	if !slices.ContainsFunc(asked, isOther) {
		return by, nil
	}
	name = strings.TrimLeft(strings.TrimSpace(name), "@＠")
	named := slices.DeleteFunc(slices.Clone(asked), func(e sessions.Event) bool {
		return name == "" || e.SenderNick != name && string(e.SenderID) != name
	})
	if len(named) == 0 {
		return by, errors.New("remind: several people ask; give the name of the one who asks for it as \"for\"; nothing was set")
	}
	by = named[len(named)-1]
	if slices.ContainsFunc(named, isOther) {
		return by, errors.New("remind: several askers have this name; give an id as \"for\"; nothing was set")
	}
	return by, nil
}

func remindFault(ctx context.Context, err error) error {
	for _, known := range []error{
		schedule.ErrOff, schedule.ErrNoText, schedule.ErrLongText, schedule.ErrOften, schedule.ErrOftenAsked, schedule.ErrEnded, schedule.ErrUnreachable,
		sessions.ErrConversationSchedules, sessions.ErrPersonSchedules,
		when.ErrUnknown, when.ErrPast, when.ErrSoon, when.ErrFar, when.ErrUnsupported,
	} {
		if errors.Is(err, known) {
			return fmt.Errorf("remind: %w; nothing was set. Examples of times: %s", known, examples)
		}
	}
	return storeFault(ctx, err, "remind: the reminder could not be stored, nothing was set")
}

const examples = "in 10 minutes, 明天下午3点, 每周五9点, every day at 9:30"
