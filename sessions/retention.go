package sessions

import (
	"context"
	"errors"
	"time"
)

// Retention has the periods after which data is deleted; 0: it is kept.
type Retention struct {
	Events        time.Duration // since they were stored, with their summaries
	Memories      time.Duration // since they were last said
	CompactionLog time.Duration // since the attempt
	Replies       time.Duration // since they were sent, or given up; also of ended schedules, and of decided approvals
	Audit         time.Duration // since the action
	Pictures      time.Duration // since they were sent last
}

// maxSentFiles bounds the age of files that no reply will send: that of a stopped turn, for one.
const maxSentFiles = 7 * 24 * time.Hour

// SentFiles is the period of files since they were made, at most 7 days. An unsent reply keeps its file.
func (r Retention) SentFiles() time.Duration {
	if r.Replies > 0 {
		return min(r.Replies, maxSentFiles)
	}
	return maxSentFiles
}

// ErrUndoExpired says that the data before a compaction were deleted after their retention period.
var ErrUndoExpired = errors.New("the data before the compaction is past its retention period")

// ExpiryReason is the reason of owed flushes of events past the retention period.
const ExpiryReason = "retention"

// Expiry deletes data past its retention period in small batches, each in one transaction. Waiting messages, dead
// letters, unflushed and owed events, and events with an unsent reply always stay.
type Expiry interface {
	// ExpiredSessions lists at most limit sessions after a key with events past the period.
	ExpiredSessions(ctx context.Context, period time.Duration, after Key, limit int) ([]Key, error)
	// ExpireEvents deletes a batch of a session's oldest events: whole turns, or a part of a turn longer than a batch.
	// It returns their number; 0: no more may be deleted now. A flush of unflushed events past the period becomes
	// owed.
	ExpireEvents(ctx context.Context, key Key, period time.Duration) (int, error)
	ExpireMemories(ctx context.Context, period time.Duration) (int, error)
	ExpireCompactions(ctx context.Context, period time.Duration) (int, error)
	ExpireReplies(ctx context.Context, period time.Duration) (int, error)
	// ExpireSentFiles deletes files that replies were to send; those of unsent replies stay.
	ExpireSentFiles(ctx context.Context, period time.Duration) (int, error)
	// ExpireSchedules deletes ended schedules; active ones stay.
	ExpireSchedules(ctx context.Context, period time.Duration) (int, error)
	// ExpireApprovals deletes decided and expired approvals but for the newest of a session; waiting ones stay.
	ExpireApprovals(ctx context.Context, period time.Duration) (int, error)
	ExpirePictures(ctx context.Context, period time.Duration) (int, error)
	ExpireActions(ctx context.Context, period time.Duration) (int, error)
}
