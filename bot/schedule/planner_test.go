package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/bot/access"
	"ebb/bot/schedule/when"
	"ebb/sessions"
)

// added keeps the schedules that are added.
type added struct {
	sessions.Schedules
	list []sessions.Schedule
}

func (a *added) AddSchedule(_ context.Context, _ sessions.Lease, s sessions.Schedule) (sessions.Schedule, error) {
	s.ID = int64(len(a.list)) + 1
	a.list = append(a.list, s)
	return s, nil
}

func (a *added) ScheduleOfOrigin(_ context.Context, _ sessions.Key, origin string) (sessions.Schedule, error) {
	for _, s := range a.list {
		if s.Origin == origin {
			return s, nil
		}
	}
	return sessions.Schedule{}, sessions.ErrNotFound
}

func (a *added) MoveSchedule(_ context.Context, _ sessions.Lease, s sessions.Schedule, spec string, due time.Time) (sessions.Schedule, error) {
	s.Spec, s.DueAt = spec, due
	a.list[s.ID-1] = s
	return s, nil
}

// OutstandingSchedules counts five more single times, which other people set. Those with a webhook in these tests are left out.
func (a *added) OutstandingSchedules(_ context.Context, _ sessions.RobotCode, _ sessions.UserID, until time.Time) ([]sessions.OutstandingSchedules, error) {
	list := []sessions.OutstandingSchedules{{DueAt: until.Add(-time.Hour), All: 5}}
	for _, s := range a.list {
		if s.DueAt.Before(until) && s.Creator.Webhook == "" {
			list = append(list, sessions.OutstandingSchedules{Spec: s.Spec, DueAt: s.DueAt, All: 1, Own: 1})
		}
	}
	return list, nil
}

// budget is a month of calls that ends at a time.
type budget struct {
	end  time.Time
	err  error
	asks []sessions.CallPromise
}

func (b *budget) MonthEnd() time.Time { return b.end }

func (b *budget) Promise(_ context.Context, p sessions.CallPromise) error {
	b.asks = append(b.asks, p)
	return b.err
}

// A schedule is stored only if the month has calls for its times in it, beside those of the other schedules. A single time that the
// webhook of its message outlasts takes none.
func TestScheduleNeedsItsCalls(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 8, 0, 0, 0, shanghai)
	zhang := sessions.Message{ConversationType: sessions.Group, SenderID: "$zhang", StaffID: "zhang", Webhook: "https://x", WebhookExpires: now.Add(2 * time.Hour)}
	for name, c := range map[string]struct {
		phrase string
		asked  int // calls; 0: the budget is not asked
	}{
		"while the webhook is valid": {"1小时后 喝水", 0},
		"at its end":                 {"119分钟后 喝水", 1},
		"later":                      {"3小时后 喝水", 1},
		"each day":                   {"每天9点 喝水", 3},
		"each half hour":             {"每30分钟 喝水", 127},
		"next month":                 {"12月5日9点 喝水", 0},
	} {
		for _, refusal := range []error{nil, sessions.ErrNoCalls, sessions.ErrCallShare} {
			store, calls := &added{}, &budget{end: time.Date(2026, 12, 1, 0, 0, 0, 0, shanghai), err: refusal}
			p := &Planner{Store: store, Calls: calls, Location: shanghai, Settings: func() Settings { return Settings{Enabled: true} }}
			_, err := p.Set(t.Context(), sessions.Lease{}, Request{When: c.phrase, Kind: sessions.Remind, By: by(zhang), Now: now})
			if c.asked == 0 && (err != nil || len(calls.asks) > 0) || c.asked > 0 && (!errors.Is(err, refusal) || len(calls.asks) != 1) {
				t.Errorf("%s: %v after %+v was asked", name, err, calls.asks)
				continue
			}
			if stored := len(store.list) == 1; stored != (err == nil) {
				t.Errorf("%s: stored %v, %v", name, stored, err)
			}
			if err == nil && (store.list[0].Creator.Webhook != "") != (name == "while the webhook is valid") {
				t.Errorf("%s: the schedule has the webhook %q", name, store.list[0].Creator.Webhook)
			}
			if want := (sessions.CallPromise{Person: "zhang", Calls: c.asked, All: 5}); c.asked > 0 && calls.asks[0] != want {
				t.Errorf("%s: asked %+v, want %+v", name, calls.asks[0], want)
			}
		}
	}
}

