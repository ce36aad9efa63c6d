package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"ebb/compaction"
	"ebb/sessions"
)

func (c *CompactionConfig) check(k checker, llm LLMConfig, own map[string]compaction.Policy) {
	c.CompactionSettings.check(k, commonPath, own)
	for _, id := range slices.Sorted(maps.Keys(c.Groups)) {
		g := c.Groups[id]
		g.check(k, groupPath(id)+".", own)
	}
	k.positive(commonPath+"inline_deadline", c.InlineDeadline)
	k.positive(commonPath+"deadline", c.Deadline)
	k.between(commonPath+"retries", c.Retries, 1, 10)
	k.positive(commonPath+"retry_backoff", c.RetryBackoff)
	k.want(c.Model == "" || llm.has(c.Model), commonPath+"model", strconv.Quote(c.Model),
		"empty (llm.default) or the name of a model in llm.models: %s", llm.names())
}

// commonPath stands before the keys of the settings that groups take over.
const commonPath = "agent.compaction."

var modes = []string{
	string(compaction.SummaryOnly), string(compaction.SummaryPlusPrune), string(compaction.PruneOnly), string(compaction.OffloadThenCompact),
}

// check refuses what can't work; at is the path of the object with a dot behind it.
func (s *CompactionSettings) check(k checker, at string, own map[string]compaction.Policy) {
	c := settingsChecker{k, at, s.Policy}
	_, known := own[s.Policy]
	names := slices.Sorted(maps.Keys(own))
	c.want(known, "policy", strconv.Quote(s.Policy), quoted(names))
	c.want(s.Mode == "" || slices.Contains(modes, s.Mode), "mode", strconv.Quote(s.Mode), quoted(modes))
	flush := []string{"auto", "on", "off"}
	c.want(s.Flush == "" || slices.Contains(flush, s.Flush), "flush", strconv.Quote(s.Flush), quoted(flush))
	c.want(s.ContextWindow > 0, "context_window", s.ContextWindow, "more than 0")
	widest := max(s.ContextWindow, 0)
	c.want(widest == 0 || s.AutoCompactThreshold <= widest, "auto_compact_threshold", s.AutoCompactThreshold,
		fmt.Sprintf("at most context_window (%d)", widest), "context_window")
	c.want(s.ReserveTokens > 0, "reserve_tokens", s.ReserveTokens, "more than 0")
	c.want(widest == 0 || s.ReserveTokens < widest, "reserve_tokens", s.ReserveTokens,
		fmt.Sprintf("less than context_window (%d)", widest), "context_window")
	c.want(s.DailyTokens >= 0, "daily_tokens", s.DailyTokens, "0 (no bound) or more")
	s.PolicyRules.check(c)
	if resolved := s.Settings(own); known {
		c.budget(resolved.Validate())
	} else { // its rules mean nothing without it
		c.budget(resolved.Window.Validate())
	}
}

// check refuses values that no rule has. Other bounds depend on other values: the policy knows them.
func (r *PolicyRules) check(c settingsChecker) {
	v := reflect.ValueOf(*r)
	set := jsonFields(v.Type())
	for _, name := range set.names {
		switch f := v.FieldByIndex(set.index[name]); {
		case f.Type() == durationType:
			c.want(f.Int() >= 0, name, durationText(time.Duration(f.Int())), "more than 0s, or 0 for the policy's own")
		case f.CanInt():
			c.want(f.Int() >= 0, name, f.Int(), "more than 0, or 0 for the policy's own")
		case f.CanFloat(): // parts, all of them
			c.want(f.Float() >= 0 && f.Float() <= 1, name, f.Float(), "more than 0 and at most 1, or 0 for the policy's own")
		}
	}
}

// settingsChecker refuses settings of one conversation, or the common ones: those at the path at, with a dot behind it.
type settingsChecker struct {
	checker
	at     string
	policy string
}

// want refuses the value of a key unless ok. Where the file does not have the key, the value is said to be of where it
// comes from, and the place is that of the first of the keys with, which it is held against. What a group takes over is
// refused once, where it stands.
func (c settingsChecker) want(ok bool, key string, got any, want string, with ...string) {
	path := c.at + key
	_, given := c.source.at[path]
	if ok || c.failed(path) || !given && c.failed(commonPath+key) {
		return
	}
	offset, origin := c.offset(path), ""
	if !given && c.data != nil {
		origin = c.origin(key)
		offset = c.offset(c.at + "policy")
		for _, other := range slices.Backward(with) {
			if at, given := c.source.at[c.at+other]; given {
				offset = at
			}
		}
	}
	c.failAt(offset, path, "got %v%s, want %s", got, origin, want)
}

