package sql_test

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
	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
)

// reminder is a schedule of a person that was due a minute ago.
func reminder(origin, text string, by sessions.UserID) sessions.Schedule {
	return sessions.Schedule{
		Kind: sessions.Remind, DueAt: time.Now().Add(-time.Minute).Truncate(time.Second), Spec: "spec", Text: text, Origin: origin,
		Creator: sessions.Message{RobotCode: robot, ConversationID: "cid", ConversationType: sessions.Group, SenderID: by, SenderNick: zhangNick},
	}
}

// due returns the only due schedule.
func due(t *testing.T, s *sql.Store) sessions.Schedule {
	t.Helper()
	list := must[[]sessions.Schedule](t)(s.DueSchedules(t.Context(), sessions.Schedule{}, 10))
	if len(list) != 1 {
		t.Fatalf("due are %+v, want one", list)
	}
	return list[0]
}

func firing(s sessions.Schedule) sessions.Message {
	m := s.Creator
	m.ID, m.Text = sessions.MessageID(fmt.Sprintf("schedule:%d:%d", s.ID, s.DueAt.Unix())), s.Text
	m.Scheduled = &sessions.Scheduled{ID: s.ID, Kind: s.Kind, DueAt: s.DueAt, Origin: s.Origin}
	return m
}

// A schedule is stored once for each origin, under the next number of its session, within the bounds.
func TestScheduleIsAddedOnce(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", zhangID, false)
	first := must[sessions.Schedule](t)(s.AddSchedule(t.Context(), c.lease, reminder("1", "喝水", zhangID)))
	again := must[sessions.Schedule](t)(s.AddSchedule(t.Context(), c.lease, reminder("1", "other words", zhangID)))
	second := must[sessions.Schedule](t)(s.AddSchedule(t.Context(), c.lease, reminder("2", "开会", liID)))
	if first.ID != 1 || again.ID != 1 || again.Text != "喝水" || second.ID != 2 || first.Creator.SenderID != zhangID {
		t.Errorf("schedules are %+v, %+v and %+v", first, again, second)
	}
	if list := must[[]sessions.Schedule](t)(s.ActiveSchedules(t.Context(), c.lease.Key)); len(list) != 2 {
		t.Errorf("the session has %d schedules, want 2", len(list))
	}
	stale := c.lease
	stale.Term--
	if _, err := s.AddSchedule(t.Context(), stale, reminder("3", "x", zhangID)); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Errorf("under an old lease: %v", err)
	}
	execute(t, pool, `INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
		SELECT 'robot/other', i, 'remind', now(), '', '', $1, '{}', 'o' || i FROM generate_series(1, $2) i`, zhangID, sessions.MaxPersonSchedules-1)
	if _, err := s.AddSchedule(t.Context(), c.lease, reminder("4", "x", zhangID)); !errors.Is(err, sessions.ErrPersonSchedules) {
		t.Errorf("beyond the person's bound: %v", err)
	}
	execute(t, pool, `INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
		SELECT $1, 100 + i, 'remind', now(), '', '', 'p' || i, '{}', 'o' || i FROM generate_series(1, $2) i`, c.lease.Key, sessions.MaxSchedules-2)
	if _, err := s.AddSchedule(t.Context(), c.lease, reminder("5", "x", "nobody")); !errors.Is(err, sessions.ErrConversationSchedules) {
		t.Errorf("beyond the session's bound: %v", err)
	}
}

