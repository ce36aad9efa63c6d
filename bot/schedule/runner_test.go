package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"pgregory.net/rapid"

	"ebb/bot/schedule/when"
	"ebb/bot/wording"
	"ebb/sessions"
)

const grace = 30 * time.Minute

var shanghai = time.FixedZone("Asia/Shanghai", 8*3600)

func specOf(t interface{ Fatal(...any) }, phrase string, now time.Time) when.Spec {
	spec, _, err := when.Parse(phrase, now)
	if err != nil {
		t.Fatal(phrase, err)
	}
	return spec
}

// shelf has one schedule, as the storage keeps it.
type shelf struct {
	sessions.Schedules
	one      sessions.Schedule
	others   []sessions.Schedule // due before one
	now      time.Time
	messages []sessions.Message
	fail     error // result of the next firing
	stuck    map[sessions.Key]error
	broken   int64 // a schedule whose firing panics
	tries    int   // firings in a stuck session
	before   bool  // a failed firing is written nevertheless: its answer is lost
}

func (s *shelf) DueSchedules(_ context.Context, after sessions.Schedule, limit int) ([]sessions.Schedule, error) {
	if rest := s.others[after.ID:]; len(rest) >= limit {
		return rest[:limit], nil
	}
	if s.one.State != sessions.ScheduleActive || s.one.DueAt.After(s.now) {
		return nil, nil
	}
	return append(slices.Clone(s.others[after.ID:]), s.one), nil
}

func (s *shelf) advance(due sessions.Schedule, next time.Time) error {
	if s.one.State != sessions.ScheduleActive || !s.one.DueAt.Equal(due.DueAt) {
		return sessions.ErrConflict
	}
	if next.IsZero() {
		s.one.State = sessions.ScheduleDone
	} else {
		s.one.DueAt = next
	}
	return nil
}

func (s *shelf) FireSchedule(_ context.Context, _ sessions.ReplicaID, due sessions.Schedule, next time.Time, m sessions.Message) (sessions.Accepted, error) {
	if s.broken > 0 && due.ID == s.broken {
		panic("broken")
	}
	if err := s.stuck[due.Key]; err != nil {
		s.tries++
		return sessions.Accepted{}, err
	}
	fail := s.fail
	s.fail = nil
	if fail != nil && !s.before {
		return sessions.Accepted{}, fail
	}
	if err := s.advance(due, next); err != nil {
		return sessions.Accepted{}, err
	}
	s.messages = append(s.messages, m)
	return sessions.Accepted{New: true}, fail
}

func (s *shelf) PostponeSchedule(_ context.Context, due sessions.Schedule, until time.Time) error {
	return s.advance(due, until)
}

func (s *shelf) refuse(_ context.Context, due sessions.Schedule) error {
	s.one.State = sessions.ScheduleRefused
	return nil
}

func (s *shelf) runner(settings Settings) *Runner {
	settings.Enabled = true
	return NewRunner(RunnerConfig{
		Store: s, Leads: func(context.Context) (bool, error) { return true, nil }, Now: func() time.Time { return s.now }, Location: shanghai,
		Grace: grace, Settings: func() Settings { return settings }, Language: wording.Languages{Preset: "zh", Assigned: func(sessions.ConversationID) string { return "" }}.OfText, Serves: func(_ context.Context, m sessions.Message) (bool, error) { return m.SenderID != "refused", nil },
		Refuse: s.refuse, Accepted: func(sessions.Accepted) {}, Metrics: prometheus.NewRegistry(),
	})
}

