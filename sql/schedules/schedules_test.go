package schedules_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// due returns the only due schedule.
func due(t *testing.T, s *sql.Store) sessions.Schedule {
	t.Helper()
	list := storetest.Must[[]sessions.Schedule](t)(s.Schedules.DueSchedules(t.Context(), sessions.Schedule{}, 10))
	if len(list) != 1 {
		t.Fatalf("due are %+v, want one", list)
	}
	return list[0]
}

// A schedule is stored once for each origin, under the next number of its session, within the bounds.
func TestScheduleIsAddedOnce(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.ZhangID, false)
	first := storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), c.Lease, storetest.Reminder("1", "喝水", storetest.ZhangID)))
	again := storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), c.Lease, storetest.Reminder("1", "other words", storetest.ZhangID)))
	second := storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), c.Lease, storetest.Reminder("2", "开会", storetest.LiID)))
	if first.ID != 1 || again.ID != 1 || again.Text != "喝水" || second.ID != 2 || first.Creator.SenderID != storetest.ZhangID {
		t.Errorf("schedules are %+v, %+v and %+v", first, again, second)
	}
	if list := storetest.Must[[]sessions.Schedule](t)(s.Schedules.ActiveSchedules(t.Context(), c.Lease.Key)); len(list) != 2 {
		t.Errorf("the session has %d schedules, want 2", len(list))
	}
	stale := c.Lease
	stale.Term--
	if _, err := s.Schedules.AddSchedule(t.Context(), stale, storetest.Reminder("3", "x", storetest.ZhangID)); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Errorf("under an old lease: %v", err)
	}
	storetest.Execute(t, pool, `INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
		SELECT 'robot/other', i, 'remind', now(), '', '', $1, '{}', 'o' || i FROM generate_series(1, $2) i`, storetest.ZhangID, sessions.MaxPersonSchedules-1)
	if _, err := s.Schedules.AddSchedule(t.Context(), c.Lease, storetest.Reminder("4", "x", storetest.ZhangID)); !errors.Is(err, sessions.ErrPersonSchedules) {
		t.Errorf("beyond the person's bound: %v", err)
	}
	storetest.Execute(t, pool, `INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
		SELECT $1, 100 + i, 'remind', now(), '', '', 'p' || i, '{}', 'o' || i FROM generate_series(1, $2) i`, c.Lease.Key, sessions.MaxSchedules-2)
	if _, err := s.Schedules.AddSchedule(t.Context(), c.Lease, storetest.Reminder("5", "x", "nobody")); !errors.Is(err, sessions.ErrConversationSchedules) {
		t.Errorf("beyond the session's bound: %v", err)
	}
}

// The times of a month are counted by robot and spec: single ones together, each repetition with its next time, and those of a person among them.
func TestOutstandingSchedules(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.ZhangID, false)
	end, daily := time.Now().Add(10*24*time.Hour).Truncate(time.Second).UTC(), "CRON_TZ=UTC 0 9 * * *"
	for i, one := range []struct {
		spec string
		by   sessions.UserID
		due  time.Duration // before the end
	}{
		{"2026-11-27T09:00:00Z", storetest.ZhangID, 3}, {"2026-11-28T09:00:00Z", storetest.LiID, 2}, {"2026-11-29T09:00:00Z", storetest.LiID, 0},
		{daily, storetest.ZhangID, 4}, {daily, storetest.LiID, 5}, {"every 30m from 2026-11-23T14:30:00Z UTC", storetest.LiID, 1}, {"CRON_TZ=UTC 0 9 1 * *", storetest.ZhangID, -1},
	} {
		add := storetest.Reminder(fmt.Sprint(i), "x", one.by)
		add.Spec, add.DueAt = one.spec, end.Add(-one.due*time.Hour)
		storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), c.Lease, add))
	}
	for origin, left := range map[string]time.Duration{"webhook": 0, "webhook that ends": -time.Second} { // the former takes no call
		add := storetest.Reminder(origin, "x", storetest.LiID)
		add.Spec, add.DueAt = "2026-11-28T09:00:00Z", end.Add(-time.Hour)
		add.Creator.Webhook, add.Creator.WebhookExpires = "https://w", add.DueAt.Add(sessions.WebhookMargin+time.Second+left)
		storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), c.Lease, add))
	}
	got := map[string]sessions.OutstandingSchedules{}
	for _, o := range storetest.Must[[]sessions.OutstandingSchedules](t)(s.Schedules.OutstandingSchedules(t.Context(), storetest.Robot, storetest.ZhangID, end)) {
		o.DueAt = o.DueAt.UTC()
		got[o.Spec] = o
	}
	want := map[string]sessions.OutstandingSchedules{
		"":    {DueAt: end.Add(-3 * time.Hour), All: 3, Own: 1},
		daily: {Spec: daily, DueAt: end.Add(-5 * time.Hour), All: 2, Own: 1},
		"every 30m from 2026-11-23T14:30:00Z UTC": {Spec: "every 30m from 2026-11-23T14:30:00Z UTC", DueAt: end.Add(-time.Hour), All: 1},
	}
	if !maps.Equal(got, want) {
		t.Errorf("outstanding are %+v, want %+v", got, want)
	}
	for _, other := range []sessions.RobotCode{"robot2", "robo"} { // each robot has calls of its own
		if theirs := storetest.Must[[]sessions.OutstandingSchedules](t)(s.Schedules.OutstandingSchedules(t.Context(), other, storetest.ZhangID, end)); len(theirs) > 0 {
			t.Errorf("robot %s shares its calls with %+v", other, theirs)
		}
	}
	known := storetest.Must[sessions.Schedule](t)(s.Schedules.ScheduleOfOrigin(t.Context(), c.Lease.Key, "3"))
	if known.Spec != daily || known.Creator.SenderID != storetest.ZhangID {
		t.Errorf("the schedule of an origin is %+v", known)
	}
	if _, err := s.Schedules.ScheduleOfOrigin(t.Context(), c.Lease.Key, "30"); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("without one: %v", err)
	}
}