// The times of a month are counted by spec: single ones together, each repetition with its next time, and those of a person among them.
func TestOutstandingSchedules(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", zhangID, false)
	end, daily := time.Now().Add(10*24*time.Hour).Truncate(time.Second).UTC(), "CRON_TZ=UTC 0 9 * * *"
	for i, one := range []struct {
		spec string
		by   sessions.UserID
		due  time.Duration // before the end
	}{
		{"2026-11-27T09:00:00Z", zhangID, 3}, {"2026-11-28T09:00:00Z", liID, 2}, {"2026-11-29T09:00:00Z", liID, 0},
		{daily, zhangID, 4}, {daily, liID, 5}, {"every 30m from 2026-11-23T14:30:00Z UTC", liID, 1}, {"CRON_TZ=UTC 0 9 1 * *", zhangID, -1},
	} {
		add := reminder(fmt.Sprint(i), "x", one.by)
		add.Spec, add.DueAt = one.spec, end.Add(-one.due*time.Hour)
		must[sessions.Schedule](t)(s.AddSchedule(t.Context(), c.lease, add))
	}
	for origin, left := range map[string]time.Duration{"webhook": 0, "webhook that ends": -time.Second} { // the former takes no call
		add := reminder(origin, "x", liID)
		add.Spec, add.DueAt = "2026-11-28T09:00:00Z", end.Add(-time.Hour)
		add.Creator.Webhook, add.Creator.WebhookExpires = "https://w", add.DueAt.Add(sessions.WebhookMargin+time.Second+left)
		must[sessions.Schedule](t)(s.AddSchedule(t.Context(), c.lease, add))
	}
	got := map[string]sessions.OutstandingSchedules{}
	for _, o := range must[[]sessions.OutstandingSchedules](t)(s.OutstandingSchedules(t.Context(), zhangID, end)) {
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
	known := must[sessions.Schedule](t)(s.ScheduleOfOrigin(t.Context(), c.lease.Key, "3"))
	if known.Spec != daily || known.Creator.SenderID != zhangID {
		t.Errorf("the schedule of an origin is %+v", known)
	}
	if _, err := s.ScheduleOfOrigin(t.Context(), c.lease.Key, "30"); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("without one: %v", err)
	}
}

// Two people do not fill a conversation: the last fifth of its places is for people with fewer schedules.
func TestSchedulesAreLeftToOthers(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", zhangID, false)
	set := func(by sessions.UserID) (n int, err error) {
		for {
			if _, err := s.AddSchedule(t.Context(), c.lease, reminder(fmt.Sprint(by, n), "x", by)); err != nil {
				return n, err
			}
			n++
		}
	}
	if n, err := set(zhangID); n != sessions.MaxPersonSchedules || !errors.Is(err, sessions.ErrPersonSchedules) {
		t.Errorf("a person alone sets %d (%v)", n, err)
	}
	if n, err := set(liID); n != sessions.LeftSchedules || !errors.Is(err, sessions.ErrLeftSchedules) {
		t.Errorf("the second person sets %d (%v)", n, err)
	}
	if n, err := set("third"); n != sessions.LeftSchedules || !errors.Is(err, sessions.ErrConversationSchedules) {
		t.Errorf("the third person sets %d (%v)", n, err)
	}
}

// Each time of a schedule stores one message, however many replicas fire it at once.
func TestScheduleFiresOnce(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", zhangID, false)
	must[sessions.Schedule](t)(s.AddSchedule(t.Context(), c.lease, reminder("1", "喝水", zhangID)))
	for _, next := range []time.Time{time.Now().Add(-time.Second).Truncate(time.Microsecond), {}} {
		one := due(t, s)
		var mu sync.Mutex
		var fired, refused int
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				a, err := s.FireSchedule(t.Context(), sessions.ReplicaID(fmt.Sprint("r", i)), one, next, firing(one))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && a.New && a.Lease.Key == c.lease.Key:
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
	texts := collect(t, pool, "SELECT content || state FROM dingtalk_session_events WHERE msg_id LIKE 'schedule:%'", pgx.RowTo[string])
	if !slices.Equal(texts, []string{"喝水pending", "喝水pending"}) {
		t.Errorf("messages are %q", texts)
	}
	ended := must[sessions.Schedule](t)(s.Schedule(t.Context(), c.lease.Key, 1))
	if ended.State != sessions.ScheduleDone || ended.SettledAt.IsZero() {
		t.Errorf("after its last time the schedule is %+v", ended)
	}
}

// A schedule that was cancelled, moved or postponed fires no message for its former time.
func TestScheduleChangesBeforeItFires(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", zhangID, false)
	later := time.Now().Add(time.Hour).Truncate(time.Second)
	for i, change := range []func(sessions.Schedule) error{
		func(d sessions.Schedule) error { _, err := s.CancelSchedule(t.Context(), d.Key, d.ID); return err },
		func(d sessions.Schedule) error {
			_, err := s.MoveSchedule(t.Context(), c.lease, d, "other", later)
			return err
		},
		func(d sessions.Schedule) error { return s.PostponeSchedule(t.Context(), d, later) },
	} {
		must[sessions.Schedule](t)(s.AddSchedule(t.Context(), c.lease, reminder(fmt.Sprint(i), "喝水", zhangID)))
		one := due(t, s)
		if err := change(one); err != nil {
			t.Fatal(err)
		}
		if _, err := s.FireSchedule(t.Context(), "r", one, time.Time{}, firing(one)); !errors.Is(err, sessions.ErrConflict) {
			t.Errorf("change %d: firing the former time: %v", i, err)
		}
	}
	if _, err := s.CancelSchedule(t.Context(), c.lease.Key, 1); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("cancelling twice: %v", err)
	}
	if list := must[[]sessions.Schedule](t)(s.ActiveSchedules(t.Context(), c.lease.Key)); len(list) != 2 || !list[0].DueAt.Equal(later) {
		t.Errorf("left are %+v", list)
	}
}

