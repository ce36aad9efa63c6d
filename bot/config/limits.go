package config

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ebb/bot/config/strict"
	"ebb/bot/schedule"
	"ebb/bot/schedule/when"
	"ebb/sessions"
)

// LimitsConfig bounds turns and tokens. 0: no limit.
type LimitsConfig struct {
	// PersonTurns is for a minute, in all conversations.
	PersonTurns int `json:"person_turns_per_minute"`
	// PersonTokens is for a day (UTC), input and output together.
	PersonTokens int `json:"person_tokens_per_day"`
	// GroupTurns is for a minute.
	GroupTurns int `json:"group_turns_per_minute"`
	// UnidentifiedTurns bounds the turns of a sender without a staff id in groups, in an hour. So two bots that answer
	// each other come to an end.
	UnidentifiedTurns int `json:"unidentified_turns_per_hour"`
	// ScheduledTurns is for one person's scheduled questions in a day (UTC).
	ScheduledTurns int `json:"person_scheduled_turns_per_day"`
	// Compactions is for compactions by hand in one conversation in a day (UTC).
	Compactions int `json:"compactions_per_day"`
	// Tokens is for all conversations in a day (UTC), upkeep included.
	Tokens int `json:"tokens_per_day"`
}

func (l LimitsConfig) check(k *strict.Source) {
	for key, n := range map[string]int{
		"person_turns_per_minute": l.PersonTurns, "person_tokens_per_day": l.PersonTokens,
		"group_turns_per_minute": l.GroupTurns, "tokens_per_day": l.Tokens, "unidentified_turns_per_hour": l.UnidentifiedTurns,
		"person_scheduled_turns_per_day": l.ScheduledTurns, "compactions_per_day": l.Compactions,
	} {
		k.Want(n >= 0, "agent.limits."+key, n, "0 (no limit) or more")
	}
}

// longest is more than one turn or compaction takes. Figures above it are milliseconds.
const longest = 4 * time.Hour

// checkTimes refuses timeouts of the file that another one of the file ends. Defaults are left alone: a printed configuration names them.
func (c *Config) checkTimes(k *strict.Source) {
	whole, usual := c.Agent.TurnTimeout, defaultModel()
	for i, m := range c.LLM.Models {
		at := fmt.Sprintf("llm.models[%d].", i)
		if !k.IsGiven(at+"timeout") || m.Timeout == usual.Timeout {
			continue
		}
		k.Want(m.Timeout <= whole, at+"timeout", strict.DurationText(m.Timeout), "at most agent.turn_timeout (%s), which ends the turn", strict.DurationText(whole))
		if k.IsGiven(at+"first_token_timeout") && m.FirstToken != usual.FirstToken {
			k.Want(m.FirstToken <= m.Timeout, at+"first_token_timeout", strict.DurationText(m.FirstToken), "at most timeout (%s)", strict.DurationText(m.Timeout))
		}
	}
}

// changed reports whether the file or a flag gives a value that is not the default.
func (c *Config) changed(src *strict.Source) func(path string) bool {
	all := differences("", reflect.ValueOf(*preset()), reflect.ValueOf(*c))
	for i := range c.DingTalk {
		all = append(all, differences(robotPath(src, i), reflect.ValueOf(preset().DingTalk[0]), reflect.ValueOf(c.DingTalk[i]))...)
	}
	return func(path string) bool { return src.IsGiven(path) && slices.Contains(all, path) }
}

