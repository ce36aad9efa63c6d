package memory

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ebb/memory/classify"
	"ebb/sessions"
	"ebb/sessions/redact"
)

// KindDigest is a group's day. No model saves it and no view pins it; searches find it, and readers open it under the
// path of its day.
const KindDigest Kind = "digest"

// The rules of digests.
const (
	DigestDays     = 7                // a missed day is made up for within this number of days
	DigestLeast    = 5                // messages of people, below which a day gets no digest
	DigestAttempts = 3                // after which a day is left without a digest
	DigestRest     = 10 * time.Minute // between two attempts
)

// Digests keeps one digest for each group and day. Transactions and leases are as in [Stores].
type Digests interface {
	// DigestsDue lists days with talk and without a digest behind after, by day, then by session key. Leases are free,
	// stale or owner's. A day is left out while a message of it or of an earlier day waits. Days with fewer than
	// [DigestLeast] messages are settled on the way.
	DigestsDue(ctx context.Context, owner sessions.ReplicaID, days []Day, after DigestDue) ([]DigestDue, error)

	// DigestEvents returns the words of people and the bot on a day in order, behind the event after. Tool results and
	// erased events are left out.
	DigestEvents(ctx context.Context, d DigestDue, after int64, limit int) ([]sessions.Event, error)

	// StoreDigest stores a digest and settles its day; without content it only settles. A settled day is
	// [sessions.ErrConflict].
	StoreDigest(ctx context.Context, l sessions.Lease, d Digest) (int64, error)

	// PutOffDigest stores the reason of a failure. The day is due again after [DigestRest].
	PutOffDigest(ctx context.Context, l sessions.Lease, f DigestFailure) error

	// DigestsOf lists the digests in [from, to) that a reader may see.
	DigestsOf(ctx context.Context, r Reader, from, to time.Time) ([]Memory, error)
}

// Day is a day of the calendar with its begin and end in the group's zone.
type Day struct {
	Date     string
	From, To time.Time
}

// DigestDue is a day of a group that needs a digest.
type DigestDue struct {
	Key sessions.Key
	Day
	FirstSeq, LastSeq int64 // events of the day lie within; others may too
	Attempts          int   // failed ones
}

// Digest is the digest of a day.
type Digest struct {
	Date             string
	Scope            Scope
	ScopeID          string
	SourceGroup      string
	Content          string // empty: the day had nothing worth a digest
	StartSeq, EndSeq int64  // the events that it covers
	At               time.Time
	Usage            sessions.Usage
	Cost             float64
	Model            string // used the tokens
}

// DigestFailure is a failed attempt.
type DigestFailure struct {
	Date   string
	Reason string
	Counts bool // it is one of the day's [DigestAttempts]
	Usage  sessions.Usage
	Cost   float64
	Model  string // used the tokens
}

// ClockOf parses a time of day such as 04:00.
func ClockOf(s string) (hour, minute int, err error) {
	t, err := time.Parse("15:04", s)
	if err != nil {
		return 0, 0, fmt.Errorf("time of day %q, want one such as 04:00: %w", s, err)
	}
	return t.Hour(), t.Minute(), nil
}

// DaysEnded lists those of the last [DigestDays] days that are due, from a time of the next day on, oldest first. Days
// begin at midnight in loc and may have 23 or 25 hours.
func DaysEnded(now time.Time, hour, minute int, loc *time.Location) []Day {
	year, month, day := now.In(loc).Date()
	var out []Day
	for ago := DigestDays; ago > 0; ago-- {
		next := day - ago + 1
		d := Day{From: firstInstant(year, month, next-1, loc), To: firstInstant(year, month, next, loc)}
		d.Date = time.Date(year, month, next-1, 12, 0, 0, 0, time.UTC).Format(time.DateOnly)
		if !now.Before(time.Date(year, month, next, hour, minute, 0, 0, loc)) {
			out = append(out, d)
		}
	}
	return out
}

// Clocks may skip midnight.
func firstInstant(year int, month time.Month, day int, loc *time.Location) time.Time {
	t := time.Date(year, month, day, 0, 0, 0, 0, loc)
	if want := time.Date(year, month, day, 0, 0, 0, 0, time.UTC); t.Day() != want.Day() {
		t = t.Add(time.Hour) // the day before, at 23:00: an hour later there is no 00:00, but a new day
	}
	return t
}

// DigestScope is a session's group, or the session where members have sessions of their own.
func DigestScope(s sessions.Session) (scope Scope, id string) {
	if group := GroupID(s.RobotCode, s.ConversationID); group == string(s.Key) {
		return ScopeGroup, group
	}
	return ScopeSession, string(s.Key)
}

// DigestTitle is the first line, in zh or en, with the date for searches.
func DigestTitle(d Day, language string) string {
	noon := d.From.Add(d.To.Sub(d.From) / 2)
	if language == "en" {
		return fmt.Sprintf("# Daily digest of %s (%s)", d.Date, noon.Weekday())
	}
	return fmt.Sprintf("# %s 群聊日报（星期%s）", d.Date, []string{"日", "一", "二", "三", "四", "五", "六"}[noon.Weekday()])
}

// DigestBody removes credentials and lines about health, pay and the like. It may become empty.
func DigestBody(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !classify.Sensitive(line) {
			kept.WriteString(line)
		}
	}
	return strings.TrimSpace(redact.Secrets(kept.String()))
}
