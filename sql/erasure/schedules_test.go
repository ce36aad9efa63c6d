package erasure_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// An erased message takes the schedules along that it set, by a command or by a call of the model, with their messages.
func TestErasedMessageTakesItsSchedules(t *testing.T) {
	t.Parallel()
	for name, erase := range map[string]func(*sql.Store, sessions.Accepted, sessions.Accepted) error{
		"by its person": func(s *sql.Store, said, asked sessions.Accepted) error {
			_, err := s.Erasure.ForgetMessage(t.Context(), said.EventID, memory.Asking{Lease: asked.Lease, Event: asked.EventID})
			return err
		},
		"by an operator": func(s *sql.Store, said, _ sessions.Accepted) error {
			_, err := s.Erasure.EraseEvents(t.Context(), said.Lease.Key, nil, []int64{said.EventID})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := storetest.Open(t, sqltest.URL(t))
			c := storetest.NewChat(t, s, "cid", storetest.ZhangID, false)
			said := c.Speak("m1", storetest.ZhangID, storetest.ZhangNick, "明天9点提醒我改口令 "+storetest.Secret, nil)
			for _, origin := range []string{sessions.OriginOf("m1", ""), sessions.OriginOf("m1", "call_1"), sessions.OriginOf("m10", ""), sessions.OriginOf("m10", "call_1")} {
				text := "喝水"
				if strings.HasPrefix(origin, sessions.OriginOf("m1", "")) && !strings.HasPrefix(origin, sessions.OriginOf("m10", "")) {
					text = "改口令 " + storetest.Secret
				}
				storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), c.Lease, storetest.Reminder(origin, text, storetest.ZhangID)))
			}
			c.Turn(storetest.ZhangID, storetest.ZhangNick, "好的", said)
			if err := erase(s, said, c.Speak("m2", storetest.ZhangID, storetest.ZhangNick, "/forget last", nil)); err != nil {
				t.Fatal(err)
			}
			storetest.WantGone(t, pool, storetest.Secret)
			if list := storetest.Must[[]sessions.Schedule](t)(s.Schedules.ActiveSchedules(t.Context(), c.Lease.Key)); len(list) != 2 {
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
			s, pool := storetest.Open(t, sqltest.URL(t))
			c := storetest.NewChat(t, s, "cid", storetest.ZhangID, false)
			said := c.Speak("m1", storetest.ZhangID, storetest.ZhangNick, "每天提醒我那件事", nil)
			storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), c.Lease, storetest.Reminder(sessions.OriginOf("m1", "call_1"), "改口令 "+storetest.Secret, storetest.ZhangID)))
			c.Turn(storetest.ZhangID, storetest.ZhangNick, "好的", said)
			other := c.Speak("m10", storetest.ZhangID, storetest.ZhangNick, "提醒我喝水", nil)
			storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), c.Lease, storetest.Reminder(sessions.OriginOf("m10", "call_1"), "喝水", storetest.LiID)))
			c.Turn(storetest.ZhangID, storetest.ZhangNick, "好的", other)
			for _, next := range []time.Time{time.Now().Add(-time.Second).Truncate(time.Second), {}} {
				for _, one := range storetest.Must[[]sessions.Schedule](t)(s.Schedules.DueSchedules(t.Context(), sessions.Schedule{}, 10)) {
					fired := storetest.Must[sessions.Accepted](t)(s.Schedules.FireSchedule(t.Context(), "r", one, next, storetest.Firing(one)))
					if !next.IsZero() {
						c.Turn(storetest.ZhangID, storetest.ZhangNick, "⏰ "+one.Text, fired)
					}
				}
			}
			c.Exchange(storetest.LiID, "/提醒 列表", "#1 每天9点 改口令 "+storetest.Secret)
			switch name {
			case older:
				storetest.Execute(t, pool, "UPDATE dingtalk_session_events SET message = message #- '{scheduled,origin}' WHERE message ? 'scheduled'")
			case expired:
				storetest.Execute(t, pool, "UPDATE schedules SET settled_at = now() - interval '1 hour'")
				if n := storetest.Must[int](t)(s.Retention.ExpireSchedules(t.Context(), time.Minute)); n != 2 {
					t.Fatalf("%d schedules expired, want 2", n)
				}
			}
			asked := c.Speak("m2", storetest.ZhangID, storetest.ZhangNick, "/forget last", nil)
			storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetMessage(t.Context(), said.EventID, memory.Asking{Lease: asked.Lease, Event: asked.EventID}))
			storetest.WantGone(t, pool, storetest.Secret)
			if n := storetest.Collect(t, pool, "SELECT count(*) FROM dingtalk_session_events WHERE content LIKE '%喝水'", pgx.RowTo[int64]); n[0] != 4 {
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
			s, pool := storetest.Open(t, sqltest.URL(t))
			c := storetest.NewChat(t, s, "cid", storetest.ZhangID, private)
			for i := range 2 {
				storetest.Must[sessions.Schedule](t)(s.Schedules.AddSchedule(t.Context(), c.Lease, storetest.Reminder(fmt.Sprint(i), "改口令 "+storetest.Secret, storetest.ZhangID)))
			}
			asked := c.Speak("m1", storetest.ZhangID, storetest.ZhangNick, "/forget me confirm", nil)
			for i, one := range storetest.Must[[]sessions.Schedule](t)(s.Schedules.DueSchedules(t.Context(), sessions.Schedule{}, 10)) {
				fired := storetest.Must[sessions.Accepted](t)(s.Schedules.FireSchedule(t.Context(), "r", one, time.Time{}, storetest.Firing(one)))
				if i == 0 {
					c.Turn(storetest.ZhangID, storetest.ZhangNick, "⏰ 改口令 "+storetest.Secret, fired)
				}
			}
			storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), memory.Forget{
				Robot: storetest.Robot, Person: storetest.ZhangID, Self: true, From: memory.Asking{Lease: asked.Lease, Event: asked.EventID},
			}))
			storetest.WantGone(t, pool, storetest.Secret)
		})
	}
}