// Two people do not fill a conversation: the last fifth of its places is for people with fewer schedules.
func TestSchedulesAreLeftToOthers(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.ZhangID, false)
	set := func(by sessions.UserID) (n int, err error) {
		for {
			if _, err := s.Schedules.AddSchedule(t.Context(), c.Lease, storetest.Reminder(fmt.Sprint(by, n), "x", by)); err != nil {
				return n, err
			}
			n++
		}
	}
	if n, err := set(storetest.ZhangID); n != sessions.MaxPersonSchedules || !errors.Is(err, sessions.ErrPersonSchedules) {
		t.Errorf("a person alone sets %d (%v)", n, err)
	}
	if n, err := set(storetest.LiID); n != sessions.LeftSchedules || !errors.Is(err, sessions.ErrLeftSchedules) {
		t.Errorf("the second person sets %d (%v)", n, err)
	}
	if n, err := set("third"); n != sessions.LeftSchedules || !errors.Is(err, sessions.ErrConversationSchedules) {
		t.Errorf("the third person sets %d (%v)", n, err)
	}
}

// Each time of a schedule stores one message, however many replicas fire it at once.
func TestScheduleFiresOnce(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.ZhangID, false)
	storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), c.Lease, storetest.Reminder("1", "喝水", storetest.ZhangID)))
	for _, next := range []time.Time{time.Now().Add(-time.Second).Truncate(time.Microsecond), {}} {
		one := due(t, s)
		var mu sync.Mutex
		var fired, refused int
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				a, err := s.Schedules.FireSchedule(t.Context(), sessions.ReplicaID(fmt.Sprint("r", i)), one, next, storetest.Firing(one))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && a.New && a.Lease.Key == c.Lease.Key:
					fired++
				case errors.Is(err, sessions.ErrConflict):
					refused++
				default:
					t.Errorf("firing: %+v, %v", a, err)
				}
			})
		}
		wg.Wait()
		if fired != 1 || refused != 7 {
			t.Errorf("%d fired and %d were refused, want 1 and 7", fired, refused)
		}
	}
	texts := storetest.Collect(t, pool, "SELECT content || state FROM dingtalk_session_events WHERE msg_id LIKE 'schedule:%'", pgx.RowTo[string])
	if !slices.Equal(texts, []string{"喝水pending", "喝水pending"}) {
		t.Errorf("messages are %q", texts)
	}
	ended := storetest.Must[sessions.Schedule](t)(s.Schedules.Schedule(t.Context(), c.Lease.Key, 1))
	if ended.State != sessions.ScheduleDone || ended.SettledAt.IsZero() {
		t.Errorf("after its last time the schedule is %+v", ended)
	}
}

