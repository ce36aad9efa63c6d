package config

import (
	"ebb/bot/schedule"
	"ebb/bot/schedule/when"
	"ebb/sessions"
)

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

func (l LimitsConfig) check(k checker) {
	for key, n := range map[string]int{
		"person_turns_per_minute": l.PersonTurns, "person_tokens_per_day": l.PersonTokens,
		"group_turns_per_minute": l.GroupTurns, "tokens_per_day": l.Tokens, "unidentified_turns_per_hour": l.UnidentifiedTurns,
		"person_scheduled_turns_per_day": l.ScheduledTurns, "compactions_per_day": l.Compactions,
	} {
		k.want(n >= 0, "agent.limits."+key, n, "0 (no limit) or more")
	}
}

// Limits returns the limits of turns.
func (l LimitsConfig) Limits() sessions.Limits {
	return sessions.Limits{
		PersonTurns: l.PersonTurns, GroupTurns: l.GroupTurns, PersonTokens: l.PersonTokens, Tokens: l.Tokens,
		UnidentifiedTurns: l.UnidentifiedTurns, ScheduledTurns: l.ScheduledTurns, Compactions: l.Compactions,
	}
}

// ScheduleConfig is about reminders.
type ScheduleConfig struct {
	// Enabled allows reminders. Stored ones wait while it is false.
	Enabled bool `json:"enabled"`
	// QuietHours, such as "22:00-08:00", postpone repeated reminders and scheduled questions to their end. A single
	// reminder is sent at its time.
	QuietHours string `json:"quiet_hours"`
}

func (s ScheduleConfig) check(k checker) {
	_, err := when.ParseQuiet(s.QuietHours)
	k.want(err == nil, "schedule.quiet_hours", s.QuietHours, `hours such as "22:00-08:00", or "" for none`)
}

// Settings returns the scheduler's settings.
func (s ScheduleConfig) Settings() schedule.Settings {
	quiet, _ := when.ParseQuiet(s.QuietHours) // checked before
	return schedule.Settings{Enabled: s.Enabled, Quiet: quiet}
}
