package command

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"ebb/bot/manage"
	"ebb/bot/reload"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions"
)

func settingsLine(settings, lang string) string {
	all := map[string]json.RawMessage{}
	if settings == "" || json.Unmarshal([]byte(settings), &all) != nil || len(all) == 0 {
		return wording.Say(wording.UsageNone, lang)
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, key+"="+strings.Trim(string(all[key]), `"`))
	}
	return strings.Join(parts, ", ")
}

// settingsCommand is the settings of /compact.
type settingsCommand struct {
	manage  *manage.Manager
	roles   roles
	views   *view.Builder
	current *reload.Current
	wake    func(sessions.Key) // the upkeep of a session
}

func settingsOf(e *env) settingsCommand {
	return settingsCommand{e.manage, e.roles(), e.views, e.shared.Current, e.upkeep.Wake}
}

func (c settingsCommand) set(ctx context.Context, t *view.CommandTurn, call Call) string {
	words := strings.Fields(strings.ToLower(call.Arg))
	if word := call.Use.EN[0]; word == "policy" {
		words = append([]string{word}, words...)
	}
	s := &t.View.Session
	if len(words) != 2 || c.current.For(t.Lease.Key).Own == nil {
		return wording.Say(wording.SetUsage, t.Lang, settingsLine(s.Settings, t.Lang))
	}
	settings, err := c.manage.Configure(ctx, c.roles.actor(t), *s, words[0], words[1])
	if err != nil {
		return notSet(ctx, words[0], err, t.Lang, wording.Say(wording.SetUsage, t.Lang, settingsLine(s.Settings, t.Lang)))
	}
	s.Settings = settings
	set := c.views.Choices.Settings(*s)
	c.wake(t.Lease.Key) // the change may make work due
	return wording.Say(wording.Set, t.Lang, set.Policy.Name, settingsLine(settings, t.Lang))
}

func notSet(ctx context.Context, key string, err error, lang, usage string) string {
	var invalid *manage.InvalidSetting
	var idle *manage.IdleSetting
	switch {
	case errors.As(err, &idle):
		needs := idle.Needs
		if lang != "en" {
			needs = strings.NewReplacer("policy ", "策略 ", "mode ", "模式 ").Replace(needs)
		}
		parameters := strings.Join(idle.Policy.Parameters(), ", ")
		return wording.Say(wording.IdleSetting, lang, idle.Key, needs, idle.Policy.Name, parameters) + "\n\n" + usage
	case errors.Is(err, manage.FileOnly):
		return wording.Say(wording.FileOnly, lang, strings.ToLower(key))
	case errors.As(err, &invalid):
		return wording.Say(wording.NotSet, lang, faultWord(invalid.Reason, lang)) + "\n\n" + usage
	}
	zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to store the settings of a conversation")
	return wording.Say(wording.SetFailed, lang)
}

func faultWord(fault error, lang string) string {
	if lang == "en" {
		return fault.Error()
	}
	return strings.NewReplacer(
		": got ", "：收到 ", ": no such key", "：没有这个键", ", want one of ", "，可用的有 ", ", want ", "，需要 ",
		"did you mean ", "是不是 ", "a string", "文字", "a whole number", "整数", "a number", "数", "more than ", "大于 ", "less than ", "小于 ",
		"at least ", "至少 ", "at most ", "至多 ", " and ", "，", " or ", " 或 ", "; ", "；",
	).Replace(fault.Error())
}
