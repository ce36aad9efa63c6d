package compaction

import (
	"fmt"
	"time"

	"ebb/sessions"
)

// Policy defines when a conversation is compacted, how much stays raw and how the rest is summarized. A zero field
// disables its rule.
type Policy struct {
	Name string
	Mode Mode

	// Triggers; each one suffices.
	Tokens      bool          // the context reaches Window.Trigger
	Batch       bool          // the leaving tokens reach [BatchSize]
	MaxMessages int           // maximum of raw events
	Window      int           // number of events that may leave
	HardLimit   int           // like Window, but before the next answer, without pauses
	ContextSize int           // maximum of raw events in a view; acts like HardLimit
	Cooldown    time.Duration // time since the last compaction, if LeastCooldown events may leave
	Segment     int           // exact turns of one summary; due with Segment + TailTurns raw turns

	// Tail: the part that stays raw. The newest turn always stays.
	TailMessages int     // minimum of events
	TailTurns    int     // minimum of turns
	TailShare    float64 // share of Window.Available; an upper bound if TailMessages is set

	// Offload: large tool results leave the view before a summary is made.
	OffloadOver   int     // tokens above which a result is large
	OffloadAt     float64 // share of Window.Trigger at which it begins
	OffloadEnough int     // freed tokens that make a summary unnecessary

	// Summary.
	Rolling        bool // a new summary continues and replaces the old ones; else summaries are segments
	RollUpTokens   int  // total of all segments, above which the older ones are rolled up
	RollUpSegments int  // number of segments, above which the older ones are rolled up
	SummaryTokens  int  // target length; 0: Window.Summary
	Profile        Profile
	Marker         string // line above the summaries in a view
	TailMarker     string // line between summaries and raw events

	// Flush extracts memory at Window.FlushAt and before a compaction, once a cycle. FlushLag is the least number of
	// unflushed tokens for the second one.
	Flush    bool
	FlushLag int
	// Inline compacts before the next answer instead of after the last one.
	Inline bool
	// CachePrice is that of a cached input token relative to an uncached one, for [BatchSize].
	CachePrice float64
}

// Mode selects a compaction's work besides, or instead of, a summary.
type Mode string

// The modes.
const (
	SummaryOnly        Mode = "summary_only"         // the tail stays unchanged
	SummaryPlusPrune   Mode = "summary_plus_prune"   // tool results of the tail are shortened too
	PruneOnly          Mode = "prune_only"           // no model: results are shortened, then old turns become a note
	OffloadThenCompact Mode = "offload_then_compact" // large results move out first; the rest is summarized if still too large
)

// Profile names the sections of a summary.
type Profile string

// The profiles.
const (
	ProfileChat      Profile = "chat"      // people, work, decisions, identifiers
	ProfileWork      Profile = "work"      // state of the work first
	ProfileTechnical Profile = "technical" // eight sections about code and systems
	ProfileEvents    Profile = "events"    // an event log, line by line
	ProfileDay       Profile = "day"       // a group's day; not used by a policy
)

// Settings are the effective settings of one conversation.
type Settings struct {
	Enabled bool // false disables automatic compaction
	Window  Window
	Policy  Policy
	// DailyTokens bounds a session's daily tokens of flushes and compactions; 0: none.
	DailyTokens int
}

// RestsUntil is the size up to which an undone compaction is not repeated by itself, in tokens; size is that of now. It is 0 where the
// session does not rest, or nothing is compacted by itself.
func (s Settings) RestsUntil(session sessions.Session, size int) int {
	if !s.Enabled || session.CompactError != sessions.CompactUndone || session.RearmTokens <= size {
		return 0
	}
	return session.RearmTokens
}

// Validate is [Policy.Validate] with the window.
func (s Settings) Validate() error { return s.Policy.Validate(s.Window) }

// Policies are those that a configuration may name.
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

// Validate checks a policy and its window. The error joins a [FieldError] for each problem.
func (p Policy) Validate(w Window) error {
	f := w.findFaults()
	windowWorks := len(f) == 0
	p.checkSigns(&f)
	p.checkShares(&f)
	p.checkTail(&f)
	p.checkSummaries(&f)
	if windowWorks {
		f.wantSetting(p.RollUpTokens < w.Usable(), "roll_up_tokens", p.RollUpTokens,
			fmt.Sprintf("less than context_window without reserve_tokens (%d)", w.Usable()), "context_window", "reserve_tokens")
	}
	if len(f) == 0 {
		p.checkTriggers(&f)
	}
	return f.joinErrors()
}

func (p Policy) checkTriggers(f *fieldFaults) {
	switch {
	case p.Tokens, p.Batch, p.triggersByCount(), p.HardLimit > 0, p.ContextSize > 0, p.Cooldown > 0, p.OffloadOver > 0:
	case p.TailTurns > 0:
		f.wantSetting(false, segmentKey, p.Segment, "at least 1")
	default:
		f.wantSetting(false, "policy", p.Name, "one that sets compactions off")
	}
}

const segmentKey = "cached_context_turns"

func (p Policy) turnsKey() string {
	if p.Segment > 0 {
		return "full_context_turns"
	}
	return "tail_turns"
}

func (p Policy) checkSigns(f *fieldFaults) {
	for _, rule := range p.countRules() {
		f.wantSetting(rule.n >= 0, rule.key, rule.n, "0 or more")
	}
	f.wantSetting(p.Cooldown >= 0, "cooldown", p.Cooldown, "0s or more")
}

func (p Policy) checkShares(f *fieldFaults) {
	for _, rule := range p.shareRules() {
		f.wantSetting(rule.x >= 0 && rule.x <= 1, rule.key, rule.x, "0 to 1") // false for NaN
	}
}

func (p Policy) checkTail(f *fieldFaults) {
	switch {
	case p.ContextSize > 0 && p.TailMessages >= p.ContextSize:
		f.wantSetting(false, "tail_messages", p.TailMessages, fmt.Sprintf("less than context_size (%d)", p.ContextSize), "context_size")
	case p.MaxMessages > 0 && p.TailMessages >= p.MaxMessages:
		f.wantSetting(false, "tail_messages", p.TailMessages, fmt.Sprintf("less than max_messages (%d)", p.MaxMessages), "max_messages")
	}
	f.wantSetting(p.Segment <= 0 || p.TailTurns >= 1, p.turnsKey(), p.TailTurns,
		fmt.Sprintf("at least 1 next to %s (%d)", segmentKey, p.Segment), segmentKey)
}

func (p Policy) checkSummaries(f *fieldFaults) {
	switch p.Mode {
	case SummaryOnly, SummaryPlusPrune, PruneOnly:
	case OffloadThenCompact:
		f.wantSetting(p.OffloadOver != 0, "offload_over", 0, "more than 0 in mode "+string(OffloadThenCompact), "mode")
	default:
		f.wantSetting(false, "mode", fmt.Sprintf("%q", p.Mode),
			fmt.Sprintf("%s, %s, %s or %s", SummaryOnly, SummaryPlusPrune, PruneOnly, OffloadThenCompact))
	}
	f.wantSetting(p.RollUpSegments != 1, "roll_up_segments", 1, "0, or at least 2")
}

// Language is the language of texts for the group: zh by default.
func Language(configured string) string {
	if configured == "en" {
		return "en"
	}
	return "zh"
}

func (p Policy) triggersByCount() bool { return p.Window > 0 || p.MaxMessages > 0 || p.Segment > 0 }
