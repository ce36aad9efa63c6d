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

// warn records sizes that have less effect than they seem to have.
func (s *CompactionSettings) warn(src *strict.Source, at string, own map[string]compaction.Policy) {
	if usable := s.Usable(); s.AutoCompactThreshold > usable {
		src.Warn(at+"auto_compact_threshold",
			"%d is more than context_window - reserve_tokens (%d), which is what counts", s.AutoCompactThreshold, usable)
	}
	w := s.Settings(own).Window
	if enough, idle := w.IdleShare(); idle && src.IsGiven(at+"max_history_share") {
		src.Warn(at+"max_history_share", "%g keeps no more than %g does: a compaction leaves room to grow below auto_compact_threshold (%d)",
			s.MaxHistoryShare, enough, w.Trigger())
	}
}

// warnOfZeros warns of rules that are 0 in the file but still in effect. Explicit null is intended, and so are the
// zeros in a copy of the reference file, which explains every rule.
func (s CompactionSettings) warnOfZeros(src *strict.Source, at string, own map[string]compaction.Policy) {
	isGiven := func(name string) bool { return src.IsGiven(at + name) }
	if !slices.ContainsFunc(rulesKeys.Names, func(name string) bool { return !isGiven(name) }) {
		return
	}
	given, inForce := reflect.ValueOf(s), reflect.ValueOf(s.inForce(own))
	for _, name := range rulesKeys.Names {
		index := rulesKeys.Index[name]
		rule, inPolicy := given.FieldByName("PolicyRules").FieldByIndex(index), inForce.FieldByName("PolicyRules").FieldByIndex(index)
		if !isGiven(name) || src.IsNull(at+name) || rule.Kind() == reflect.String || !rule.IsZero() || inPolicy.IsZero() {
			continue
		}
		value := fmt.Sprint(inPolicy)
		if inPolicy.Type() == strict.DurationType {
			value = strict.DurationText(time.Duration(inPolicy.Int()))
		}
		src.Warn(at+name, "0 does not turn the rule off, it stands for the policy's own, %s; say null, or leave the key out", value)
	}
}

// warn records rules that no policy inUse has, or that other rules of p disable. An inherited rule gets its
// warning at its own position.
func (r PolicyRules) warn(src *strict.Source, at string, p compaction.Policy, inUse []compaction.Policy) {
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
	warnOfContextSize(src, at, p)
}

func warnOfContextSize(src *strict.Source, at string, p compaction.Policy) {
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
