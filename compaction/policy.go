package compaction

import (
	"fmt"
	"time"
)

// Policy says when a conversation is compacted, what stays and how the rest is told. It is data: one planner, one view
// and one commit serve them all. A zero field means that the rule is not in force.
type Policy struct {
	Name string
	Mode Mode

	// Triggers: any of them sets a compaction off.
	Tokens      bool          // the context reaches Window.Trigger
	Batch       bool          // what may leave reaches [BatchSize]
	MaxMessages int           // more events than this are raw
	Window      int           // so many events may leave
	HardLimit   int           // so many may leave: before the next answer, whatever rests
	ContextSize int           // events that a view shows at most; more are raw: as HardLimit
	Cooldown    time.Duration // so long since the last compaction, where at least CooldownMin events may leave
	CooldownMin int           // 0: half of Window
	Segment     int           // turns that one summary tells, exactly; a compaction is due with Segment + TailTurns raw turns

	// Tail: what stays raw. The newest turn always does.
	TailMessages int     // at least so many events
	TailTurns    int     // at least so many turns
	TailShare    float64 // turns as far as this part of Window.Available goes; a bound to TailMessages where that is set too

	// Offload: large tool results leave the view before anything is summarised.
	OffloadOver   int     // tokens of a result from which on it is large
	OffloadAt     float64 // part of Window.Trigger at which offloading begins
	OffloadEnough int     // tokens; when offloading freed as much, nothing is summarised

	// Telling.
	Rolling        bool // the new summary replaces the old ones and tells their ranges too; else summaries are segments
	RollUpTokens   int  // segments together take at most so much, or the older ones become one
	RollUpSegments int  // and are at most so many
	SummaryTokens  int  // aim for the length of a summary; 0: Window.Summary
	Profile        Profile
	Marker         string // line over the summaries in a view; empty for none
	TailMarker     string // line between them and the raw events; empty for none

	// Flush memory at Window.FlushAt and before a compaction, once a cycle; FlushLag puts the second off until so many
	// tokens are not flushed.
	Flush    bool
	FlushLag int
	// Inline compacts before the next answer instead of after the last.
	Inline bool
	// CachePrice is what a cached input token costs, as a part of an uncached one: what [BatchSize] reckons with.
	CachePrice float64
}

// Mode says what a compaction does besides, or instead of, telling what leaves.
type Mode string

// The modes.
const (
	SummaryOnly        Mode = "summary_only"         // the tail stays as it is
	SummaryPlusPrune   Mode = "summary_plus_prune"   // tool results of the tail are shortened too
	PruneOnly          Mode = "prune_only"           // no model is asked: results are shortened, then old turns become a note
	OffloadThenCompact Mode = "offload_then_compact" // large results are moved out; told is only what is still too much
)

// Profile names the sections of a summary.
type Profile string

// The profiles.
const (
	ProfileChat      Profile = "chat"      // people, work, decisions, identifiers
	ProfileWork      Profile = "work"      // the state of the work first
	ProfileTechnical Profile = "technical" // eight sections about code and systems
	ProfileEvents    Profile = "events"    // a log of what happened, line by line
	ProfileDay       Profile = "day"       // what a group did on one day; no policy has it
)

// Settings are what one conversation is compacted by.
type Settings struct {
	Enabled bool // false: nothing is compacted by itself
	Window  Window
	Policy  Policy
	// DailyTokens bounds what flushes and compactions of one session may take a day, input and output together; 0: no
	// bound.
	DailyTokens int
}

// Validate checks the policy and its window. The error joins a [FieldError] for each problem.
func (s Settings) Validate() error { return s.Policy.Validate(s.Window) }

// Policies are the policies that a configuration may name, as their designs have them.
var Policies = map[string]Policy{
	"token_budget": {
		Name: "token_budget", Mode: SummaryOnly, Tokens: true, TailShare: 0.6, TailTurns: 1, Flush: true, Rolling: true,
		Profile: ProfileWork, Marker: "[对话历史摘要]",
	},
	"sliding_window": {
		Name: "sliding_window", Mode: SummaryOnly, Window: 12, HardLimit: 30, ContextSize: 75, Cooldown: 900 * time.Second,
		TailMessages: 40, Rolling: true, Profile: ProfileChat,
	},
	"archive": {
		Name: "archive", Mode: SummaryOnly, MaxMessages: 30, TailMessages: 10, ContextSize: 60, RollUpTokens: 1200, RollUpSegments: 8,
		Profile: ProfileChat, Marker: "## PREVIOUS CONTEXT SUMMARY", TailMarker: "## RECENT MESSAGES",
	},
	"turns": {
		Name: "turns", Mode: SummaryOnly, TailTurns: 4, Segment: 3, RollUpTokens: 1200, RollUpSegments: 8, Flush: true, FlushLag: 6000,
		Profile: ProfileEvents, Marker: "[Session Memory]",
	},
	"offload": {
		Name: "offload", Mode: OffloadThenCompact, Tokens: true, TailMessages: 5, OffloadOver: 2000, OffloadAt: 0.7,
		OffloadEnough: 15000, Rolling: true, SummaryTokens: 8000, Profile: ProfileTechnical, Marker: "[Compressed History]", Inline: true,
	},
	"balanced": {
		Name: "balanced", Mode: SummaryPlusPrune, Tokens: true, Batch: true, TailMessages: 40, TailShare: 0.6, RollUpTokens: 2400,
		RollUpSegments: 8, Flush: true, FlushLag: 24000, Profile: ProfileChat, CachePrice: 0.1,
	},
}