// After a change of the scope, the reminders of a conversation are listed, counted, found, moved and ended from each of its sessions,
// and from no other conversation.
func TestSchedulesOfAllScopes(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	group := newChat(t, s, "cid", zhangID, false)
	first := must[sessions.Schedule](t)(s.AddSchedule(t.Context(), group.lease, reminder("1", "喝水", zhangID)))
	other := newChat(t, s, "other", zhangID, false)
	must[sessions.Schedule](t)(s.AddSchedule(t.Context(), other.lease, reminder("1", "elsewhere", zhangID)))
	own := must[sessions.Accepted](t)(s.Accept(t.Context(), "a", sessions.NewKey(robot, "cid", zhangID), sessions.Message{
		RobotCode: robot, ConversationID: "cid", ConversationType: sessions.Group, ID: "scoped", SenderID: zhangID, Text: "hello",
	})).Lease
	second := must[sessions.Schedule](t)(s.AddSchedule(t.Context(), own, reminder("2", "开会", zhangID)))
	for _, key := range []sessions.Key{group.lease.Key, own.Key} {
		list := must[[]sessions.Schedule](t)(s.ActiveSchedules(t.Context(), key))
		if len(list) != 2 || !slices.Equal(slices.Sorted(slices.Values([]string{list[0].Text, list[1].Text})), []string{"喝水", "开会"}) {
			t.Errorf("%s lists %+v", key, list)
		}
	}
	found := must[sessions.Schedule](t)(s.Schedule(t.Context(), own.Key, first.ID))
	if found.Key != group.lease.Key || second.ID == first.ID {
		t.Errorf("number %d is of %s, and the second one has %d", first.ID, found.Key, second.ID)
	}
	later := time.Now().Add(time.Hour).Truncate(time.Second)
	if moved := must[sessions.Schedule](t)(s.MoveSchedule(t.Context(), own, found, "other", later)); !moved.DueAt.Equal(later) || moved.Key != found.Key {
		t.Errorf("moved is %+v", moved)
	}
	must[sessions.Schedule](t)(s.CancelSchedule(t.Context(), found.Key, found.ID))
	if list := must[[]sessions.Schedule](t)(s.ActiveSchedules(t.Context(), own.Key)); len(list) != 1 || list[0].ID != second.ID {
		t.Errorf("left are %+v", list)
	}
	execute(t, pool, `INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
		SELECT $1, 100 + i, 'remind', now(), '', '', 'p' || i, '{}', 'o' || i FROM generate_series(1, $2) i`, group.lease.Key, sessions.MaxSchedules-1)
	if _, err := s.AddSchedule(t.Context(), own, reminder("3", "x", zhangID)); !errors.Is(err, sessions.ErrConversationSchedules) {
		t.Errorf("beyond the conversation's bound: %v", err)
	}
	// Sessions of older releases have numbers of their own.
	execute(t, pool, `INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
		VALUES ($1, $2, 'remind', now(), '', 'older', 'p', '{}', 'older')`, group.lease.Key, second.ID)
	if found := must[sessions.Schedule](t)(s.Schedule(t.Context(), own.Key, second.ID)); found.Key != own.Key {
		t.Errorf("the member's number %d is found in %s", second.ID, found.Key)
	}
}