// Outages, failures and lost answers lead to no second message of a time. Each message is of a time that was due, and several times
// that passed together have one message. An active schedule has a time ahead.
func TestEachTimeFiresOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start := time.Date(2026, 11, 23, 8, 0, 0, 0, shanghai)
		phrase := rapid.SampledFrom([]string{"每10分钟", "每天9点", "每周五9点", "every 2 hours", "明天9点", "3秒后"}).Draw(t, "phrase")
		spec := specOf(t, phrase, start)
		due, _ := spec.Next(start)
		s := &shelf{now: start, one: sessions.Schedule{ID: 1, Kind: sessions.Remind, State: sessions.ScheduleActive, DueAt: due, Spec: spec.String(), Origin: "message m1"}}
		r := s.runner(Settings{})
		for range rapid.IntRange(1, 30).Draw(t, "runs") {
			s.now = s.now.Add(time.Duration(rapid.IntRange(1, 200_000).Draw(t, "seconds")) * time.Second)
			if rapid.Bool().Draw(t, "fails") {
				s.fail, s.before = errors.New("gone"), rapid.Bool().Draw(t, "before")
			}
			had := len(s.messages)
			_ = r.Run(t.Context())
			_ = r.Run(t.Context())
			s.fail = nil
			if len(s.messages) > had+1 {
				t.Fatalf("%d messages at once", len(s.messages)-had)
			}
			if s.one.State == sessions.ScheduleActive && !s.one.DueAt.After(s.now) {
				t.Fatalf("after two runs it is still due at %s", s.one.DueAt)
			}
		}
		var ids []sessions.MessageID
		for _, m := range s.messages {
			at := m.Scheduled.DueAt
			if next, ok := spec.Next(at.Add(-time.Second)); !ok || !next.Equal(at) || at.Before(due) {
				t.Fatalf("a message is of %s, which is none of the times", at)
			}
			if m.Scheduled.Origin != s.one.Origin {
				t.Fatalf("a message has the origin %q, by which it is forgotten", m.Scheduled.Origin)
			}
			ids = append(ids, m.ID)
		}
		if all := slices.Compact(slices.Sorted(slices.Values(ids))); len(all) != len(ids) {
			t.Fatalf("messages are %q", ids)
		}
		if !spec.Repeats() && s.now.After(due) && (len(ids) != 1 || s.one.State != sessions.ScheduleDone) {
			t.Fatalf("a single time has %d messages and the state %s", len(ids), s.one.State)
		}
	})
}

// Times that passed together fire once: the last one within the grace, else the one that was due first.
func TestOccurrence(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 23, 8, 0, 0, 0, shanghai)
	hour := func(h, m int) time.Time { return time.Date(2026, 11, 23, h, m, 0, 0, shanghai) }
	for _, c := range []struct {
		phrase        string
		due, now      time.Time
		wantAt, wantN time.Time
	}{
		{"每10分钟", hour(8, 10), hour(8, 10), hour(8, 10), hour(8, 20)},
		{"每10分钟", hour(8, 10), hour(8, 35), hour(8, 30), hour(8, 40)},
		{"每10分钟", hour(8, 10), hour(15, 3), hour(15, 0), hour(15, 10)},
		{"every 2 hours", hour(10, 0), hour(15, 0), hour(10, 0), hour(16, 0)},
		{"9点", hour(9, 0), hour(15, 0), hour(9, 0), time.Time{}},
	} {
		at, next := Occurrence(specOf(t, c.phrase, start), c.due, c.now, grace, when.Quiet{})
		if !at.Equal(c.wantAt) || !next.Equal(c.wantN) {
			t.Errorf("%s due %s at %s: %s, then %s; want %s, then %s", c.phrase, c.due, c.now, at, next, c.wantAt, c.wantN)
		}
	}
}

// In quiet hours repeated reminders and questions wait for the end; a single reminder does not.
func TestQuietHours(t *testing.T) {
	t.Parallel()
	quiet, err := when.ParseQuiet("22:00-08:00")
	if err != nil {
		t.Fatal(err)
	}
	night := time.Date(2026, 11, 23, 23, 0, 0, 0, shanghai)
	for name, c := range map[string]struct {
		phrase string
		kind   sessions.ScheduleKind
		fires  bool
	}{
		"single reminder":   {"今晚11点", sessions.Remind, true},
		"repeated reminder": {"每天23点", sessions.Remind, false},
		"question":          {"今晚11点", sessions.AskModel, false},
	} {
		spec := specOf(t, c.phrase, night.Add(-time.Hour))
		s := &shelf{now: night, one: sessions.Schedule{Kind: c.kind, State: sessions.ScheduleActive, DueAt: night, Spec: spec.String()}}
		r := s.runner(Settings{Quiet: quiet})
		if err := r.Run(t.Context()); err != nil || (len(s.messages) == 1) != c.fires {
			t.Errorf("%s: %d messages in quiet hours (%v)", name, len(s.messages), err)
		}
		s.now = time.Date(2026, 11, 24, 8, 0, 0, 0, shanghai)
		if err := r.Run(t.Context()); err != nil || len(s.messages) != 1 {
			t.Errorf("%s: %d messages after them (%v), want 1", name, len(s.messages), err)
		}
	}
}