// Validate names what of a policy can't work in a window, and of the window itself, with the figures: a [FieldError] for
// each, joined.
func (p Policy) Validate(w Window) error {
	f := w.faults()
	windowWorks := len(f) == 0
	p.checkSigns(&f)
	p.checkShares(&f)
	p.checkTail(&f)
	p.checkTelling(&f)
	if windowWorks {
		f.want(p.RollUpTokens < w.Usable(), "roll_up_tokens", p.RollUpTokens,
			fmt.Sprintf("less than context_window without reserve_tokens (%d)", w.Usable()), "context_window", "reserve_tokens")
	}
	if len(f) == 0 {
		p.checkTriggers(&f)
	}
	return f.err()
}

// checkTriggers looks for a policy that would never compact anything by itself.
func (p Policy) checkTriggers(f *faults) {
	switch {
	case p.Tokens, p.Batch, p.counts(), p.HardLimit > 0, p.ContextSize > 0, p.Cooldown > 0, p.OffloadOver > 0:
	case p.TailTurns > 0:
		f.want(false, segmentKey, p.Segment, "at least 1")
	default:
		f.want(false, "policy", p.Name, "one that sets compactions off")
	}
}

// segmentKey is the name by which the configuration sets Segment.
const segmentKey = "cached_context_turns"

// turnsKey is the name by which the configuration sets TailTurns.
func (p Policy) turnsKey() string {
	if p.Segment > 0 {
		return "full_context_turns"
	}
	return "tail_turns"
}

// checkSigns looks for what is less than nothing.
func (p Policy) checkSigns(f *faults) {
	for _, rule := range []struct {
		key string
		n   int
	}{
		{"context_size", p.ContextSize},
		{"window_messages", p.Window},
		{"hard_limit", p.HardLimit},
		{"cooldown_min", p.CooldownMin},
		{"tail_messages", p.TailMessages},
		{p.turnsKey(), p.TailTurns},
		{"max_messages", p.MaxMessages},
		{segmentKey, p.Segment},
		{"offload_over", p.OffloadOver},
		{"offload_enough", p.OffloadEnough},
		{"roll_up_tokens", p.RollUpTokens},
		{"roll_up_segments", p.RollUpSegments},
		{"summary_tokens", p.SummaryTokens},
	} {
		f.want(rule.n >= 0, rule.key, rule.n, "0 or more")
	}
	f.want(p.Cooldown >= 0, "cooldown", p.Cooldown, "0s or more")
}

// checkShares looks for parts that are none.
func (p Policy) checkShares(f *faults) {
	for _, rule := range []struct {
		key string
		x   float64
	}{{"tail_share", p.TailShare}, {"offload_at", p.OffloadAt}, {"cache_price", p.CachePrice}} {
		f.want(rule.x >= 0 && rule.x <= 1, rule.key, rule.x, "0 to 1") // false for NaN too
	}
}

// checkTail looks for tails that leave nothing to compact.
func (p Policy) checkTail(f *faults) {
	switch {
	case p.ContextSize > 0 && p.TailMessages >= p.ContextSize:
		f.want(false, "tail_messages", p.TailMessages, fmt.Sprintf("less than context_size (%d)", p.ContextSize), "context_size")
	case p.MaxMessages > 0 && p.TailMessages >= p.MaxMessages:
		f.want(false, "tail_messages", p.TailMessages, fmt.Sprintf("less than max_messages (%d)", p.MaxMessages), "max_messages")
	}
	f.want(p.Segment <= 0 || p.TailTurns >= 1, p.turnsKey(), p.TailTurns,
		fmt.Sprintf("at least 1 next to %s (%d)", segmentKey, p.Segment), segmentKey)
}

// checkTelling looks at modes and at summaries.
func (p Policy) checkTelling(f *faults) {
	switch p.Mode {
	case SummaryOnly, SummaryPlusPrune, PruneOnly:
	case OffloadThenCompact:
		f.want(p.OffloadOver != 0, "offload_over", 0, "more than 0 in mode "+string(OffloadThenCompact), "mode")
	default:
		f.want(false, "mode", fmt.Sprintf("%q", p.Mode),
			fmt.Sprintf("%s, %s, %s or %s", SummaryOnly, SummaryPlusPrune, PruneOnly, OffloadThenCompact))
	}
	f.want(p.RollUpSegments != 1, "roll_up_segments", 1, "0, or at least 2")
}

// Language is the language of texts for the group: zh unless en is configured.
func Language(configured string) string {
	if configured == "en" {
		return "en"
	}
	return "zh"
}