// Due schedules come in pages, and an unreadable creator is the fault of its own one. A refused one ends at its time alone.
func TestDueSchedulesInPages(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	execute(t, pool, `INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
		SELECT 'robot/' || i % 2, i, 'remind', date_trunc('day', now()), '', '', 'u', CASE WHEN i = 3 THEN '{"sender_id": 5}' ELSE '{}' END::jsonb, 'o' || i
		FROM generate_series(1, 7) i`)
	var ids []int64
	var last sessions.Schedule
	for {
		list := must[[]sessions.Schedule](t)(s.DueSchedules(t.Context(), last, 2))
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
	if err := s.RefuseSchedule(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if ended := must[sessions.Schedule](t)(s.Schedule(t.Context(), last.Key, last.ID)); ended.State != sessions.ScheduleRefused || ended.SettledAt.IsZero() {
		t.Errorf("the refused schedule is %+v", ended)
	}
	if err := s.RefuseSchedule(t.Context(), last); !errors.Is(err, sessions.ErrConflict) {
		t.Errorf("refusing twice: %v", err)
	}
}

// Numbers are unique in a conversation, whatever sessions it has, and are not used again after retention.
func TestScheduleNumbers(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	group, private := newChat(t, s, "cid", zhangID, false), newChat(t, s, "dm", zhangID, true)
	var ids []int64
	for i, c := range []*chat{group, group, private} {
		ids = append(ids, must[sessions.Schedule](t)(s.AddSchedule(t.Context(), c.lease, reminder(fmt.Sprint(i), "喝水", zhangID))).ID)
	}
	execute(t, pool, "DELETE FROM schedules")
	ids = append(ids, must[sessions.Schedule](t)(s.AddSchedule(t.Context(), group.lease, reminder("8", "喝水", zhangID))).ID)
	member := sessions.NewKey(robot, "cid", liID)
	execute(t, pool, `INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type) VALUES ($1, $2, 'cid', '2')`, member, robot)
	execute(t, pool, `INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
		VALUES ($1, 40, 'remind', now(), '', '', 'u', '{}', 'o')`, member)
	ids = append(ids, must[sessions.Schedule](t)(s.AddSchedule(t.Context(), group.lease, reminder("9", "喝水", zhangID))).ID)
	if !slices.Equal(ids, []int64{1, 2, 1, 3, 41}) {
		t.Errorf("the numbers are %v", ids)
	}
}

// A deleted session takes its schedules along, and a forgotten person theirs alone.
func TestSchedulesAreErased(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", zhangID, false)
	c.exchange(zhangID, "你好", "好")
	for i, by := range []sessions.UserID{zhangID, liID} {
		must[sessions.Schedule](t)(s.AddSchedule(t.Context(), c.lease, reminder(fmt.Sprint(i), "喝水", by)))
	}
	if p := must[memory.Preview](t)(s.PreviewForget(t.Context(), memory.Forget{Person: zhangID})); p.Schedules != 1 {
		t.Errorf("the preview counts %d schedules, want 1", p.Schedules)
	}
	must[memory.Forgotten](t)(s.ForgetPerson(t.Context(), memory.Forget{Person: zhangID}))
	if list := must[[]sessions.Schedule](t)(s.ActiveSchedules(t.Context(), c.lease.Key)); len(list) != 1 || list[0].Creator.SenderID != liID {
		t.Errorf("after the erasure the session has %+v", list)
	}
	must[sessions.Deleted](t)(s.Delete(t.Context(), c.lease.Key))
	if list := must[[]sessions.Schedule](t)(s.ActiveSchedules(t.Context(), c.lease.Key)); len(list) != 0 {
		t.Errorf("after the deletion the session has %+v", list)
	}
}

// An erased message takes the schedules along that it set, by a command or by a call of the model, with their messages.
func TestErasedMessageTakesItsSchedules(t *testing.T) {
	t.Parallel()
	for name, erase := range map[string]func(*sql.Store, sessions.Accepted, sessions.Accepted) error{
		"by its person": func(s *sql.Store, said, asked sessions.Accepted) error {
			_, err := s.ForgetMessage(t.Context(), said.EventID, memory.Asking{Lease: asked.Lease, Event: asked.EventID})
			return err
		},
		"by an operator": func(s *sql.Store, said, _ sessions.Accepted) error {
			_, err := s.EraseEvents(t.Context(), said.Lease.Key, nil, []int64{said.EventID})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t, sqltest.URL(t))
			c := newChat(t, s, "cid", zhangID, false)
			said := c.speak("m1", zhangID, zhangNick, "明天9点提醒我改口令 "+secret, nil)
			for _, origin := range []string{sessions.OriginOf("m1", ""), sessions.OriginOf("m1", "call_1"), sessions.OriginOf("m10", ""), sessions.OriginOf("m10", "call_1")} {
				text := "喝水"
				if strings.HasPrefix(origin, sessions.OriginOf("m1", "")) && !strings.HasPrefix(origin, sessions.OriginOf("m10", "")) {
					text = "改口令 " + secret
				}
				must[sessions.Schedule](t)(s.AddSchedule(t.Context(), c.lease, reminder(origin, text, zhangID)))
			}
			c.turn(zhangID, zhangNick, "好的", said)
			if err := erase(s, said, c.speak("m2", zhangID, zhangNick, "/forget last", nil)); err != nil {
				t.Fatal(err)
			}
			gone(t, pool, secret)
			if list := must[[]sessions.Schedule](t)(s.ActiveSchedules(t.Context(), c.lease.Key)); len(list) != 2 {
				t.Errorf("left are %+v, want the two of another message", list)
			}
		})
	}
}