// A repetition promises each of its times in the month, and a schedule that is moved gives its own back. A repeated attempt is the
// schedule of the first one, whatever calls are left.
func TestTimesOfAMonthArePromised(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, shanghai)
	store, calls := &added{}, &budget{end: time.Date(2026, 12, 1, 0, 0, 0, 0, shanghai)}
	p := &Planner{Store: store, Calls: calls, Location: shanghai, Settings: func() Settings { return Settings{Enabled: true} }}
	zhang := by(sessions.Message{ConversationType: sessions.Group, SenderID: "zhang", StaffID: "zhang"})
	set := func(phrase, origin string) (Planned, error) {
		return p.Set(t.Context(), sessions.Lease{}, Request{When: phrase, Kind: sessions.Remind, By: zhang, Origin: origin, Now: now})
	}
	want := func(asked ...sessions.CallPromise) {
		t.Helper()
		if !slices.Equal(calls.asks, asked) {
			t.Errorf("asked are %+v, want %+v", calls.asks, asked)
		}
		calls.asks = nil
	}
	daily, err := set("每天9点 喝水", "1")
	if err != nil {
		t.Fatal(err)
	}
	want(sessions.CallPromise{Person: "zhang", Calls: 11, All: 5})
	if _, err := set("11月25日9点 喝水", "2"); err != nil {
		t.Fatal(err)
	}
	want(sessions.CallPromise{Person: "zhang", Calls: 1, All: 16, Own: 11})
	moved, err := p.Move(t.Context(), sessions.Lease{}, daily.Schedule, "12月5日9点", now)
	if err != nil {
		t.Fatal(err)
	}
	want()
	if _, err := p.Move(t.Context(), sessions.Lease{}, moved.Schedule, "每周一9点", now); err != nil {
		t.Fatal(err)
	}
	want(sessions.CallPromise{Person: "zhang", Calls: 2, All: 6, Own: 1})
	calls.err = sessions.ErrNoCalls
	again, err := set("11月25日9点 喝水", "2")
	if err != nil || again.ID != 2 || len(store.list) != 2 {
		t.Errorf("a repeated attempt is %+v (%v) of %d schedules", again, err, len(store.list))
	}
	want()
}

// A reminder that its message's webhook outlasts takes no call, also at another such time. One that is moved behind it takes its call, and
// gives none back.
func TestMovedReminderTakesItsCall(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, shanghai)
	store, calls := &added{}, &budget{end: time.Date(2026, 12, 1, 0, 0, 0, 0, shanghai)}
	p := &Planner{Store: store, Calls: calls, Location: shanghai, Settings: func() Settings { return Settings{Enabled: true} }}
	zhang := by(sessions.Message{
		ConversationType: sessions.Group, Organization: "corp", SenderID: "zhang", StaffID: "zhang", Webhook: "https://x", WebhookExpires: now.Add(2 * time.Hour),
	})
	set, err := p.Set(t.Context(), sessions.Lease{}, Request{When: "10分钟后 喝水", Kind: sessions.Remind, By: zhang, Origin: "1", Now: now})
	if err != nil || set.Creator.Organization != "corp" {
		t.Fatalf("set is %+v, %v", set, err)
	}
	moved, err := p.Move(t.Context(), sessions.Lease{}, set.Schedule, "1小时后", now)
	if err != nil || len(calls.asks) > 0 {
		t.Fatalf("moved within the webhook: %+v was asked, %v", calls.asks, err)
	}
	if _, err := p.Move(t.Context(), sessions.Lease{}, moved.Schedule, "3小时后", now); err != nil {
		t.Fatal(err)
	}
	if asked := []sessions.CallPromise{{Person: "zhang", Calls: 1, All: 5}}; !slices.Equal(calls.asks, asked) {
		t.Errorf("moved behind it: %+v was asked, want %+v", calls.asks, asked)
	}
}