// A schedule that was cancelled, moved or postponed fires no message for its former time.
func TestScheduleChangesBeforeItFires(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.ZhangID, false)
	later := time.Now().Add(time.Hour).Truncate(time.Second)
	for i, change := range []func(sessions.Schedule) error{
		func(d sessions.Schedule) error {
			_, err := s.Schedules.CancelSchedule(t.Context(), d.Key, d.ID)
			return err
		},
		func(d sessions.Schedule) error {
			_, err := s.Schedules.MoveSchedule(t.Context(), c.Lease, d, "other", later)
			return err
		},
		func(d sessions.Schedule) error { return s.Schedules.PostponeSchedule(t.Context(), d, later) },
	} {
		storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), c.Lease, storetest.Reminder(fmt.Sprint(i), "喝水", storetest.ZhangID)))
		one := due(t, s)
		if err := change(one); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Schedules.FireSchedule(t.Context(), "r", one, time.Time{}, storetest.Firing(one)); !errors.Is(err, sessions.ErrConflict) {
			t.Errorf("change %d: firing the former time: %v", i, err)
		}
	}
	if _, err := s.Schedules.CancelSchedule(t.Context(), c.Lease.Key, 1); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("cancelling twice: %v", err)
	}
	if list := storetest.Must[[]sessions.Schedule](t)(s.Schedules.ActiveSchedules(t.Context(), c.Lease.Key)); len(list) != 2 || !list[0].DueAt.Equal(later) {
		t.Errorf("left are %+v", list)
	}
}

// After a change of the scope, the reminders of a conversation are listed, counted, found, moved and ended from each of its sessions,
// and from no other conversation.
func TestSchedulesOfAllScopes(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	group := storetest.NewChat(t, s, "cid", storetest.ZhangID, false)
	first := storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), group.Lease, storetest.Reminder("1", "喝水", storetest.ZhangID)))
	other := storetest.NewChat(t, s, "other", storetest.ZhangID, false)
	storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), other.Lease, storetest.Reminder("1", "elsewhere", storetest.ZhangID)))
	own := storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), "a", sessions.NewKey(storetest.Robot, "cid", storetest.ZhangID), sessions.Message{
		RobotCode: storetest.Robot, ConversationID: "cid", ConversationType: sessions.Group, ID: "scoped", SenderID: storetest.ZhangID, Text: "hello",
	})).Lease
	second := storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), own, storetest.Reminder("2", "开会", storetest.ZhangID)))
	for _, key := range []sessions.Key{group.Lease.Key, own.Key} {
		list := storetest.Must[[]sessions.Schedule](t)(s.Schedules.ActiveSchedules(t.Context(), key))
		if len(list) != 2 || !slices.Equal(slices.Sorted(slices.Values([]string{list[0].Text, list[1].Text})), []string{"喝水", "开会"}) {
			t.Errorf("%s lists %+v", key, list)
		}
	}
	found := storetest.Must[sessions.Schedule](t)(s.Schedules.Schedule(t.Context(), own.Key, first.ID))
	if found.Key != group.Lease.Key || second.ID == first.ID {
		t.Errorf("number %d is of %s, and the second one has %d", first.ID, found.Key, second.ID)
	}
	later := time.Now().Add(time.Hour).Truncate(time.Second)
	if moved := storetest.Must[sessions.Schedule](t)(s.Schedules.MoveSchedule(t.Context(), own, found, "other", later)); !moved.DueAt.Equal(later) || moved.Key != found.Key {
		t.Errorf("moved is %+v", moved)
	}
	storetest.Must[sessions.Schedule](t)(s.Schedules.CancelSchedule(t.Context(), found.Key, found.ID))
	if list := storetest.Must[[]sessions.Schedule](t)(s.Schedules.ActiveSchedules(t.Context(), own.Key)); len(list) != 1 || list[0].ID != second.ID {
		t.Errorf("left are %+v", list)
	}
	storetest.Execute(t, pool, `INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
		SELECT $1, 100 + i, 'remind', now(), '', '', 'p' || i, '{}', 'o' || i FROM generate_series(1, $2) i`, group.Lease.Key, sessions.MaxSchedules-1)
	if _, err := s.Schedules.AddSchedule(t.Context(), own, storetest.Reminder("3", "x", storetest.ZhangID)); !errors.Is(err, sessions.ErrConversationSchedules) {
		t.Errorf("beyond the conversation's bound: %v", err)
	}
	// Sessions of older releases have numbers of their own.
	storetest.Execute(t, pool, `INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
		VALUES ($1, $2, 'remind', now(), '', 'older', 'p', '{}', 'older')`, group.Lease.Key, second.ID)
	if found := storetest.Must[sessions.Schedule](t)(s.Schedules.Schedule(t.Context(), own.Key, second.ID)); found.Key != own.Key {
		t.Errorf("the member's number %d is found in %s", second.ID, found.Key)
	}
}

