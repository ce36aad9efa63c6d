package config

import (
	"time"

	"ebb/sessions"
)

// RetentionConfig has the periods after which data is deleted. 0: it is kept.
type RetentionConfig struct {
	// Events is the period of the log and its summaries. Default 0.
	Events time.Duration `json:"events"`
	// Memories is the period since a fact was last said. Default 0.
	Memories time.Duration `json:"memories"`
	// CompactionLog is the period of attempts at compactions. Default 0.
	CompactionLog time.Duration `json:"compaction_log"`
	// Replies is the period of replies since they were sent or given up, and of ended reminders. Default 7 days.
	Replies time.Duration `json:"replies"`
	// Audit is the period of administrators' actions. Default 365 days.
	Audit time.Duration `json:"audit"`
}

const day = 24 * time.Hour

func defaultRetention() RetentionConfig {
	return RetentionConfig{Replies: 7 * day, Audit: 365 * day}
}

func (r RetentionConfig) check(k checker) {
	for key, period := range map[string]time.Duration{
		"events": r.Events, "memories": r.Memories, "compaction_log": r.CompactionLog, "replies": r.Replies, "audit": r.Audit,
	} {
		k.want(period >= 0, "retention."+key, durationText(period), `0 (kept), or a period such as "30d"`)
	}
}

// Periods returns the periods of the storage.
func (r RetentionConfig) Periods() sessions.Retention {
	return sessions.Retention{Events: r.Events, Memories: r.Memories, CompactionLog: r.CompactionLog, Replies: r.Replies, Audit: r.Audit}
}
