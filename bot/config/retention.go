package config

import (
	"time"

	"ebb/sessions"
)

// RetentionConfig has the periods after which data is deleted. 0: it is kept.
type RetentionConfig struct {
	// Events is for the log and its summaries.
	Events time.Duration `json:"events"`
	// Memories is since a fact was last said.
	Memories      time.Duration `json:"memories"`
	CompactionLog time.Duration `json:"compaction_log"`
	// Replies is since they were sent or given up.
	Replies time.Duration `json:"replies"`
	Audit   time.Duration `json:"audit"`
}

const day = 24 * time.Hour

func defaultRetention() RetentionConfig {
	return RetentionConfig{Replies: 7 * day, Audit: 365 * day}
}

func (r RetentionConfig) byKey() map[string]time.Duration {
	return map[string]time.Duration{
		"events": r.Events, "memories": r.Memories, "compaction_log": r.CompactionLog, "replies": r.Replies, "audit": r.Audit,
	}
}

func (r RetentionConfig) check(k checker) {
	for key, period := range r.byKey() {
		k.want(period >= 0, "retention."+key, durationText(period), `0 (kept), or a period such as "30d"`)
	}
}

// Periods returns the periods of the storage.
func (r RetentionConfig) Periods() sessions.Retention {
	return sessions.Retention{Events: r.Events, Memories: r.Memories, CompactionLog: r.CompactionLog, Replies: r.Replies, Audit: r.Audit}
}