// Due schedules come in pages, and an unreadable creator is the fault of its own one. A refused one ends at its time alone.
func TestDueSchedulesInPages(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	storetest.Execute(t, pool, `INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
		SELECT 'robot/' || i % 2, i, 'remind', date_trunc('day', now()), '', '', 'u', CASE WHEN i = 3 THEN '{"sender_id": 5}' ELSE '{}' END::jsonb, 'o' || i
		FROM generate_series(1, 7) i`)
	var ids []int64
	var last sessions.Schedule
	for {
		list := storetest.Must[[]sessions.Schedule](t)(s.Schedules.DueSchedules(t.Context(), last, 2))
		for _, last = range list {
			ids = append(ids, last.ID)
			if (last.Fault != nil) != (last.ID == 3) || last.Fault != nil && strings.Contains(last.Fault.Error(), "schedule 3") {
				t.Errorf("the fault of schedule %d is %v", last.ID, last.Fault)
			}
		}
		if len(list) < 2 {
			break
		}
	}
	if !slices.Equal(ids, []int64{2, 4, 6, 1, 3, 5, 7}) {
		t.Errorf("due are %v", ids)
	}
	if err := s.Schedules.RefuseSchedule(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if ended := storetest.Must[sessions.Schedule](t)(s.Schedules.Schedule(t.Context(), last.Key, last.ID)); ended.State != sessions.ScheduleRefused || ended.SettledAt.IsZero() {
		t.Errorf("the refused schedule is %+v", ended)
	}
	if err := s.Schedules.RefuseSchedule(t.Context(), last); !errors.Is(err, sessions.ErrConflict) {
		t.Errorf("refusing twice: %v", err)
	}
}

// Numbers are unique in a conversation, whatever sessions it has, and are not used again after retention.
func TestScheduleNumbers(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	group, private := storetest.NewChat(t, s, "cid", storetest.ZhangID, false), storetest.NewChat(t, s, "dm", storetest.ZhangID, true)
	var ids []int64
	for i, c := range []*storetest.Chat{group, group, private} {
		ids = append(ids, storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), c.Lease, storetest.Reminder(fmt.Sprint(i), "喝水", storetest.ZhangID))).ID)
	}
	storetest.Execute(t, pool, "DELETE FROM schedules")
	ids = append(ids, storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), group.Lease, storetest.Reminder("8", "喝水", storetest.ZhangID))).ID)
	member := sessions.NewKey(storetest.Robot, "cid", storetest.LiID)
	storetest.Execute(t, pool, `INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type) VALUES ($1, $2, 'cid', '2')`, member, storetest.Robot)
	storetest.Execute(t, pool, `INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
		VALUES ($1, 40, 'remind', now(), '', '', 'u', '{}', 'o')`, member)
	ids = append(ids, storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), group.Lease, storetest.Reminder("9", "喝水", storetest.ZhangID))).ID)
	if !slices.Equal(ids, []int64{1, 2, 1, 3, 41}) {
		t.Errorf("the numbers are %v", ids)
	}
}

// A deleted session takes its schedules along, and a forgotten person theirs alone.
func TestSchedulesAreErased(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.ZhangID, false)
	c.Exchange(storetest.ZhangID, "你好", "好")
	for i, by := range []sessions.UserID{storetest.ZhangID, storetest.LiID} {
		storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), c.Lease, storetest.Reminder(fmt.Sprint(i), "喝水", by)))
	}
	if p := storetest.Must[memory.Preview](t)(s.Erasure.PreviewForget(t.Context(), memory.Forget{Person: storetest.ZhangID})); p.Schedules != 1 {
		t.Errorf("the preview counts %d schedules, want 1", p.Schedules)
	}
	storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), memory.Forget{Person: storetest.ZhangID}))
	if list := storetest.Must[[]sessions.Schedule](t)(s.Schedules.ActiveSchedules(t.Context(), c.Lease.Key)); len(list) != 1 || list[0].Creator.SenderID != storetest.LiID {
		t.Errorf("after the erasure the session has %+v", list)
	}
	storetest.Must[sessions.Deleted](t)(s.Erasure.Delete(t.Context(), c.Lease.Key))
	if list := storetest.Must[[]sessions.Schedule](t)(s.Schedules.ActiveSchedules(t.Context(), c.Lease.Key)); len(list) != 0 {
		t.Errorf("after the deletion the session has %+v", list)
	}
}
