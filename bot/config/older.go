package config

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"ebb/bot/config/strict"
	"ebb/compaction"
)

// removed are keys of earlier builds that a file may still have, with what to write instead or the reason. They are warned of, so that a
// file outlives an update.
var removed = map[string]string{
	"agent.compaction.groups":        `the settings of a group are in groups, as "groups": {"ID": {"compaction": {…}}}`,
	"agent.compaction.cooldown_min":  "after the cooldown half of window_messages start a compaction",
	"agent.memory.order":             "requests have pinned memory, summaries, raw events and recalled data, in this order",
	"agent.compaction.retry_backoff": "the pause before the second request is 1s",
}

// removedReason looks a key up; those of agent.compaction are the same in groups.ID.compaction. A conversation's own settings have no path
// and no place for a warning, so there each key has to exist.
func removedReason(t reflect.Type, path, key string) string {
	if t == reflect.TypeFor[CompactionSettings]() && path != "" {
		path = "agent.compaction"
	}
	return removed[strict.Join(path, key)]
}

// ruleAliases are keys of older bots in agent.compaction, valid in place of ours.
var ruleAliases = map[string]string{
	"compression_window_size":  "window_messages",
	"tail_keep_size":           "tail_messages",
	"keep_last":                "tail_messages",
	"preserve_count":           "tail_messages",
	"preserveCount":            "tail_messages",
	"compression_cooldown_sec": "cooldown",
	"compression_cooldown_min": "cooldown_min",
	"compression_hard_limit":   "hard_limit",
	"fullContextTurns":         "full_context_turns",
	"cachedContextTurns":       "cached_context_turns",
	"trigger_threshold":        "offload_enough",
	"target_tokens":            "summary_tokens",
	"targetTokens":             "summary_tokens",
}

var retryAliases = map[string]string{"retry_count": "retries", "retryCount": "retries"}

func canonicalKey(t reflect.Type, key string) string {
	common := t == reflect.TypeFor[CompactionConfig]()
	if common || t == reflect.TypeFor[CompactionSettings]() {
		if name, ok := ruleAliases[key]; ok {
			return name
		}
	}
	if common {
		if name, ok := retryAliases[key]; ok {
			return name
		}
	}
	return key
}

// contextWindowKey is an older bot's object for its window's turns, next to agent.compaction.
const contextWindowKey = "contextWindow"

// decodeContextWindow reads the object in which an older bot had A and B. Its two values are noted at the place of ours, so that one
// given twice is found, and errors show the older path.
func decodeContextWindow(src *strict.Source, root hujson.Value, rules *PolicyRules) {
	const at = "agent." + contextWindowKey
	v := root.Find("/agent/" + contextWindowKey)
	if v == nil {
		return
	}
	var older struct {
		Full   int `json:"fullContextTurns"`
		Cached int `json:"cachedContextTurns"`
	}
	strict.Decode(src, at, *v, &older)
	for _, k := range []struct {
		path, key string
		from, to  *int
	}{
		{at + ".fullContextTurns", "agent.compaction.full_context_turns", &older.Full, &rules.FullContextTurns},
		{at + ".cachedContextTurns", "agent.compaction.cached_context_turns", &older.Cached, &rules.CachedContextTurns},
	} {
		if !src.IsGiven(k.path) {
			continue
		}
		if src.IsGiven(k.key) {
			src.Fail(k.path, "the same as %s, which is given in line %d, want one of the two", src.WrittenAs(k.key), src.Line(k.key))
			continue
		}
		*k.to = *k.from
		src.Move(k.path, k.key)
	}
}

// olderVariables change the policy itself, so that values of the file have precedence.
const (
	fullTurnsVariable   = "PRIZM_FULL_CONTEXT_TURNS"
	cachedTurnsVariable = "PRIZM_CACHED_CONTEXT_TURNS"
	enoughVariable      = "SYNAPSE_COMPACT_TRIGGER_THRESHOLD"
	targetVariable      = "SYNAPSE_COMPACT_TARGET_TOKENS"
	preserveVariable    = "SYNAPSE_COMPACT_PRESERVE_COUNT"
	modelVariable       = "SYNAPSE_COMPACT_MODEL"
	retriesVariable     = "SYNAPSE_COMPACT_RETRY_COUNT"
)

func ownPolicies(src *strict.Source) map[string]compaction.Policy {
	own := maps.Clone(compaction.Policies)
	turns, offload := own["turns"], own["offload"]
	for name, rule := range map[string]*int{
		fullTurnsVariable: &turns.TailTurns, cachedTurnsVariable: &turns.Segment,
		enoughVariable: &offload.OffloadEnough, targetVariable: &offload.SummaryTokens, preserveVariable: &offload.TailMessages,
	} {
		if n, given := numberFrom(src, name, math.MaxInt32); given {
			*rule = n
		}
	}
	own["turns"], own["offload"] = turns, offload
	return own
}

var variablePolicies = map[string]string{
	fullTurnsVariable: "turns", cachedTurnsVariable: "turns", enoughVariable: "offload", targetVariable: "offload",
	preserveVariable: "offload", modelVariable: "offload", retriesVariable: "offload",
}

// warnOfVariables warns of older bots' variables that no conversation uses. Model and retries apply to the common
// policy only.
func warnOfVariables(src *strict.Source, common compaction.Policy, inUse []compaction.Policy) {
	for _, name := range slices.Sorted(maps.Keys(variablePolicies)) {
		policy, users := variablePolicies[name], inUse
		if name == modelVariable || name == retriesVariable {
			users = []compaction.Policy{common}
		}
		uses := func(p compaction.Policy) bool { return p.Name == policy }
		if strings.TrimSpace(src.Getenv(name)) != "" && !slices.ContainsFunc(users, uses) {
			src.WarnVariable(name, fmt.Sprintf("does nothing without policy %q", policy))
		}
	}
}

func numberFrom(s *strict.Source, name string, most int) (n int, given bool) {
	text := s.Getenv(name)
	if text == "" {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 || n > most {
		s.FailVariable(name, "got %q, want a whole number from 1 to %d", text, most)
		return 0, false
	}
	return n, true
}

// olderSummarizer reads model and retries of the offload policy from the environment, if the file lacks them.
func olderSummarizer(src *strict.Source, c *CompactionConfig, llm LLMConfig) {
	if c.Policy != "offload" {
		return
	}
	if !src.IsGiven("agent.compaction.retries") {
		if n, given := numberFrom(src, retriesVariable, 10); given {
			c.Retries = n
		}
	}
	name := strings.TrimSpace(src.Getenv(modelVariable))
	if c.Model != "" || name == "" {
		return
	}
	// The variable holds the provider's name; our name of the model is valid too.
	i := slices.IndexFunc(llm.Models, func(m ModelConfig) bool { return m.Name == name })
	if i < 0 {
		i = slices.IndexFunc(llm.Models, func(m ModelConfig) bool { return m.Model == name })
	}
	if i < 0 {
		src.FailVariable(modelVariable, "got %q, want the name of a model in llm.models: %s", name, llm.names())
		return
	}
	c.Model = llm.Models[i].Name
}
