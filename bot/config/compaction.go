package config

import (
	"cmp"
	"maps"
	"time"

	"ebb/compaction"
	"ebb/sessions"
)

// CompactionConfig says when contexts are flushed and compacted, by which policy, and what a compaction may take.
type CompactionConfig struct {
	CompactionSettings
	// InlineDeadline is how long a reply waits for a compaction that cannot be put off. Default 20 s.
	InlineDeadline time.Duration `json:"inline_deadline"`
	// Deadline bounds a compaction in the background, retries included. Default 120 s.
	Deadline time.Duration `json:"deadline"`
	// Retries bounds the requests until a summary is usable, 1 to 10; with Model set, one more goes to the default
	// model. Default 3.
	Retries int `json:"retries"`
	// RetryBackoff is the pause before the second request; each later pause is that much longer. Default 1 s.
	RetryBackoff time.Duration `json:"retry_backoff"`
	// Model names the model that writes summaries. Default empty: llm.default.
	Model string `json:"model"`
	// Notify sends a short notice to the conversation after each automatic compaction. Default false.
	Notify bool `json:"notify"`
	// Groups are settings of single conversations, by their id, on top of the common ones. Default none.
	Groups map[string]CompactionSettings `json:"groups"`
}

// CompactionSettings is what one conversation is compacted by: the part of agent.compaction that a group may have of its
// own. Memory is flushed at FlushRatio x AutoCompactThreshold; where a policy counts tokens, it compacts at
// AutoCompactThreshold.
type CompactionSettings struct {
	// Enabled lets contexts be compacted by themselves. Default true; false: an overflowing context is only cut in what
	// is sent.
	Enabled bool `json:"enabled"`
	// Policy names the set of triggers and cuts, one of compaction.Policies. Default "token_budget".
	Policy string `json:"policy"`
	// AutoCompactThreshold is the size of a context that is compacted, in tokens. Default 80,000.
	AutoCompactThreshold int `json:"auto_compact_threshold"`
	// ContextWindow is the model's window, in tokens. Default 128,000.
	ContextWindow int `json:"context_window"`
	// ReserveTokens is kept free in the window for the answer, in tokens. Default 20,000.
	ReserveTokens int `json:"reserve_tokens"`
	// MaxHistoryShare is the share of the window that history may have after a compaction, over 0 to 1. Default 0.5.
	MaxHistoryShare float64 `json:"max_history_share"`
	// FlushRatio is the share of AutoCompactThreshold at which memory is flushed, more than 0 and
	// less than 1. Default 0.9.
	FlushRatio float64 `json:"flush_ratio"`
	// DailyTokens bounds what flushes and compactions of one session take in a day (UTC), input and output together.
	// Default 2,000,000; 0: no bound.
	DailyTokens int `json:"daily_tokens"`
	PolicyRules
}

// PolicyRules change single rules of the policy. All are zero by default, which leaves the policy's own; null in a file
// is zero.
type PolicyRules struct {
	// Mode says what a compaction does besides, or instead of, summarising: one of the compaction.Mode.
	Mode string `json:"mode"`
	// Flush is "on", "off" or "auto", which is the policy's own: whether memory is flushed before a compaction.
	Flush string `json:"flush"`
	// SummaryTokens is the length that a summary aims at; where the policy has none of its own, 1,200.
	SummaryTokens int `json:"summary_tokens"`

	// TailMessages stay raw at least.
	TailMessages int `json:"tail_messages"`
	// TailTurns stay raw at least.
	TailTurns int `json:"tail_turns"`
	// TailShare is the part of the budget that stays raw, over 0 to 1.
	TailShare float64 `json:"tail_share"`

	// WindowMessages is how many messages behind the tail set a compaction off.
	WindowMessages int `json:"window_messages"`
	// HardLimit is how many of them do so before the next answer, whatever rests.
	HardLimit int `json:"hard_limit"`
	// ContextSize is how many raw messages a context shows at most.
	ContextSize int `json:"context_size"`
	// Cooldown after a compaction, CooldownMin messages behind the tail are enough for the next.
	Cooldown time.Duration `json:"cooldown"`
	// CooldownMin is how many messages a compaction by Cooldown tells at least.
	CooldownMin int `json:"cooldown_min"`
	// MaxMessages is how many raw messages there may be before all but the tail are told.
	MaxMessages int `json:"max_messages"`

	// FullContextTurns is A, the turns that stay raw, of a policy that tells turns in segments.
	FullContextTurns int `json:"full_context_turns"`
	// CachedContextTurns is B, the turns that one segment tells, of such a policy.
	CachedContextTurns int `json:"cached_context_turns"`

	// OffloadOver is the size of a tool result, in tokens, from which on it is moved out of the context.
	OffloadOver int `json:"offload_over"`
	// OffloadAt is the share of the threshold at which results begin to be moved out, over 0 to 1.
	OffloadAt float64 `json:"offload_at"`
	// OffloadEnough is how many tokens have to be freed by that for nothing to be summarised.
	OffloadEnough int `json:"offload_enough"`

	// RollUpTokens is the size that segments have together at most before the older ones become one.
	RollUpTokens int `json:"roll_up_tokens"`
	// RollUpSegments is how many segments there are at most.
	RollUpSegments int `json:"roll_up_segments"`
	// CachePrice is the price of a cached input token as a part of an uncached one's, over 0 to 1: what balanced sizes
	// its batches by.
	CachePrice float64 `json:"cache_price"`
}

// summaryTokens is the length of a summary where neither the file nor the policy has one.
const summaryTokens = 1200

