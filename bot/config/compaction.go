package config

import (
	"cmp"
	"time"

	"ebb/compaction"
)

// CompactionConfig has the settings of flushes and compactions.
type CompactionConfig struct {
	CompactionSettings
	// InlineDeadline bounds a reply's wait for a compaction.
	InlineDeadline time.Duration `json:"inline_deadline"`
	// Deadline bounds a background compaction.
	Deadline time.Duration `json:"deadline"`
	// Retries bounds the requests for a summary, 1 to 10; with Model set, one more goes to the default model.
	Retries int `json:"retries"`
	// Model writes summaries. Empty: llm.default.
	Model string `json:"model"`
	// Notify announces automatic compactions.
	Notify bool `json:"notify"`
}

// CompactionSettings may differ by group. Memory is flushed at FlushRatio x AutoCompactThreshold. A policy that counts
// tokens compacts at AutoCompactThreshold.
type CompactionSettings struct {
	// Enabled turns automatic compactions on. False: a request omits the events that exceed the window.
	Enabled bool `json:"enabled"`
	// Policy is one of compaction.Policies.
	Policy string `json:"policy"`
	// AutoCompactThreshold triggers a compaction, in tokens.
	AutoCompactThreshold int `json:"auto_compact_threshold"`
	// ContextWindow is the model's window, in tokens.
	ContextWindow int `json:"context_window"`
	// ReserveTokens is the part of the window for the answer.
	ReserveTokens int `json:"reserve_tokens"`
	// MaxHistoryShare is the window's share for history after a compaction, over 0 to 1.
	MaxHistoryShare float64 `json:"max_history_share"`
	// FlushRatio is the share of AutoCompactThreshold that triggers a flush, over 0 and below 1.
	FlushRatio float64 `json:"flush_ratio"`
	// DailyTokens bounds a session's flushes and compactions in a day (UTC), input and output together. 0: no bound.
	DailyTokens int `json:"daily_tokens"`
	PolicyRules `strict:"null"`
}

// PolicyRules override the policy. Zero, or null in a file, keeps its own rule.
type PolicyRules struct {
	// Mode replaces or complements summarizing: one of the compaction.Mode.
	Mode string `json:"mode"`
	// Flush before a compaction: "on", "off", or "auto" for the policy's own rule.
	Flush string `json:"flush"`
	// SummaryTokens is the target length of a summary. The fallback is 1,200.
	SummaryTokens int `json:"summary_tokens"`

	// TailMessages is the minimum of raw messages.
	TailMessages int `json:"tail_messages"`
	// TailTurns is the minimum of raw turns.
	TailTurns int `json:"tail_turns"`
	// TailShare is the raw share of the budget, over 0 to 1.
	TailShare float64 `json:"tail_share"`

	// WindowMessages before the tail trigger a compaction.
	WindowMessages int `json:"window_messages"`
	// HardLimit of them trigger one before the next answer, unconditionally.
	HardLimit int `json:"hard_limit"`
	// ContextSize bounds the raw messages in a context.
	ContextSize int `json:"context_size"`
	// Cooldown is the time after a compaction from which half of WindowMessages trigger the next.
	Cooldown time.Duration `json:"cooldown"`
	// MaxMessages raw messages trigger a summary of all but the tail.
	MaxMessages int `json:"max_messages"`

	// FullContextTurns is A, the raw turns of a policy with segments.
	FullContextTurns int `json:"full_context_turns"`
	// CachedContextTurns is B, the turns of a segment.
	CachedContextTurns int `json:"cached_context_turns"`

	// OffloadOver is the least size of an offloaded tool result, in tokens.
	OffloadOver int `json:"offload_over"`
	// OffloadAt is the share of the threshold that triggers offloading, over 0 to 1.
	OffloadAt float64 `json:"offload_at"`
	// OffloadEnough freed tokens make a summary unnecessary.
	OffloadEnough int `json:"offload_enough"`

	// RollUpTokens of segments trigger a roll-up of the older ones.
	RollUpTokens int `json:"roll_up_tokens"`
	// RollUpSegments bounds the number of segments.
	RollUpSegments int `json:"roll_up_segments"`
	// CachePrice is the price of a cached input token relative to an uncached one, over 0 to 1. Policy balanced sizes
	// its batches by it.
	CachePrice float64 `json:"cache_price"`
}

const summaryTokens = 1200

func defaultCompaction() CompactionConfig {
	return CompactionConfig{
		CompactionSettings: CompactionSettings{
			Enabled: true, Policy: "token_budget",
			AutoCompactThreshold: 80_000, ContextWindow: 128_000, ReserveTokens: 20_000,
			MaxHistoryShare: 0.5, FlushRatio: 0.9, DailyTokens: 2_000_000,
			PolicyRules: PolicyRules{Flush: "auto"},
		},
		InlineDeadline: 20 * time.Second, Deadline: 120 * time.Second, Retries: 3,
	}
}

// Usable is the maximum of a request, in tokens.
func (s *CompactionSettings) Usable() int { return s.ContextWindow - s.ReserveTokens }

// Settings resolves s on top of the policies' own rules.
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

// policy resolves the rules of s on top of its policy. A rule of 0 is the own rule of the policy: no policy needs a 0 that turns one
// off. Thresholds of offloading count only in its mode.
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
	from := own["offload"] // a policy without offload thresholds uses those of offload
	p.OffloadOver = cmp.Or(p.OffloadOver, from.OffloadOver)
	p.OffloadAt = cmp.Or(p.OffloadAt, from.OffloadAt)
	p.OffloadEnough = cmp.Or(p.OffloadEnough, from.OffloadEnough)
	return p
}

// inForce makes every rule explicit. Resolving the result again changes nothing.
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
	s.Cooldown, s.Mode, s.Flush = p.Cooldown, string(p.Mode), "off"
	if p.Flush {
		s.Flush = "on"
	}
	return s
}

type rule[T any] struct{ key, of *T }

func (r *PolicyRules) ints(p *compaction.Policy) []rule[int] {
	rules := []rule[int]{
		{&r.SummaryTokens, &p.SummaryTokens},
		{&r.TailMessages, &p.TailMessages},
		{&r.TailTurns, &p.TailTurns},
		{&r.WindowMessages, &p.Window},
		{&r.HardLimit, &p.HardLimit},
		{&r.ContextSize, &p.ContextSize},
		{&r.MaxMessages, &p.MaxMessages},
		{&r.OffloadOver, &p.OffloadOver},
		{&r.OffloadEnough, &p.OffloadEnough},
		{&r.RollUpTokens, &p.RollUpTokens},
		{&r.RollUpSegments, &p.RollUpSegments},
	}
	if p.Segment > 0 { // A and B apply to segments only; A overrides tail_turns
		rules = append(rules, rule[int]{&r.FullContextTurns, &p.TailTurns}, rule[int]{&r.CachedContextTurns, &p.Segment})
	}
	return rules
}

func (r *PolicyRules) floats(p *compaction.Policy) []rule[float64] {
	return []rule[float64]{{&r.TailShare, &p.TailShare}, {&r.OffloadAt, &p.OffloadAt}, {&r.CachePrice, &p.CachePrice}}
}