// origin says where the value of a key comes from that the file does not have at this place.
func (c settingsChecker) origin(key string) string {
	if _, given := c.source.at[commonPath+key]; given {
		return " (taken over from agent.compaction)"
	}
	if _, isRule := rulesKeys.index[key]; isRule {
		return fmt.Sprintf(" (of policy %q)", c.policy)
	}
	return " (the default)"
}

var rulesKeys = jsonFields(reflect.TypeFor[PolicyRules]())

// budget records what of settings can't work together.
func (c settingsChecker) budget(err error) {
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) {
		return
	}
	for _, err := range all.Unwrap() {
		if field, ok := errors.AsType[*compaction.FieldError](err); ok {
			c.want(false, field.Key, field.Got, field.Want, field.With...)
		}
	}
}

// answerMargin is what has to be free in the reserve beside the answer: counts are estimates, and a request has overhead.
const answerMargin = 1024

// fit lowers what the window has no room for, and says so in Warnings.
func (c *Config) fit(src *source) {
	comp := &c.Agent.Compaction
	reserve, key := comp.ReserveTokens, "agent.compaction.reserve_tokens"
	comp.fit(c, src, "agent.compaction.")
	for _, id := range slices.Sorted(maps.Keys(comp.Groups)) {
		g := comp.Groups[id]
		if g.ReserveTokens < reserve {
			reserve, key = g.ReserveTokens, groupPath(id)+".reserve_tokens"
		}
		if g.AutoCompactThreshold != comp.AutoCompactThreshold || g.Usable() != comp.Usable() || g.MaxHistoryShare != comp.MaxHistoryShare {
			g.fit(c, src, groupPath(id)+".")
		}
	}
	c.fitOutput(src, reserve, key)
	c.warnOfIdleRules(src)
	c.fitModels(src)
	c.Agent.Memory.Embeddings.warn(c, src, "agent.memory.embeddings.")
}

// warnOfIdleRules warns of rules that no conversation goes by.
func (c *Config) warnOfIdleRules(src *source) {
	common, groups := c.Policies()
	inUse := []compaction.Policy{common.Policy}
	for _, g := range groups {
		inUse = append(inUse, g.Policy)
	}
	c.warnOfVariables(src, common.Policy, inUse)
	comp := &c.Agent.Compaction
	c.warnOfRules(src, commonPath, comp.PolicyRules, common.Policy, inUse)
	c.warnOfZeros(src, commonPath, comp.CompactionSettings)
	for _, id := range slices.Sorted(maps.Keys(comp.Groups)) {
		p := groups[sessions.ConversationID(id)].Policy
		c.warnOfRules(src, groupPath(id)+".", comp.Groups[id].PolicyRules, p, []compaction.Policy{p})
		c.warnOfZeros(src, groupPath(id)+".", comp.Groups[id])
	}
}

// warnOfZeros warns of rules at a path that are 0 there and yet in force. null says the same and is meant, and so is a 0
// in a copy of the reference file, which has every rule and says above them what 0 stands for.
func (c *Config) warnOfZeros(src *source, at string, s CompactionSettings) {
	isGiven := func(name string) bool { _, given := src.at[at+name]; return given }
	if !slices.ContainsFunc(rulesKeys.names, func(name string) bool { return !isGiven(name) }) {
		return
	}
	given, inForce := reflect.ValueOf(s), reflect.ValueOf(s.inForce(c.policies))
	for _, name := range rulesKeys.names {
		index := rulesKeys.index[name]
		rule, own := given.FieldByName("PolicyRules").FieldByIndex(index), inForce.FieldByName("PolicyRules").FieldByIndex(index)
		isNull := isGiven(name) && bytes.HasPrefix(src.data[src.at[at+name]:], []byte("null"))
		if !isGiven(name) || isNull || rule.Kind() == reflect.String || !rule.IsZero() || own.IsZero() {
			continue
		}
		value := fmt.Sprint(own)
		if own.Type() == durationType {
			value = durationText(time.Duration(own.Int()))
		}
		c.warn(src.warning(at+name, "0 does not turn the rule off, it stands for the policy's own, %s; say null, or leave the key out", value))
	}
}

// warn adds a warning, once: one about a flag stands for every group.
func (c *Config) warn(w string) {
	if !slices.Contains(c.Warnings, w) {
		c.Warnings = append(c.Warnings, w)
	}
}