// warnOfPairs warns of values that have less effect than they seem to have, because of another one.
func (c *Config) warnOfPairs(src *strict.Source) {
	changed := c.changed(src)
	a, r, comp := c.Agent, c.Retention, c.Agent.Compaction
	warn := func(when bool, path, format string, args ...any) {
		if when && changed(path) {
			src.Warn(path, format, args...)
		}
	}
	turn := strict.DurationText(a.TurnTimeout)
	const unit = "more than %s: a figure without a unit is a number of seconds"
	warn(a.TurnTimeout > longest, "agent.turn_timeout", unit, strict.DurationText(longest))
	warn(comp.Deadline > longest, commonPath+"deadline", unit, strict.DurationText(longest))
	warn(a.Memory.RecallTimeout > time.Minute, "agent.memory.recall_timeout", unit, "1m")
	if comp.InlineDeadline > a.TurnTimeout {
		warn(true, commonPath+"inline_deadline", "more than agent.turn_timeout (%s), which ends the turn", turn)
	} else {
		warn(comp.InlineDeadline > comp.Deadline, commonPath+"inline_deadline", "more than deadline (%s), which ends the compaction", strict.DurationText(comp.Deadline))
	}
	warn(a.BusyNote >= a.TurnTimeout, "agent.busy_note", "does nothing: a turn ends after agent.turn_timeout (%s)", turn)
	warn(a.StaleAfter < a.TurnTimeout, "agent.stale_after", "less than agent.turn_timeout (%s): messages behind a long turn get no answer", turn)
	warn(c.Cluster.LeaseTTL >= a.StaleAfter, "cluster.lease_ttl", "no less than agent.stale_after (%s): messages of a replica that died get no answer", strict.DurationText(a.StaleAfter))
	warn(r.Memories > 0 && a.Memory.TaskTTL > r.Memories, "agent.memory.task_ttl", "more than retention.memories (%s), which deletes them", strict.DurationText(r.Memories))
	for key, period := range r.byKey() {
		warn(period > 0 && period < day, "retention."+key, "deletes after %s; days are \"30d\"", strict.DurationText(period))
	}
	window := a.Compaction.Settings(c.policies).Window
	for key, n := range map[string][2]int{"recall_tokens": {a.Memory.RecallTokens, window.Usable() / 8}, "pinned_tokens": {a.Memory.PinnedTokens, window.Trigger() / 12}} {
		warn(n[0] > n[1], "agent.memory."+key, "the window has room for %d", n[1])
	}
	usual := plainRobot()
	for i, d := range c.DingTalk {
		at := robotPath(src, i)
		warn(d.OAPIBase == usual.OAPIBase && d.RepliesPerMinute > usual.RepliesPerMinute, at+".replies_per_minute",
			"more than the %d that DingTalk's webhooks accept", usual.RepliesPerMinute)
		d.warn(c, src, at)
	}
	warn(strings.HasPrefix(a.Timezone, "Etc/GMT"), "agent.timezone", `has the opposite sign: "Etc/GMT+8" is eight hours behind UTC`)
	l := a.Limits
	warn(l.Tokens > 0 && l.PersonTokens > l.Tokens, "agent.limits.person_tokens_per_day", "more than tokens_per_day (%d), which is for all", l.Tokens)
	warn(l.GroupTurns > 0 && l.PersonTurns > l.GroupTurns, "agent.limits.person_turns_per_minute", "more than group_turns_per_minute (%d), which comes first in a group", l.GroupTurns)
	warn(l.GroupTurns > 0 && l.UnidentifiedTurns > 60*l.GroupTurns, "agent.limits.unidentified_turns_per_hour", "more than group_turns_per_minute (%d) allows in an hour", l.GroupTurns)
	for key, n := range map[string]int{"person_tokens_per_day": l.PersonTokens, "tokens_per_day": l.Tokens} {
		warn(n > 0 && n < leastTokens, "agent.limits."+key, "less than one question takes: it is a number of tokens, not of thousands")
	}
	c.warnOfModels(src)
	c.warnOfSizes(src)
}

// warnOfSizes warns of daily tokens of a conversation over those of all, and of prompts over the window.
func (c *Config) warnOfSizes(src *strict.Source) {
	a, comp := c.Agent, c.Agent.Compaction
	daily := func(path string, n int) {
		if all := a.Limits.Tokens; src.IsGiven(path) && all > 0 && n != preset().Agent.Compaction.DailyTokens && n > all {
			src.Warn(path, "more than agent.limits.tokens_per_day (%d), which is for all conversations", all)
		}
	}
	daily(commonPath+"daily_tokens", comp.DailyTokens)
	for _, g := range c.groupCompactions() {
		daily(g.at+"daily_tokens", g.DailyTokens)
	}
	room := 4 * comp.Usable() // characters; a text with as many tokens is seldom longer
	prompt := func(path, text string) {
		if n := utf8.RuneCountInString(text); n > room {
			src.Warn(path, "has %d characters, and the window has room for about %d", n, room)
		}
	}
	prompt("agent.prompt", a.Prompt)
	for _, id := range slices.Sorted(maps.Keys(c.Groups)) {
		prompt(groupPath(id)+".prompt", c.Groups[id].Prompt)
	}
}

// leastTokens is about the size of the first request of a conversation with a short answer.
const leastTokens = 2000

// warnOfModels warns of prices of which one is missing, times without effect, and addresses without a version.
func (c *Config) warnOfModels(src *strict.Source) {
	for i, m := range c.LLM.Models {
		at := fmt.Sprintf("llm.models[%d].", i)
		switch {
		case m.PriceIn == 0 && m.PriceOut > 0:
			src.Warn(at+"price_out", "without price_in, input costs nothing")
		case m.PriceCached > m.PriceIn:
			src.Warn(at+"price_cached", "more than price_in (%g)", m.PriceIn)
		}
		if m.FirstToken > m.Timeout {
			src.Warn(at+"first_token_timeout", "does nothing: an attempt ends after timeout (%s)", strict.DurationText(m.Timeout))
		}
		c.warnOfVersion(src, at+"base_url", m.BaseURL)
	}
	c.warnOfVersion(src, "agent.memory.embeddings.base_url", c.Agent.Memory.Embeddings.BaseURL)
}