// A time that was due before the quiet hours stays what it is. Within the grace it comes late. Beyond it a repeated one goes on with its
// next time, and people read after the quiet hours that a question was missed. No time comes as if it were due at their end.
func TestTimesBeforeQuietHours(t *testing.T) {
	t.Parallel()
	quiet, err := when.ParseQuiet("22:00-08:00")
	if err != nil {
		t.Fatal(err)
	}
	at := func(day, h, m int) time.Time { return time.Date(2026, 11, day, h, m, 0, 0, shanghai) }
	for name, c := range map[string]struct {
		phrase   string
		kind     sessions.ScheduleKind
		due, now time.Time
		want     []time.Time // due times of messages by the next noon
		late     bool        // the message comes at once
	}{
		"daily, a minute before":    {"每天21点59分", sessions.Remind, at(23, 21, 59), at(23, 22, 0), []time.Time{at(23, 21, 59)}, true},
		"daily, a short outage":     {"每天21点45分", sessions.Remind, at(23, 21, 45), at(23, 22, 10), []time.Time{at(23, 21, 45)}, true},
		"daily question":            {"每天21点50分", sessions.AskModel, at(23, 21, 50), at(23, 22, 10), []time.Time{at(23, 21, 50)}, true},
		"question, a short outage":  {"今晚21点50分", sessions.AskModel, at(23, 21, 50), at(23, 22, 10), []time.Time{at(23, 21, 50)}, true},
		"daily, a long outage":      {"每天21点", sessions.Remind, at(23, 21, 0), at(23, 23, 0), nil, false},
		"question, a long outage":   {"今晚21点", sessions.AskModel, at(23, 21, 0), at(23, 23, 0), []time.Time{at(23, 21, 0)}, false},
		"reminder, a long outage":   {"今晚21点", sessions.Remind, at(23, 21, 0), at(23, 23, 0), []time.Time{at(23, 21, 0)}, true},
		"daily, all night long":     {"每天21点", sessions.Remind, at(23, 21, 0), at(24, 9, 0), nil, false},
		"daily, in the quiet hours": {"每天23点", sessions.Remind, at(23, 23, 0), at(23, 23, 0), []time.Time{at(24, 8, 0)}, false},
	} {
		spec := specOf(t, c.phrase, at(23, 12, 0))
		s := &shelf{now: c.now, one: sessions.Schedule{Kind: c.kind, State: sessions.ScheduleActive, DueAt: c.due, Spec: spec.String()}}
		r := s.runner(Settings{Quiet: quiet})
		if err := r.Run(t.Context()); err != nil || (len(s.messages) == 1) != c.late {
			t.Errorf("%s: %d messages at once (%v)", name, len(s.messages), err)
		}
		for ; !s.now.After(at(24, 12, 0)); s.now = s.now.Add(10 * time.Minute) {
			if err := r.Run(t.Context()); err != nil {
				t.Fatal(name, err)
			}
		}
		var got []time.Time
		for _, m := range s.messages {
			got = append(got, m.Scheduled.DueAt)
		}
		if !slices.EqualFunc(got, c.want, time.Time.Equal) {
			t.Errorf("%s: messages are of %s, want %s", name, got, c.want)
		}
	}
}

// While access rules refuse the creator, repeated times pass by, and a single one waits until it is missed.
func TestTimesThatAccessRefuses(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 9, 0, 0, 0, shanghai)
	for name, c := range map[string]struct {
		phrase  string
		allowed time.Duration // the rules admit the creator again after it
		at      []time.Time
		state   sessions.ScheduleState
	}{
		"repeated":              {"每天9点", time.Hour, []time.Time{now.AddDate(0, 0, 1)}, sessions.ScheduleActive},
		"single":                {"9点", 10 * time.Minute, []time.Time{now}, sessions.ScheduleDone},
		"single, for too long":  {"9点", time.Hour, nil, sessions.ScheduleRefused},
		"repeated, for 2 weeks": {"每天9点", 14 * 24 * time.Hour, []time.Time{now.AddDate(0, 0, 14)}, sessions.ScheduleActive},
	} {
		spec := specOf(t, c.phrase, now.Add(-time.Hour))
		s := &shelf{now: now, one: sessions.Schedule{Kind: sessions.Remind, State: sessions.ScheduleActive, DueAt: now, Spec: spec.String()}}
		r := s.runner(Settings{})
		r.cfg.Serves = func(context.Context, sessions.Message) (bool, error) { return s.now.Sub(now) >= c.allowed, nil }
		for end := now.Add(c.allowed + 23*time.Hour + 30*time.Minute); s.now.Before(end); s.now = s.now.Add(10 * time.Minute) {
			if err := r.Run(t.Context()); err != nil {
				t.Fatal(name, err)
			}
		}
		var at []time.Time
		for _, m := range s.messages {
			at = append(at, m.Scheduled.DueAt)
		}
		if s.one.State != c.state || !slices.EqualFunc(at, c.at, time.Time.Equal) {
			t.Errorf("%s: %s with messages of %s, want %s with %s", name, s.one.State, at, c.state, c.at)
		}
	}
}