// warnOfRules warns of rules at a path that none of the policies inUse goes by, or that other rules of p keep from having
// an effect. What a group takes over is warned of where it stands.
func (c *Config) warnOfRules(src *source, at string, r PolicyRules, p compaction.Policy, inUse []compaction.Policy) {
	warn := func(idle bool, key, format string, args ...any) {
		if _, given := src.at[at+key]; idle && given {
			c.warn(src.warning(at+key, format, args...))
		}
	}
	goesBy := func(does func(compaction.Policy) bool) bool { return slices.ContainsFunc(inUse, does) }
	const without = "does nothing without %s"
	inTurns := goesBy(func(p compaction.Policy) bool { return p.Segment > 0 })
	warn(r.FullContextTurns != 0 && !inTurns, "full_context_turns", without, `policy "turns"`)
	warn(r.CachedContextTurns != 0 && !inTurns, "cached_context_turns", without, `policy "turns"`)
	offloading := goesBy(func(p compaction.Policy) bool { return p.OffloadOver > 0 })
	warn(r.OffloadOver != 0 && !offloading, "offload_over", without, `mode "offload_then_compact"`)
	warn(r.OffloadAt != 0 && !offloading, "offload_at", without, `mode "offload_then_compact"`)
	warn(r.OffloadEnough != 0 && !offloading, "offload_enough", without, `mode "offload_then_compact"`)
	batching := goesBy(func(p compaction.Policy) bool { return p.Batch })
	warn(r.CachePrice != 0 && !batching, "cache_price", without, `policy "balanced"`)
	warn(p.HardLimit > 0 && p.HardLimit <= p.Window, "hard_limit",
		"%d is not more than window_messages (%d): an answer waits for every compaction", p.HardLimit, p.Window)
	warn(p.Cooldown > 0 && p.Window > 0 && p.CooldownMin >= p.Window, "cooldown_min",
		"%d is not less than window_messages (%d): cooldown does nothing", p.CooldownMin, p.Window)
	warn(p.HardLimit > 0 && p.HardLimit <= p.Window, "window_messages", "%d is not less than hard_limit (%d): it does nothing", p.Window, p.HardLimit)
	c.warnOfContextSize(src, at, p)
}

// warnOfContextSize warns of a context that is full before anything but that sets a compaction off.
func (c *Config) warnOfContextSize(src *source, at string, p compaction.Policy) {
	warn := func(problem string, keys ...string) {
		for _, key := range keys { // one of them is enough
			if _, given := src.at[at+key]; given {
				c.warn(src.warning(at+key, "%s", problem))
				return
			}
		}
	}
	if n := p.TailMessages + p.Window; p.ContextSize > 0 && p.Window > 0 && p.ContextSize < n {
		warn(fmt.Sprintf("context_size (%d) is less than tail_messages (%d) + window_messages (%d): an answer waits for every compaction",
			p.ContextSize, p.TailMessages, p.Window), "context_size", "window_messages", "tail_messages")
	}
	if p.ContextSize > 0 && p.MaxMessages > 0 && p.ContextSize <= p.MaxMessages {
		warn(fmt.Sprintf("context_size (%d) is not more than max_messages (%d): an answer waits for every compaction", p.ContextSize, p.MaxMessages),
			"context_size", "max_messages")
	}
}

// Usable is what a request may hold at most, in tokens.
func (s *CompactionSettings) Usable() int { return s.ContextWindow - s.ReserveTokens }

// fit warns of a threshold that is never reached, and of a share that has no effect.
func (s *CompactionSettings) fit(c *Config, src *source, at string) {
	if usable := s.Usable(); s.AutoCompactThreshold > usable {
		c.Warnings = append(c.Warnings, src.warning(at+"auto_compact_threshold",
			"%d is more than context_window - reserve_tokens (%d), which is what counts", s.AutoCompactThreshold, usable))
	}
	w := s.Settings(c.policies).Window
	_, given := src.at[at+"max_history_share"]
	if enough, idle := w.IdleShare(); idle && given {
		c.warn(src.warning(at+"max_history_share", "%g keeps no more than %g does: a compaction leaves room to grow below auto_compact_threshold (%d)",
			s.MaxHistoryShare, enough, w.Trigger()))
	}
}

// fitOutput lowers the length of answers to what is kept free for them.
func (c *Config) fitOutput(src *source, reserve int, key string) {
	room := reserve - answerMargin
	if room < answerMargin/4 {
		room = max(1, reserve/2) // so small a reserve cannot hold the margin; half of it is still an answer
	}
	for i := range c.LLM.Models {
		if m := &c.LLM.Models[i]; m.MaxOutput > room {
			path := fmt.Sprintf("llm.models[%d].max_output", i)
			c.Warnings = append(c.Warnings, src.warning(path, "lowered from %d to %d, to fit %s (%d)", m.MaxOutput, room, key, reserve))
			m.MaxOutput = room
		}
	}
}