func by(m sessions.Message) sessions.Event { return sessions.Event{Message: &m} }

// A schedule keeps all that access rules judge, through the storage of its creator's message.
func TestCreatorIsJudgedAsTheSender(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 8, 0, 0, 0, shanghai)
	everyone := []string{access.Everyone}
	member := sessions.Message{ConversationID: "g", ConversationType: sessions.Group, SenderID: "li", StaffID: "li", EncryptedID: "$:li"}
	namesake := sessions.Message{ConversationID: "g", ConversationType: sessions.Group, SenderID: "li", StaffID: "li", External: true}
	for name, c := range map[string]struct {
		rules access.Rules
		by    sessions.Message
		want  access.Refusal
	}{
		"outsider":              {access.Rules{Groups: everyone, People: everyone}, namesake, access.External},
		"administrator's id":    {access.Rules{Groups: everyone, People: everyone, Admins: []sessions.UserID{"li"}}, namesake, access.External},
		"denied encrypted id":   {access.Rules{Groups: everyone, People: everyone, Deny: []string{"$:li"}}, member, access.Person},
		"admitted encrypted id": {access.Rules{Groups: everyone, People: []string{"$:li"}}, member, ""},
	} {
		stored, err := json.Marshal(c.by)
		if err != nil {
			t.Fatal(err)
		}
		var asked, creator sessions.Message
		if err := json.Unmarshal(stored, &asked); err != nil {
			t.Fatal(err)
		}
		store := &added{}
		p := &Planner{Calls: Uncounted{}, Store: store, Location: shanghai, Settings: func() Settings { return Settings{Enabled: true} }}
		if _, err := p.Set(t.Context(), sessions.Lease{}, Request{When: "3秒后 喝水", Kind: sessions.Remind, By: by(asked), Now: now}); err != nil {
			t.Fatal(name, err)
		}
		if stored, err = json.Marshal(store.list[0].Creator); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(stored, &creator); err != nil {
			t.Fatal(err)
		}
		if asks, fires := c.rules.Check(c.by), c.rules.Check(creator); asks != c.want || fires != c.want {
			t.Errorf("%s: the message is refused as %q and the schedule as %q, want %q", name, asks, fires, c.want)
		}
	}
}