// The messages and answers of a schedule go with the message that set it, also after the expiry of the schedule. They have words of the
// model, which the message does not have.
func TestErasedMessageTakesItsReminders(t *testing.T) {
	t.Parallel()
	const expired, older = "schedule expired", "stored by an older release"
	for _, name := range []string{"schedule there", expired, older} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t, sqltest.URL(t))
			c := newChat(t, s, "cid", zhangID, false)
			said := c.speak("m1", zhangID, zhangNick, "每天提醒我那件事", nil)
			must[sessions.Schedule](t)(s.AddSchedule(t.Context(), c.lease, reminder(sessions.OriginOf("m1", "call_1"), "改口令 "+secret, zhangID)))
			c.turn(zhangID, zhangNick, "好的", said)
			other := c.speak("m10", zhangID, zhangNick, "提醒我喝水", nil)
			must[sessions.Schedule](t)(s.AddSchedule(t.Context(), c.lease, reminder(sessions.OriginOf("m10", "call_1"), "喝水", liID)))
			c.turn(zhangID, zhangNick, "好的", other)
			for _, next := range []time.Time{time.Now().Add(-time.Second).Truncate(time.Second), {}} {
				for _, one := range must[[]sessions.Schedule](t)(s.DueSchedules(t.Context(), sessions.Schedule{}, 10)) {
					fired := must[sessions.Accepted](t)(s.FireSchedule(t.Context(), "r", one, next, firing(one)))
					if !next.IsZero() {
						c.turn(zhangID, zhangNick, "⏰ "+one.Text, fired)
					}
				}
			}
			c.exchange(liID, "/提醒 列表", "#1 每天9点 改口令 "+secret)
			switch name {
			case older:
				execute(t, pool, "UPDATE dingtalk_session_events SET message = message #- '{scheduled,origin}' WHERE message ? 'scheduled'")
			case expired:
				execute(t, pool, "UPDATE schedules SET settled_at = now() - interval '1 hour'")
				if n := must[int](t)(s.ExpireSchedules(t.Context(), time.Minute)); n != 2 {
					t.Fatalf("%d schedules expired, want 2", n)
				}
			}
			asked := c.speak("m2", zhangID, zhangNick, "/forget last", nil)
			must[memory.Forgotten](t)(s.ForgetMessage(t.Context(), said.EventID, memory.Asking{Lease: asked.Lease, Event: asked.EventID}))
			gone(t, pool, secret)
			if n := collect(t, pool, "SELECT count(*) FROM dingtalk_session_events WHERE content LIKE '%喝水'", pgx.RowTo[int64]); n[0] != 4 {
				t.Errorf("%d messages have the words of another's reminder, want 4", n[0])
			}
		})
	}
}

