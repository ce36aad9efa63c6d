package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"ebb/bot/config/strict"
	"ebb/compaction"
	"ebb/sessions"
)

func (c *CompactionConfig) check(k *strict.Source, llm LLMConfig, own map[string]compaction.Policy) {
	c.CompactionSettings.check(k, commonPath, own)
	k.Positive(commonPath+"inline_deadline", c.InlineDeadline)
	k.Positive(commonPath+"deadline", c.Deadline)
	k.Between(commonPath+"retries", c.Retries, 1, 10)
	k.Want(c.Model == "" || llm.has(c.Model), commonPath+"model", strconv.Quote(c.Model),
		"empty (llm.default) or the name of a model in llm.models: %s", llm.names())
}

const commonPath = "agent.compaction."

var modes = []string{
	string(compaction.SummaryOnly), string(compaction.SummaryPlusPrune), string(compaction.PruneOnly), string(compaction.OffloadThenCompact),
}

// The path has a dot behind it.
func (s *CompactionSettings) check(k *strict.Source, at string, own map[string]compaction.Policy) {
	c := settingsChecker{k, at, s.Policy}
	_, known := own[s.Policy]
	names := slices.Sorted(maps.Keys(own))
	c.oneOf(known, "policy", s.Policy, names)
	c.oneOf(s.Mode == "" || slices.Contains(modes, s.Mode), "mode", s.Mode, modes)
	flush := []string{"auto", "on", "off"}
	c.oneOf(s.Flush == "" || slices.Contains(flush, s.Flush), "flush", s.Flush, flush)
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
	} else { // its rules have no effect without it
		c.budget(resolved.Window.Validate())
	}
}

// check refuses values that are invalid for any rule; the policy checks the others.
func (r *PolicyRules) check(c settingsChecker) {
	v := reflect.ValueOf(*r)
	set := strict.FieldsOf(v.Type())
	for _, name := range set.Names {
		switch f := v.FieldByIndex(set.Index[name]); {
		case f.Type() == strict.DurationType:
			c.want(f.Int() >= 0, name, strict.DurationText(time.Duration(f.Int())), "more than 0s, or 0 for the policy's own")
		case f.CanInt():
			c.want(f.Int() >= 0, name, f.Int(), "more than 0, or 0 for the policy's own")
		case f.CanFloat(): // shares
			c.want(f.Float() >= 0 && f.Float() <= 1, name, f.Float(), "more than 0 and at most 1, or 0 for the policy's own")
		}
	}
}

// The path at has a dot behind it.
type settingsChecker struct {
	src    *strict.Source
	at     string
	policy string
}

// want names the value's origin for a key that the file lacks, at the position of the first key in with. An inherited
// value is refused once, at its own position.
func (c settingsChecker) want(ok bool, key string, got any, want string, with ...string) {
	path := c.at + key
	given := c.src.IsGiven(path)
	if ok || c.src.Failed(path) || !given && c.src.Failed(commonPath+key) {
		return
	}
	offset, origin := c.src.Offset(path), ""
	if !given && c.src.HasFile() {
		origin = c.origin(key)
		offset = c.src.Offset(c.at + "policy")
		for _, other := range slices.Backward(with) {
			if c.src.IsGiven(c.at + other) {
				offset = c.src.Offset(c.at + other)
			}
		}
	}
	c.src.FailAt(offset, path, "got %v%s, want %s", got, origin, want)
}

func (c settingsChecker) oneOf(ok bool, key, got string, choices []string) {
	c.src.Expects(c.at+key, strict.Quoted(choices))
	c.want(ok, key, strconv.Quote(got), strict.Quoted(choices))
}

func (c settingsChecker) origin(key string) string {
	if c.src.IsGiven(commonPath + key) {
		return " (taken over from agent.compaction)"
	}
	if _, isRule := rulesKeys.Index[key]; isRule {
		return fmt.Sprintf(" (of policy %q)", c.policy)
	}
	return " (the default)"
}

var rulesKeys = strict.FieldsOf(reflect.TypeFor[PolicyRules]())

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

// answerMargin is the part of the reserve besides the answer, in tokens: counts are estimates, and requests have
// overhead.
const answerMargin = 1024

// fit runs after all checks passed: it lowers values that do not fit together, and warns of those that have no effect. The smallest
// reserve of any group bounds the answers of all models. A group whose sizes are the common ones gets no second warning of them.
func (c *Config) fit(src *strict.Source) {
	c.Admin.warn(c, src)
	comp := &c.Agent.Compaction
	reserve, key := comp.ReserveTokens, "agent.compaction.reserve_tokens"
	comp.fit(c, src, "agent.compaction.")
	for _, g := range c.groupCompactions() {
		if g.ReserveTokens < reserve {
			reserve, key = g.ReserveTokens, g.at+"reserve_tokens"
		}
		if g.AutoCompactThreshold != comp.AutoCompactThreshold || g.Usable() != comp.Usable() || g.MaxHistoryShare != comp.MaxHistoryShare {
			g.fit(c, src, g.at)
		}
	}
	c.fitOutput(src, reserve, key)
	c.warnOfIdleRules(src)
	c.fitModels(src)
	c.Access.warn(c, src, "access")
	c.warnOfPairs(src)
	c.warnOfIdleKeys(src)
	c.warnOfUnset(src)
	src.WarnOfRemoved()
}

