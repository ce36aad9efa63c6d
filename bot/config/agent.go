package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"ebb/bot/config/strict"
	"ebb/sessions"
)

// AgentConfig has the bot's behavior in conversations.
type AgentConfig struct {
	Name string `json:"name"`
	// Language is "zh" or "en", for fixed words as a fallback, and for summaries and facts of groups without their own.
	Language string `json:"language"`
	// Prompt ends the system prompt.
	Prompt string `json:"prompt"`
	// SessionScope is "group", one session for a whole group, or "member", one for each member. Facts from a group
	// belong to the group in both cases, except tasks, which belong to the member's session.
	SessionScope string `json:"session_scope"`
	// MergePending answers messages that arrive during a turn together. False: one by one.
	MergePending bool `json:"merge_pending"`
	// MaxMerged bounds the messages of one turn.
	MaxMerged int `json:"max_merged"`
	// Gather is the wait before a turn for messages sent together. 0: none.
	Gather time.Duration `json:"gather"`
	// BusyNote is the time after which a running turn is announced. 0: never.
	BusyNote time.Duration `json:"busy_note"`
	// StaleAfter is the age at which a waiting message gets an apology.
	StaleAfter time.Duration `json:"stale_after"`
	// TurnTimeout includes all model calls and tools.
	TurnTimeout time.Duration `json:"turn_timeout"`
	// MaxToolRounds bounds the calls with tool results in a turn.
	MaxToolRounds int `json:"max_tool_rounds"`
	// Timezone is the IANA zone of times in requests.
	Timezone string `json:"timezone"`
	// Admins are the staff ids of administrators.
	Admins     []string         `json:"admins"`
	Limits     LimitsConfig     `json:"limits"`
	Compaction CompactionConfig `json:"compaction"`
	Memory     MemoryConfig     `json:"memory"`
	Media      MediaConfig      `json:"media"`
}

// LimitsConfig bounds turns and tokens. 0: no limit.
type LimitsConfig struct {
	// PersonTurns is for a minute, in all conversations.
	PersonTurns int `json:"person_turns_per_minute"`
	// PersonTokens is for a day (UTC), input and output together.
	PersonTokens int `json:"person_tokens_per_day"`
	// GroupTurns is for a minute.
	GroupTurns int `json:"group_turns_per_minute"`
	// UnidentifiedTurns bounds the turns of a sender without a staff id in groups, in an hour. So two bots that answer
	// each other come to an end.
	UnidentifiedTurns int `json:"unidentified_turns_per_hour"`
	// ScheduledTurns is for one person's scheduled questions in a day (UTC).
	ScheduledTurns int `json:"person_scheduled_turns_per_day"`
	// Compactions is for compactions by hand in one conversation in a day (UTC).
	Compactions int `json:"compactions_per_day"`
	// Tokens is for all conversations in a day (UTC), upkeep included.
	Tokens int `json:"tokens_per_day"`
}

func defaultAgent() AgentConfig {
	return AgentConfig{
		Limits: LimitsConfig{UnidentifiedTurns: 20, ScheduledTurns: 48, Compactions: 10},
		Name:   "Ebb", Language: "zh", SessionScope: "group",
		MergePending: true, MaxMerged: 20, Gather: 100 * time.Millisecond,
		BusyNote: 30 * time.Second, StaleAfter: 30 * time.Minute, TurnTimeout: 5 * time.Minute, MaxToolRounds: 8,
		Timezone: "Asia/Shanghai", Admins: []string{},
		Compaction: defaultCompaction(), Memory: defaultMemory(), Media: defaultMedia(),
	}
}

var sessionScopes = []string{"group", "member"}

func (a *AgentConfig) check(k *strict.Source) {
	wantName(k, "agent.name", a.Name, "a name")
	k.Advise(!strings.HasPrefix(a.Name, "@"), "agent.name", "%q begins with @, which stands before the name where it is shown", a.Name)
	k.OneOf("agent.language", a.Language, []string{"zh", "en"})
	k.OneOf("agent.session_scope", a.SessionScope, sessionScopes)
	k.Between("agent.max_merged", a.MaxMerged, 1, 100)
	k.Want(a.Gather >= 0 && a.Gather <= 5*time.Second, "agent.gather", strict.DurationText(a.Gather), "0s to 5s")
	k.Want(a.BusyNote >= 0, "agent.busy_note", strict.DurationText(a.BusyNote), "0s or more")
	k.Positive("agent.stale_after", a.StaleAfter)
	k.Positive("agent.turn_timeout", a.TurnTimeout)
	a.Limits.check(k)
	a.Media.check(k)
	k.Between("agent.max_tool_rounds", a.MaxToolRounds, 1, 100)
	_, err := time.LoadLocation(a.Timezone)
	k.Want(err == nil && a.Timezone != "" && a.Timezone != "Local", "agent.timezone", strconv.Quote(a.Timezone),
		`the name of a time zone, such as "Asia/Shanghai"`)
	for i, id := range a.Admins {
		wantPerson(k, fmt.Sprintf("agent.admins[%d]", i), id)
	}
}

func (l LimitsConfig) check(k *strict.Source) {
	for key, n := range map[string]int{
		"person_turns_per_minute": l.PersonTurns, "person_tokens_per_day": l.PersonTokens,
		"group_turns_per_minute": l.GroupTurns, "tokens_per_day": l.Tokens, "unidentified_turns_per_hour": l.UnidentifiedTurns,
		"person_scheduled_turns_per_day": l.ScheduledTurns, "compactions_per_day": l.Compactions,
	} {
		k.Want(n >= 0, "agent.limits."+key, n, "0 (no limit) or more")
	}
}

// Limits returns the limits of turns.
func (l LimitsConfig) Limits() sessions.Limits {
	return sessions.Limits{
		PersonTurns: l.PersonTurns, GroupTurns: l.GroupTurns, PersonTokens: l.PersonTokens, Tokens: l.Tokens,
		UnidentifiedTurns: l.UnidentifiedTurns, ScheduledTurns: l.ScheduledTurns, Compactions: l.Compactions,
	}
}