// A forgotten person's reminders that fired between the request and its execution go too, answered or not.
func TestForgottenPersonTakesRemindersThatFired(t *testing.T) {
	t.Parallel()
	for name, private := range map[string]bool{"in a group": false, "in private": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t, sqltest.URL(t))
			c := newChat(t, s, "cid", zhangID, private)
			for i := range 2 {
				must[sessions.Schedule](t)(s.AddSchedule(t.Context(), c.lease, reminder(fmt.Sprint(i), "改口令 "+secret, zhangID)))
			}
			asked := c.speak("m1", zhangID, zhangNick, "/forget me confirm", nil)
			for i, one := range must[[]sessions.Schedule](t)(s.DueSchedules(t.Context(), sessions.Schedule{}, 10)) {
				fired := must[sessions.Accepted](t)(s.FireSchedule(t.Context(), "r", one, time.Time{}, firing(one)))
				if i == 0 {
					c.turn(zhangID, zhangNick, "⏰ 改口令 "+secret, fired)
				}
			}
			must[memory.Forgotten](t)(s.ForgetPerson(t.Context(), memory.Forget{
				Robot: robot, Person: zhangID, Self: true, From: memory.Asking{Lease: asked.Lease, Event: asked.EventID},
			}))
			gone(t, pool, secret)
		})
	}
}

// The console's list has active schedules by their next time, then ended ones, in pages, by state, kind and group.
func TestSchedulesInPages(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	execute(t, pool, `INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, title)
		VALUES ('robot/a', 'robot', 'a', '2', '周报群'), ('robot/b', 'robot', 'b', '1', '张三')`)
	execute(t, pool, `INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin, state, settled_at, created_at)
		SELECT CASE WHEN i % 2 = 0 THEN 'robot/a' ELSE 'robot/b' END, i, CASE WHEN i < 4 THEN 'ask' ELSE 'remind' END, now() + interval '1 hour' * i, '', 't' || i, 'u', '{}', 'o' || i,
			CASE WHEN i = 6 THEN 'done' ELSE 'active' END, CASE WHEN i = 6 THEN now() END, now() - interval '1 hour' * (7 - i) FROM generate_series(1, 6) i`)
	list := func(f pages.ScheduleFilter, limit int) (texts []string) {
		t.Helper()
		for cursor := ""; ; {
			rows, next, err := s.Pages().Schedules(t.Context(), f, pages.Page{Limit: limit, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				texts = append(texts, r.Text)
			}
			if cursor = next; next == "" {
				return texts
			}
		}
	}
	for _, c := range []struct {
		name string
		f    pages.ScheduleFilter
		want []string
	}{
		{"all", pages.ScheduleFilter{}, []string{"t1", "t2", "t3", "t4", "t5", "t6"}},
		{"state", pages.ScheduleFilter{State: "done"}, []string{"t6"}},
		{"kind", pages.ScheduleFilter{Kind: "ask"}, []string{"t1", "t2", "t3"}},
		{"group", pages.ScheduleFilter{Words: []string{"周报"}}, []string{"t2", "t4", "t6"}},
		{"title of a private chat", pages.ScheduleFilter{Words: []string{"张三"}}, nil},
		{"only", pages.ScheduleFilter{Only: []sessions.Key{"robot/b"}}, []string{"t1", "t3", "t5"}},
		{"only none", pages.ScheduleFilter{Only: []sessions.Key{}}, nil},
	} {
		for _, limit := range []int{2, 100} {
			if got := list(c.f, limit); !slices.Equal(got, c.want) {
				t.Errorf("%s in pages of %d: %q, want %q", c.name, limit, got, c.want)
			}
		}
	}
}
