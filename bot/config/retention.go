package config

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"ebb/bot/config/strict"
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

func (r RetentionConfig) check(k *strict.Source) {
	for key, period := range r.byKey() {
		k.Want(period >= 0, "retention."+key, strict.DurationText(period), `0 (kept), or a period such as "30d"`)
	}
}

// MediaConfig is about the files and pictures that people send.
type MediaConfig struct {
	// MaxFile bounds a file, as in 50MB.
	MaxFile string `json:"max_file"`
	// KeepPictures is the time for which a picture is kept, since it was sent last. 0: as long as its message.
	KeepPictures time.Duration `json:"keep_pictures"`
}

func defaultMedia() MediaConfig { return MediaConfig{MaxFile: "50MB", KeepPictures: 30 * day} }

// mostFile bounds max_file: a parser has half a gigabyte.
const mostFile = 200 << 20

var sizeForm = regexp.MustCompile(`^(\d{1,9})\s*(KB|MB|B|)$`)

// MaxBytes is MaxFile in bytes, where a MB is 1,048,576; 0: it is no size.
func (m MediaConfig) MaxBytes() int64 {
	form := sizeForm.FindStringSubmatch(strings.ToUpper(strings.TrimSpace(m.MaxFile)))
	if form == nil {
		return 0
	}
	n, err := strconv.ParseInt(form[1], 10, 64)
	if err != nil {
		return 0
	}
	return n * map[string]int64{"KB": 1 << 10, "MB": 1 << 20, "B": 1, "": 1}[form[2]]
}

func (m MediaConfig) check(k *strict.Source) {
	n := m.MaxBytes()
	k.Want(n >= 1024 && n <= mostFile, "agent.media.max_file", m.MaxFile, `a size from "1KB" to "200MB"`)
	k.Want(m.KeepPictures >= 0, "agent.media.keep_pictures", strict.DurationText(m.KeepPictures), `0 (as long as the message), or a period such as "30d"`)
}