func defaultCompaction() CompactionConfig {
	return CompactionConfig{
		CompactionSettings: CompactionSettings{
			Enabled: true, Policy: "token_budget",
			AutoCompactThreshold: 80_000, ContextWindow: 128_000, ReserveTokens: 20_000,
			MaxHistoryShare: 0.5, FlushRatio: 0.9, DailyTokens: 2_000_000,
			PolicyRules: PolicyRules{Flush: "auto"},
		},
		InlineDeadline: 20 * time.Second, Deadline: 120 * time.Second, Retries: 3, RetryBackoff: time.Second,
		Groups: map[string]CompactionSettings{},
	}
}

// compaction returns what conversations are compacted by: the common settings, and those of single conversations.
func (c *Config) Policies() (compaction.Settings, map[sessions.ConversationID]compaction.Settings) {
	groups := make(map[sessions.ConversationID]compaction.Settings, len(c.Agent.Compaction.Groups))
	for id, g := range c.Agent.Compaction.Groups {
		groups[sessions.ConversationID(id)] = g.Settings(c.policies)
	}
	return c.Agent.Compaction.Settings(c.policies), groups
}

// settings resolves s on top of the policies' own rules.
func (s CompactionSettings) Settings(own map[string]compaction.Policy) compaction.Settings {
	p := s.policy(own)
	return compaction.Settings{
		Enabled: s.Enabled, Policy: p, DailyTokens: s.DailyTokens,
		Window: compaction.Window{
			Context: s.ContextWindow, Reserve: s.ReserveTokens, Threshold: s.AutoCompactThreshold,
			Share: s.MaxHistoryShare, FlushRatio: s.FlushRatio, Summary: cmp.Or(p.SummaryTokens, summaryTokens),
		},
	}
}

// policy is the named policy with the rules of s.
func (s CompactionSettings) policy(own map[string]compaction.Policy) compaction.Policy {
	p := own[s.Policy]
	for _, rule := range s.ints(&p) {
		if *rule.key != 0 {
			*rule.of = *rule.key
		}
	}
	for _, rule := range s.floats(&p) {
		if *rule.key != 0 {
			*rule.of = *rule.key
		}
	}
	p.Cooldown = cmp.Or(s.Cooldown, p.Cooldown)
	p.Mode = cmp.Or(compaction.Mode(s.Mode), p.Mode)
	if s.Flush == "on" || s.Flush == "off" {
		p.Flush = s.Flush == "on"
	}
	if p.Mode != compaction.OffloadThenCompact {
		p.OffloadOver, p.OffloadAt, p.OffloadEnough = 0, 0, 0
		return p
	}
	from := own["offload"] // a policy without thresholds of its own moves results out as that one does
	p.OffloadOver = cmp.Or(p.OffloadOver, from.OffloadOver)
	p.OffloadAt = cmp.Or(p.OffloadAt, from.OffloadAt)
	p.OffloadEnough = cmp.Or(p.OffloadEnough, from.OffloadEnough)
	return p
}

// inForce returns s with every rule spelled out, as settings resolves it; resolving that again changes nothing.
func (s CompactionSettings) inForce(own map[string]compaction.Policy) CompactionSettings {
	p := s.policy(own)
	s.FullContextTurns, s.CachedContextTurns = 0, 0
	for _, rule := range s.ints(&p) {
		*rule.key = *rule.of
	}
	for _, rule := range s.floats(&p) {
		*rule.key = *rule.of
	}
	s.SummaryTokens = cmp.Or(s.SummaryTokens, summaryTokens)
	if p.Cooldown > 0 {
		s.CooldownMin = p.LeastCooldown()
	}
	s.Cooldown, s.Mode, s.Flush = p.Cooldown, string(p.Mode), "off"
	if p.Flush {
		s.Flush = "on"
	}
	return s
}

// rule is a key of the file and what it sets in a policy.
type rule[T any] struct{ key, of *T }

func (r *PolicyRules) ints(p *compaction.Policy) []rule[int] {
	rules := []rule[int]{
		{&r.SummaryTokens, &p.SummaryTokens},
		{&r.TailMessages, &p.TailMessages},
		{&r.TailTurns, &p.TailTurns},
		{&r.WindowMessages, &p.Window},
		{&r.HardLimit, &p.HardLimit},
		{&r.ContextSize, &p.ContextSize},
		{&r.CooldownMin, &p.CooldownMin},
		{&r.MaxMessages, &p.MaxMessages},
		{&r.OffloadOver, &p.OffloadOver},
		{&r.OffloadEnough, &p.OffloadEnough},
		{&r.RollUpTokens, &p.RollUpTokens},
		{&r.RollUpSegments, &p.RollUpSegments},
	}
	if p.Segment > 0 { // A and B mean nothing to the others; A has the last word over tail_turns
		rules = append(rules, rule[int]{&r.FullContextTurns, &p.TailTurns}, rule[int]{&r.CachedContextTurns, &p.Segment})
	}
	return rules
}

func (r *PolicyRules) floats(p *compaction.Policy) []rule[float64] {
	return []rule[float64]{{&r.TailShare, &p.TailShare}, {&r.OffloadAt, &p.OffloadAt}, {&r.CachePrice, &p.CachePrice}}
}

// inForce returns c with the rules of its policies spelled out.
func (c *Config) inForce() Config {
	out := *c
	comp := &out.Agent.Compaction
	comp.CompactionSettings = comp.inForce(c.policies)
	comp.Groups = maps.Clone(comp.Groups)
	for id, g := range comp.Groups {
		comp.Groups[id] = g.inForce(c.policies)
	}
	return out
}