// A time in quiet hours is missed only when their end passed longer ago than the grace.
func TestGraceCountsFromTheEndOfQuietHours(t *testing.T) {
	t.Parallel()
	quiet, err := when.ParseQuiet("22:00-08:00")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 23, 0, 0, 0, 0, shanghai)
	hour := func(h, m int) time.Time { return time.Date(2026, 11, 23, h, m, 0, 0, shanghai) }
	for _, c := range []struct {
		phrase           string
		due, now, wantAt time.Time
	}{
		{"每天2点", hour(2, 0), hour(8, 5), hour(8, 0)},
		{"每天2点", hour(2, 0), hour(9, 0), hour(8, 0)},
		{"every 7 hours", hour(-9, 0), hour(8, 5), hour(8, 0)},
		{"every 7 hours", hour(-9, 0), hour(9, 30), hour(-9, 0)},
	} {
		at, _ := Occurrence(specOf(t, c.phrase, start.AddDate(0, 0, -1).Add(8*time.Hour)), c.due, c.now, grace, quiet)
		if !at.Equal(c.wantAt) {
			t.Errorf("%s due %s at %s: %s, want %s", c.phrase, c.due, c.now, at, c.wantAt)
		}
	}
}

// Unreadable schedules and those of sessions that fail hold up no other, on pages of them. A session is tried once a run.
func TestFailuresHoldUpNoOthers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 9, 0, 0, 0, shanghai)
	daily := specOf(t, "每天9点", now.Add(-time.Hour)).String()
	s := &shelf{now: now, stuck: map[sessions.Key]error{"away": errors.New("away")}, one: sessions.Schedule{
		ID: 3 * page, Key: "good", Kind: sessions.Remind, State: sessions.ScheduleActive, DueAt: now, Spec: daily,
	}}
	for i := range 2*page + 10 {
		other := sessions.Schedule{ID: int64(i) + 1, Key: "away", Kind: sessions.Remind, State: sessions.ScheduleActive, DueAt: now, Spec: daily}
		if i%2 == 0 {
			other.Key, other.Fault = "broken", errors.New("unreadable")
		}
		s.others = append(s.others, other)
	}
	err := s.runner(Settings{}).Run(t.Context())
	if err == nil || len(s.messages) != 1 || s.tries != 1 {
		t.Fatalf("%d messages and %d tries in the session that fails, want 1 each (%v)", len(s.messages), s.tries, err)
	}
	if said := err.Error(); !strings.HasSuffix(said, "broken: schedule 1: unreadable") && !strings.HasSuffix(said, "away: schedule 2: away") {
		t.Errorf("the failure is %q, want one that names a session and its schedule", said)
	}
}

// A schedule that panics keeps none of another session waiting, and ends after some runs.
func TestPanicOfOneSchedule(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 9, 0, 0, 0, shanghai)
	daily := specOf(t, "每天9点", now.Add(-time.Hour)).String()
	of := func(id int64, key sessions.Key) sessions.Schedule {
		return sessions.Schedule{ID: id, Key: key, Kind: sessions.Remind, State: sessions.ScheduleActive, DueAt: now, Spec: daily}
	}
	s := &shelf{now: now, broken: 1, others: []sessions.Schedule{of(1, "broken")}, one: of(2, "good")}
	var ended []int64
	r := s.runner(Settings{})
	r.cfg.Refuse = func(_ context.Context, due sessions.Schedule) error {
		ended = append(ended, due.ID)
		return nil
	}
	for run := range maxPanics {
		s.one.DueAt = now
		if err := r.Run(t.Context()); len(s.messages) != run+1 || (err == nil) != (run == maxPanics-1) {
			t.Errorf("run %d: %d messages, %v", run, len(s.messages), err)
		}
	}
	if !slices.Equal(ended, []int64{1}) {
		t.Errorf("ended are %d, want the one that panics", ended)
	}
}