// A schedule has the time and the text of its request, and its creator without rights and webhook. Requests that can't work are
// refused.
func TestSet(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 8, 0, 0, 0, shanghai)
	zhang := by(sessions.Message{ConversationType: sessions.Group, SenderID: "zhang", StaffID: "zhang", SenderNick: "张三", Admin: true, Webhook: "https://x"})
	for name, c := range map[string]struct {
		when, text string
		by         sessions.Event
		due        time.Time
		want       string
		err        error
	}{
		"command":           {"3秒后 喝水", "", zhang, now.Add(3 * time.Second), "喝水", nil},
		"tool":              {"明天下午3点", "交周报", zhang, time.Date(2026, 11, 24, 15, 0, 0, 0, shanghai), "交周报", nil},
		"words behind it":   {"every day at 9 please", "drink", zhang, now, "", when.ErrUnknown},
		"english":           {"in 3 seconds drink", "", zhang, now.Add(3 * time.Second), "drink", nil},
		"open english":      {"Remind me in 3 seconds to", "drink", zhang, now.Add(3 * time.Second), "drink", nil},
		"no text":           {"3秒后", "", zhang, now, "", ErrNoText},
		"long text":         {"3秒后", strings.Repeat("长", MaxText+1), zhang, now, "", ErrLongText},
		"no time":           {"随便", "x", zhang, now, "", when.ErrUnknown},
		"often":             {"每分钟 喝水", "", zhang, now, "", ErrOften},
		"often, in minutes": {"每29分钟 喝水", "", zhang, now, "", ErrOften},
		"half an hour":      {"每30分钟 喝水", "", zhang, now.Add(30 * time.Minute), "喝水", nil},
		"scheduled":         {"3秒后 喝水", "", by(sessions.Message{Scheduled: &sessions.Scheduled{}}), now, "", ErrNested},
		"outsider":          {"3秒后 喝水", "", by(sessions.Message{ConversationType: sessions.Private, SenderID: "li", StaffID: "li", External: true}), now, "", ErrUnreachable},
		"nameless outsider": {"3秒后 喝水", "", by(sessions.Message{ConversationType: sessions.Private, SenderID: "$enc"}), now, "", ErrUnreachable},
	} {
		store := &added{}
		p := &Planner{Calls: Uncounted{}, Store: store, Location: shanghai, Settings: func() Settings { return Settings{Enabled: true} }}
		got, err := p.Set(t.Context(), sessions.Lease{}, Request{When: c.when, Text: c.text, Kind: sessions.Remind, By: c.by, Now: now.UTC()})
		if !errors.Is(err, c.err) || (c.err != nil) != (len(store.list) == 0) {
			t.Errorf("%s: %v with %d stored, want %v", name, err, len(store.list), c.err)
		}
		if c.err != nil {
			continue
		}
		if !got.DueAt.Equal(c.due) || got.Text != c.want || got.Creator.Admin || got.Creator.Webhook != "" || got.Creator.SenderNick != "张三" {
			t.Errorf("%s: %+v, want %q at %s", name, got, c.want, c.due)
		}
	}
	off := &Planner{Calls: Uncounted{}, Location: shanghai, Settings: func() Settings { return Settings{} }}
	if _, err := off.Set(t.Context(), sessions.Lease{}, Request{When: "3秒后 喝水", By: zhang, Now: now}); !errors.Is(err, ErrOff) {
		t.Errorf("switched off: %v", err)
	}
}

// People read the next three times of a repeated schedule in the zone of the bot.
func TestComingTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 8, 0, 0, 0, shanghai)
	p := &Planner{Calls: Uncounted{}, Store: &added{}, Location: shanghai, Settings: func() Settings { return Settings{Enabled: true} }}
	got, err := p.Set(t.Context(), sessions.Lease{}, Request{When: "每周五9点提醒我们交周报", By: by(sessions.Message{ConversationType: sessions.Group}), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if got.Coming("|") != "2026-11-27 09:00|2026-12-04 09:00|2026-12-11 09:00" || got.Text != "交周报" {
		t.Errorf("%q at %s", got.Text, got.Coming("|"))
	}
}

// Questions have a longer least period than reminders, also when they are moved.
func TestLeastPeriodOfQuestions(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 8, 0, 0, 0, shanghai)
	store := &added{}
	p := &Planner{Calls: Uncounted{}, Store: store, Location: shanghai, Settings: func() Settings { return Settings{Enabled: true} }}
	ask := Request{When: "每30分钟 昨天的进展", Kind: sessions.AskModel, By: by(sessions.Message{ConversationType: sessions.Group}), Now: now}
	if _, err := p.Set(t.Context(), sessions.Lease{}, ask); !errors.Is(err, ErrOftenAsked) || len(store.list) != 0 {
		t.Errorf("half an hour: %v with %d stored", err, len(store.list))
	}
	ask.When = "每小时 昨天的进展"
	set, err := p.Set(t.Context(), sessions.Lease{}, ask)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Move(t.Context(), sessions.Lease{}, set.Schedule, "每30分钟", now); !errors.Is(err, ErrOftenAsked) {
		t.Errorf("moved to half an hour: %v", err)
	}
}