func (c *Config) warnOfIdleRules(src *strict.Source) {
	common, groups := c.Policies()
	inUse := []compaction.Policy{common.Policy}
	for _, g := range groups {
		inUse = append(inUse, g.Policy)
	}
	c.warnOfVariables(src, common.Policy, inUse)
	comp := &c.Agent.Compaction
	c.warnOfRules(src, commonPath, comp.PolicyRules, common.Policy, inUse)
	c.warnOfZeros(src, commonPath, comp.CompactionSettings)
	for _, g := range c.groupCompactions() {
		p := groups[sessions.ConversationID(g.id)].Policy
		c.warnOfRules(src, g.at, g.PolicyRules, p, []compaction.Policy{p})
		c.warnOfZeros(src, g.at, g.CompactionSettings)
	}
}

// warnOfZeros warns of rules that are 0 in the file but still in effect. Explicit null is intended, and so are the
// zeros in a copy of the reference file, which explains every rule.
func (c *Config) warnOfZeros(src *strict.Source, at string, s CompactionSettings) {
	isGiven := func(name string) bool { return src.IsGiven(at + name) }
	if !slices.ContainsFunc(rulesKeys.Names, func(name string) bool { return !isGiven(name) }) {
		return
	}
	given, inForce := reflect.ValueOf(s), reflect.ValueOf(s.inForce(c.policies))
	for _, name := range rulesKeys.Names {
		index := rulesKeys.Index[name]
		rule, own := given.FieldByName("PolicyRules").FieldByIndex(index), inForce.FieldByName("PolicyRules").FieldByIndex(index)
		if !isGiven(name) || src.IsNull(at+name) || rule.Kind() == reflect.String || !rule.IsZero() || own.IsZero() {
			continue
		}
		value := fmt.Sprint(own)
		if own.Type() == strict.DurationType {
			value = strict.DurationText(time.Duration(own.Int()))
		}
		src.Warn(at+name, "0 does not turn the rule off, it stands for the policy's own, %s; say null, or leave the key out", value)
	}
}

// warnOfRules warns of rules that no policy inUse has, or that other rules of p disable. An inherited rule gets its
// warning at its own position.
func (c *Config) warnOfRules(src *strict.Source, at string, r PolicyRules, p compaction.Policy, inUse []compaction.Policy) {
	warn := func(idle bool, key, format string, args ...any) {
		if idle && src.IsGiven(at+key) {
			src.Warn(at+key, format, args...)
		}
	}
	for _, key := range rulesKeys.Names {
		what, has := compaction.Needs(key)
		isSet := !reflect.ValueOf(r).FieldByIndex(rulesKeys.Index[key]).IsZero()
		warn(has != nil && isSet && !slices.ContainsFunc(inUse, has), key, "does nothing without %s", what)
	}
	warn(p.HardLimit > 0 && p.HardLimit <= p.Window, "hard_limit",
		"%d is not more than window_messages (%d): an answer waits for every compaction", p.HardLimit, p.Window)
	warn(p.HardLimit > 0 && p.HardLimit <= p.Window, "window_messages", "%d is not less than hard_limit (%d): it does nothing", p.Window, p.HardLimit)
	c.warnOfContextSize(src, at, p)
}

func (c *Config) warnOfContextSize(src *strict.Source, at string, p compaction.Policy) {
	warn := func(problem string, keys ...string) {
		for _, key := range keys { // one is enough
			if src.IsGiven(at + key) {
				src.Warn(at+key, "%s", problem)
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

// Usable is the maximum of a request, in tokens.
func (s *CompactionSettings) Usable() int { return s.ContextWindow - s.ReserveTokens }

func (s *CompactionSettings) fit(c *Config, src *strict.Source, at string) {
	if usable := s.Usable(); s.AutoCompactThreshold > usable {
		src.Warn(at+"auto_compact_threshold",
			"%d is more than context_window - reserve_tokens (%d), which is what counts", s.AutoCompactThreshold, usable)
	}
	w := s.Settings(c.policies).Window
	if enough, idle := w.IdleShare(); idle && src.IsGiven(at+"max_history_share") {
		src.Warn(at+"max_history_share", "%g keeps no more than %g does: a compaction leaves room to grow below auto_compact_threshold (%d)",
			s.MaxHistoryShare, enough, w.Trigger())
	}
}

func (c *Config) fitOutput(src *strict.Source, reserve int, key string) {
	room := reserve - answerMargin
	if room < answerMargin/4 {
		room = max(1, reserve/2) // a reserve below the margin still leaves half of it to the answer
	}
	for i := range c.LLM.Models {
		if m := &c.LLM.Models[i]; m.MaxOutput > room {
			path := fmt.Sprintf("llm.models[%d].max_output", i)
			src.Warn(path, "lowered from %d to %d, to fit %s (%d)", m.MaxOutput, room, key, reserve)
			m.MaxOutput = room
		}
	}
}