// A schedule ends when its message can't be stored; unreadable times fire once more.
func TestSchedulesThatEnd(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 9, 0, 0, 0, shanghai)
	daily := specOf(t, "每天9点", now.Add(-time.Hour)).String()
	for name, c := range map[string]struct {
		spec     string
		by       sessions.UserID
		fail     error
		state    sessions.ScheduleState
		messages int
	}{
		"served":             {daily, "zhang", nil, sessions.ScheduleActive, 1},
		"refused by access":  {daily, "refused", nil, sessions.ScheduleActive, 0},
		"refused by storage": {daily, "zhang", fmt.Errorf("x: %w", sessions.ErrRefused), sessions.ScheduleRefused, 0},
		"session is gone":    {daily, "zhang", sessions.ErrNotFound, sessions.ScheduleRefused, 0},
		"storage is away":    {daily, "zhang", errors.New("away"), sessions.ScheduleActive, 0},
		"unreadable":         {"?", "zhang", nil, sessions.ScheduleDone, 1},
	} {
		s := &shelf{now: now, fail: c.fail, one: sessions.Schedule{
			Kind: sessions.Remind, State: sessions.ScheduleActive, DueAt: now, Spec: c.spec, Text: "周报", Creator: sessions.Message{SenderID: c.by},
		}}
		r := s.runner(Settings{})
		err := r.Run(t.Context())
		if s.one.State != c.state || len(s.messages) != c.messages || (err != nil) != (name == "storage is away") {
			t.Errorf("%s: %s with %d messages and %v, want %s with %d", name, s.one.State, len(s.messages), err, c.state, c.messages)
		}
		var counted dto.Metric
		if err := r.fired.Write(&counted); err != nil || counted.GetCounter().GetValue() != float64(c.messages) {
			t.Errorf("%s: %v are counted (%v)", name, counted.GetCounter().GetValue(), err)
		}
		for _, m := range s.messages {
			if m.Text != "[定时 2026-11-23 09:00]\n周报" || m.SenderID != "zhang" {
				t.Errorf("%s: the message is %+v", name, m)
			}
		}
	}
}

// After an outage a repeated schedule goes on in silence, and a single one has its message: people read that it was missed.
func TestMissedTimes(t *testing.T) {
	t.Parallel()
	set := time.Date(2026, 11, 23, 8, 0, 0, 0, shanghai)
	for _, c := range []struct {
		phrase   string
		messages int
		next     time.Time
	}{
		{"每天9点", 0, time.Date(2026, 11, 25, 9, 0, 0, 0, shanghai)},
		{"9点", 1, time.Date(2026, 11, 23, 9, 0, 0, 0, shanghai)},
	} {
		spec := specOf(t, c.phrase, set)
		due, _ := spec.Next(set)
		s := &shelf{now: set.Add(30 * time.Hour), one: sessions.Schedule{Kind: sessions.Remind, State: sessions.ScheduleActive, DueAt: due, Spec: spec.String()}}
		r := s.runner(Settings{})
		if err := r.Run(t.Context()); err != nil || len(s.messages) != c.messages || !s.one.DueAt.Equal(c.next) {
			t.Errorf("%s: %d messages, next at %s (%v); want %d and %s", c.phrase, len(s.messages), s.one.DueAt, err, c.messages, c.next)
		}
		var missed dto.Metric
		if err := r.missed.Write(&missed); err != nil || missed.GetCounter().GetValue() != 1 {
			t.Errorf("%s: %v are counted as missed (%v)", c.phrase, missed.GetCounter().GetValue(), err)
		}
	}
}

// The line before a scheduled message is in the language of its text.
func TestLanguageOfTheLead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 9, 0, 0, 0, shanghai)
	for text, want := range map[string]string{"周报": "[定时 2026-11-23 09:00]\n周报", "report": "[scheduled 2026-11-23 09:00]\nreport"} {
		s := &shelf{now: now, one: sessions.Schedule{
			Kind: sessions.AskModel, State: sessions.ScheduleActive, DueAt: now, Spec: specOf(t, "9点", now.Add(-time.Hour)).String(), Text: text,
		}}
		if err := s.runner(Settings{}).Run(t.Context()); err != nil || len(s.messages) != 1 || s.messages[0].Text != want {
			t.Errorf("messages are %+v (%v), want %q", s.messages, err, want)
		}
	}
}
