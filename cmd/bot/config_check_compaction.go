package main

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebb/compaction"
)

func (c *CompactionConfig) check(k checker, llm LLMConfig, own map[string]compaction.Policy) {
	const at = "agent.compaction."
	before := len(k.errs)
	c.CompactionSettings.check(k, at, own)
	if len(k.errs) == before { // what a group takes over is refused once
		for _, id := range slices.Sorted(maps.Keys(c.Groups)) {
			g := c.Groups[id]
			g.check(k, groupPath(id)+".", own)
		}
	}
	k.positive(at+"inline_deadline", c.InlineDeadline)
	k.positive(at+"deadline", c.Deadline)
	k.between(at+"retries", c.Retries, 1, 10)
	k.want(c.Model == "" || llm.has(c.Model), at+"model", strconv.Quote(c.Model),
		"empty (llm.default) or the name of a model in llm.models: %s", llm.names())
}

var modes = []string{
	string(compaction.SummaryOnly), string(compaction.SummaryPlusPrune), string(compaction.PruneOnly), string(compaction.OffloadThenCompact),
}

// check refuses what can't work; at is the path of the object with a dot behind it.
func (s *CompactionSettings) check(k checker, at string, own map[string]compaction.Policy) {
	before := len(k.errs)
	k.oneOf(at+"policy", s.Policy, slices.Sorted(maps.Keys(own)))
	if s.Mode != "" {
		k.oneOf(at+"mode", s.Mode, modes)
	}
	if s.Flush != "" {
		k.oneOf(at+"flush", s.Flush, []string{"auto", "on", "off"})
	}
	k.want(s.ContextWindow > 0, at+"context_window", s.ContextWindow, "more than 0")
	k.want(s.AutoCompactThreshold > 0, at+"auto_compact_threshold", s.AutoCompactThreshold, "more than 0")
	k.want(s.AutoCompactThreshold <= s.ContextWindow, at+"auto_compact_threshold", s.AutoCompactThreshold,
		"at most context_window (%d)", s.ContextWindow)
	k.want(s.ReserveTokens > 0, at+"reserve_tokens", s.ReserveTokens, "more than 0")
	k.want(s.ReserveTokens < s.ContextWindow, at+"reserve_tokens", s.ReserveTokens,
		"less than context_window (%d)", s.ContextWindow)
	k.want(s.MaxHistoryShare > 0 && s.MaxHistoryShare <= 1, at+"max_history_share", s.MaxHistoryShare, "more than 0 and at most 1")
	// At the threshold itself a flush would come too late for the compaction that it has to come before.
	k.want(s.FlushRatio > 0 && s.FlushRatio < 1, at+"flush_ratio", s.FlushRatio, "more than 0 and less than 1")
	k.want(s.DailyTokens >= 0, at+"daily_tokens", s.DailyTokens, "0 (no bound) or more")
	s.PolicyRules.check(k, at)
	if len(k.errs) > before {
		return
	}
	k.budget(at, s.settings(own).Validate())
}

// check refuses negative values, which no rule has. Upper bounds depend on other values: the policy knows them.
func (r *PolicyRules) check(k checker, at string) {
	v := reflect.ValueOf(*r)
	set := jsonFields(v.Type())
	for _, name := range set.names {
		switch f := v.FieldByIndex(set.index[name]); {
		case f.Type() == durationType:
			k.want(f.Int() >= 0, at+name, durationText(time.Duration(f.Int())), "more than 0s, or 0 for the policy's own")
		case f.CanInt():
			k.want(f.Int() >= 0, at+name, f.Int(), "more than 0, or 0 for the policy's own")
		case f.CanFloat():
			k.want(f.Float() >= 0, at+name, f.Float(), "more than 0, or 0 for the policy's own")
		}
	}
}

// budget records that settings can't work together, at the key that the error is about, or where that is not in the
// file, at the policy that has it.
func (k checker) budget(at string, err error) {
	if err == nil {
		return
	}
	var field *compaction.FieldError
	if !errors.As(err, &field) {
		k.fail(strings.TrimSuffix(at, "."), "%v", err)
		return
	}
	path := at + field.Key
	offset := k.offset(path)
	if _, given := k.at[path]; !given {
		offset = k.offset(at + "policy")
	}
	k.failAt(offset, path, "got %v, want %s", field.Got, field.Want)
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
		if g.AutoCompactThreshold != comp.AutoCompactThreshold || g.Usable() != comp.Usable() {
			g.fit(c, src, groupPath(id)+".")
		}
	}
	c.fitOutput(src, reserve, key)
	c.warnOfIdleRules(src)
}

// warnOfIdleRules warns of rules that no policy in the file goes by.
func (c *Config) warnOfIdleRules(src *source) {
	common, groups := c.compaction()
	policies := []compaction.Policy{common.Policy}
	for _, g := range groups {
		policies = append(policies, g.Policy)
	}
	inTurns := slices.ContainsFunc(policies, func(p compaction.Policy) bool { return p.Segment > 0 })
	offloading := slices.ContainsFunc(policies, func(p compaction.Policy) bool { return p.OffloadOver > 0 })
	r := c.Agent.Compaction.PolicyRules
	for _, rule := range []struct {
		key  string
		idle bool
		want string
	}{
		{"full_context_turns", r.FullContextTurns != 0 && !inTurns, `policy "turns"`},
		{"cached_context_turns", r.CachedContextTurns != 0 && !inTurns, `policy "turns"`},
		{"offload_over", r.OffloadOver != 0 && !offloading, `mode "offload_then_compact"`},
		{"offload_at", r.OffloadAt != 0 && !offloading, `mode "offload_then_compact"`},
		{"offload_enough", r.OffloadEnough != 0 && !offloading, `mode "offload_then_compact"`},
	} {
		if rule.idle {
			c.Warnings = append(c.Warnings, src.warning("agent.compaction."+rule.key, "does nothing without %s", rule.want))
		}
	}
}

// Usable is what a request may hold at most, in tokens.
func (s *CompactionSettings) Usable() int { return s.ContextWindow - s.ReserveTokens }

// fit warns of a threshold that is never reached.
func (s *CompactionSettings) fit(c *Config, src *source, at string) {
	if usable := s.Usable(); s.AutoCompactThreshold > usable {
		c.Warnings = append(c.Warnings, src.warning(at+"auto_compact_threshold",
			"%d is more than context_window - reserve_tokens (%d), which is what counts", s.AutoCompactThreshold, usable))
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