// versions are the paths of known providers. Others may have none.
var versions = map[string]string{
	"api.openai.com": "/v1", "api.moonshot.cn": "/v1", "api.siliconflow.cn": "/v1", "openrouter.ai": "/api/v1", "dashscope.aliyuncs.com": "/compatible-mode/v1",
}

func (c *Config) warnOfVersion(src *strict.Source, path string, e Endpoint) {
	u, err := url.Parse(e.Reveal())
	if err == nil && strings.Trim(u.Path, "/") == "" && versions[u.Hostname()] != "" {
		src.Warn(path, "has no version, want https://%s%s", u.Hostname(), versions[u.Hostname()])
	}
}

// warnOfIdleKeys warns of values that do nothing without another one.
func (c *Config) warnOfIdleKeys(src *strict.Source) {
	a, m := c.Agent, c.Agent.Memory
	changed := c.changed(src)
	for _, part := range []struct {
		idle bool
		why  string
		at   string
		keys []string
	}{
		{
			m.Embeddings.BaseURL == "", "without a base_url: searches go by words alone", "agent.memory.embeddings.",
			[]string{"model", "api_key", "dimensions", "batch", "requests_per_minute", "weight"},
		},
		{m.Recall == RecallOff, `with recall "off"`, "agent.memory.", []string{"recall_tokens", "recall_timeout"}},
		{m.Extract == ExtractTurn, `with extract "every_turn"`, "agent.memory.", []string{"candidates"}},
		{!a.MergePending, "without agent.merge_pending", "agent.", []string{"max_merged"}},
		{!c.Schedule.Enabled, "without schedule.enabled", "schedule.", []string{"quiet_hours"}},
		{c.Admin.DingTalkLogin.RedirectURI == "", "without a redirect_uri", "admin.dingtalk_login.", []string{"authorize_url"}},
		{c.Admin.Listen == "", "without admin.listen", "admin.", []string{"token", "viewer_token", "dingtalk_login.redirect_uri"}},
		{c.Database.URL != "", "with database.url", "database.", []string{"dir"}},
	} {
		for _, key := range part.keys {
			if part.idle && changed(part.at+key) {
				src.Warn(part.at+key, "does nothing %s", part.why)
			}
		}
	}
	for i, d := range c.DingTalk {
		for _, key := range []string{"card_template_id", "card_content_key", "card_stream", "card_interval", "card_reasoning"} {
			if at := robotPath(src, i); d.Reply != ReplyCard && changed(at+"."+key) {
				src.Warn(at+"."+key, "does nothing without %s.reply %q", at, ReplyCard)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Groups)) {
		g, at := c.Groups[id], groupPath(id)
		if len(g.Admins) > 0 && c.Admin.DingTalkLogin.RedirectURI == "" {
			src.Warn(at+".admins", "does nothing without admin.dingtalk_login.redirect_uri")
		}
		if len(g.Tools) == 0 && src.IsGiven(at+".tools") {
			src.Warn(at+".tools", "an empty list allows all tools")
		}
	}
}

// Limits returns the limits of turns.
func (l LimitsConfig) Limits() sessions.Limits {
	return sessions.Limits{
		PersonTurns: l.PersonTurns, GroupTurns: l.GroupTurns, PersonTokens: l.PersonTokens, Tokens: l.Tokens,
		UnidentifiedTurns: l.UnidentifiedTurns, ScheduledTurns: l.ScheduledTurns, Compactions: l.Compactions,
	}
}

// ScheduleConfig is about reminders.
type ScheduleConfig struct {
	// Enabled allows reminders. Stored ones wait while it is false.
	Enabled bool `json:"enabled"`
	// QuietHours, such as "22:00-08:00", postpone repeated reminders and scheduled questions to their end. A single
	// reminder is sent at its time.
	QuietHours string `json:"quiet_hours"`
}

func (s ScheduleConfig) check(k *strict.Source) {
	const want = `hours such as "22:00-08:00", or "" for none`
	_, err := when.ParseQuiet(s.QuietHours)
	k.Expects("schedule.quiet_hours", want)
	k.Want(err == nil, "schedule.quiet_hours", strconv.Quote(s.QuietHours), "%s", want)
}

// Settings returns the scheduler's settings.
func (s ScheduleConfig) Settings() schedule.Settings {
	quiet, _ := when.ParseQuiet(s.QuietHours) // checked before
	return schedule.Settings{Enabled: s.Enabled, Quiet: quiet}
}
