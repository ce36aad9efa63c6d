package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"ebb/bot/config/strict"
	"ebb/compaction"
	"ebb/sessions"
)

func (c *Config) check(k *strict.Source, need Need) {
	c.DingTalk.check(k, need, c.LLM, c.Tools)
	c.LLM.check(k, need)
	c.Agent.check(k)
	c.Agent.Compaction.check(k, c.LLM, c.policies)
	c.Agent.Memory.check(k)
	c.Access.check(k, "access")
	c.Tools.check(k)
	c.checkGroups(k)
	c.checkProcess(k)
	c.LLM.checkTimes(k, c.Agent.TurnTimeout)
	if !k.HasFailed() {
		c.fit(k)
		c.Warnings = k.Warnings()
	}
}

// checkGroups judges the keys of each group, then the compactions that result from them and the common settings.
func (c *Config) checkGroups(k *strict.Source) {
	for _, id := range slices.Sorted(maps.Keys(c.Groups)) {
		g, at := c.Groups[id], groupPath(id)
		if id == "" {
			k.Fail(at, "got an empty key, want the id of a conversation")
			continue
		}
		wantConversation(k, at, id)
		g.check(k, at, id, c.LLM, c.Tools)
		g.checkPolicy(k, at, c.policies)
	}
	for _, g := range c.groupCompactions() {
		g.check(k, g.at, c.policies)
	}
}

// checkProcess judges what one process does by itself.
func (c *Config) checkProcess(k *strict.Source) {
	c.Cluster.check(k)
	c.Schedule.check(k)
	c.Retention.check(k)
	c.Database.check(k)
	c.Admin.check(k)
	c.Shutdown.check(k)
	c.Log.check(k)
}

// fit runs after all checks passed: it lowers values that do not fit together, and warns of those that have no effect. The smallest
// reserve of any group bounds the answers of all models. A group whose sizes are the common ones gets no second warning of them.
func (c *Config) fit(src *strict.Source) {
	c.Admin.warn(src, c.hasAdmins())
	comp := &c.Agent.Compaction
	reserve, key := comp.ReserveTokens, "agent.compaction.reserve_tokens"
	comp.warn(src, commonPath, c.policies)
	for _, g := range c.groupCompactions() {
		if g.ReserveTokens < reserve {
			reserve, key = g.ReserveTokens, g.at+"reserve_tokens"
		}
		if g.AutoCompactThreshold != comp.AutoCompactThreshold || g.Usable() != comp.Usable() || g.MaxHistoryShare != comp.MaxHistoryShare {
			g.warn(src, g.at, c.policies)
		}
	}
	c.LLM.fitOutput(src, reserve, key)
	c.warnOfIdleRules(src)
	c.LLM.fitKeys(src)
	c.warnOfTimes(src)
	c.Access.warn(src, "access", c.Agent.Admins)
	c.warnOfPairs(src)
	c.warnOfIdleKeys(src)
	c.warnOfUnset(src)
	src.WarnOfRemoved()
}

// hasAdmins reports whether anyone may log in to the console by DingTalk.
func (c *Config) hasAdmins() bool {
	for _, g := range c.Groups {
		if len(g.Admins) > 0 {
			return true
		}
	}
	return len(c.Agent.Admins) > 0
}

func (c *Config) warnOfIdleRules(src *strict.Source) {
	common, groups := c.Policies()
	inUse := []compaction.Policy{common.Policy}
	for _, g := range groups {
		inUse = append(inUse, g.Policy)
	}
	warnOfVariables(src, common.Policy, inUse)
	comp := &c.Agent.Compaction
	comp.PolicyRules.warn(src, commonPath, common.Policy, inUse)
	comp.warnOfZeros(src, commonPath, c.policies)
	for _, g := range c.groupCompactions() {
		p := groups[sessions.ConversationID(g.id)].Policy
		g.PolicyRules.warn(src, g.at, p, []compaction.Policy{p})
		g.warnOfZeros(src, g.at, c.policies)
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

// longest is more than one turn or compaction takes. Figures above it are milliseconds.
const longest = 4 * time.Hour

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
		d.warn(src, at, a.Admins)
	}
	warn(strings.HasPrefix(a.Timezone, "Etc/GMT"), "agent.timezone", `has the opposite sign: "Etc/GMT+8" is eight hours behind UTC`)
	l := a.Limits
	warn(l.Tokens > 0 && l.PersonTokens > l.Tokens, "agent.limits.person_tokens_per_day", "more than tokens_per_day (%d), which is for all", l.Tokens)
	warn(l.GroupTurns > 0 && l.PersonTurns > l.GroupTurns, "agent.limits.person_turns_per_minute", "more than group_turns_per_minute (%d), which comes first in a group", l.GroupTurns)
	warn(l.GroupTurns > 0 && l.UnidentifiedTurns > 60*l.GroupTurns, "agent.limits.unidentified_turns_per_hour", "more than group_turns_per_minute (%d) allows in an hour", l.GroupTurns)
	for key, n := range map[string]int{"person_tokens_per_day": l.PersonTokens, "tokens_per_day": l.Tokens} {
		warn(n > 0 && n < leastTokens, "agent.limits."+key, "less than one question takes: it is a number of tokens, not of thousands")
	}
	c.LLM.warn(src)
	warnOfVersion(src, "agent.memory.embeddings.base_url", a.Memory.Embeddings.BaseURL)
	c.warnOfSizes(src)
}

// leastTokens is about the size of the first request of a conversation with a short answer.
const leastTokens = 2000

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

// warnOfTimes warns of timeouts over the model's share of the time of a turn, or of other work, which is divided
// among the models.
func (c *Config) warnOfTimes(src *strict.Source) {
	n := len(c.LLM.Models)
	for _, work := range []struct {
		path  string
		whole time.Duration
		check bool
	}{
		{"agent.turn_timeout", c.Agent.TurnTimeout, n > 1},
		{commonPath + "deadline", c.Agent.Compaction.Deadline, n > 1},
		{commonPath + "inline_deadline", c.Agent.Compaction.InlineDeadline, n > 1 && src.IsGiven(commonPath+"inline_deadline")},
	} {
		share := work.whole / time.Duration(max(1, n))
		for i, m := range c.LLM.Models {
			path := fmt.Sprintf("llm.models[%d].", i)
			switch of := fmt.Sprintf("its share of %s (%s for %d models)", work.path, strict.DurationText(work.whole), n); {
			case !work.check:
			case i < n-1 && m.FirstToken > share:
				src.Warn(path+"first_token_timeout", "%s is more than %s, %s: the next model is asked earlier",
					strict.DurationText(m.FirstToken), strict.DurationText(share), of)
			case work.path == "agent.turn_timeout" && m.Timeout > share:
				src.Warn(path+"timeout", "%s is more than %s, %s: a longer answer is cut off",
					strict.DurationText(m.Timeout), strict.DurationText(share), of)
			}
		}
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

// warnOfUnset warns of variables without a value, except the credentials that a command does not need, or that are required.
func (c *Config) warnOfUnset(src *strict.Source) {
	for _, path := range src.PathsWithUnset() {
		e := c.Agent.Memory.Embeddings.BaseURL == "" && strings.HasPrefix(path, "agent.memory.embeddings.api_key")
		if e || strings.HasPrefix(withoutIndex(path), "dingtalk.client_") || strings.HasPrefix(path, "llm.models[") && strings.HasSuffix(path, "].api_key") {
			continue
		}
		for _, name := range src.Unset(path) {
			src.Warn(path, "%s is not set in the environment, and nothing stands in its place; ${%s:-} says so on purpose", name, name)
		}
	}
}
