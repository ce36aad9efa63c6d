package command

import (
	"context"
	"strings"
	"testing"
	"time"

	"ebb/bot/parts"
	"ebb/bot/schedule"
	"ebb/bot/view"
	"ebb/sessions"
)

// stored keeps the schedules that are set.
type stored struct {
	noted
	set *[]sessions.Schedule
}

func (s stored) ScheduleOfOrigin(context.Context, sessions.Key, string) (sessions.Schedule, error) {
	return sessions.Schedule{}, sessions.ErrNotFound
}

func (s stored) AddSchedule(_ context.Context, _ sessions.Lease, added sessions.Schedule) (sessions.Schedule, error) {
	added.ID = int64(len(*s.set) + 1)
	*s.set = append(*s.set, added)
	return added, nil
}

// remindBy executes a command of a member at 15:10 and returns the answer with what it set.
func remindBy(t *testing.T, text, lang string) (answer string, set []sessions.Schedule) {
	t.Helper()
	zone := time.FixedZone("", 8*3600)
	h := New(&parts.Shared{}, &view.Builder{}, Stores{}, nil, nil, Options{Planner: &schedule.Planner{
		Store: stored{set: &set}, Calls: schedule.Uncounted{}, Location: zone, Settings: func() schedule.Settings { return schedule.Settings{Enabled: true} },
	}})
	c := Commands.Parse(text)
	if c.Command == nil || c.Use == nil || !c.Use.takes(c.Arg) {
		t.Fatalf("%q is %+v", text, c)
	}
	asked := sessions.Event{SenderID: "u", CreatedAt: time.Date(2026, 11, 25, 15, 10, 0, 0, zone), Message: &sessions.Message{SenderID: "u"}}
	return c.Use.Run(&h.env, t.Context(), &view.CommandTurn{Lang: lang, Asked: asked}, c), set
}

// People write the text first, short forms of times, and ask for the list by its name.
func TestRemindUnderstandsWhatPeopleTypeFirst(t *testing.T) {
	t.Parallel()
	for text, wanted := range map[string]string{
		"/remind me to drink water in 10 minutes":    "drink water @ 2026-11-25 15:20",
		"/remind call mom tomorrow at 5pm":           "call mom @ 2026-11-26 17:00",
		"/提醒 喝水 10分钟后":                               "喝水 @ 2026-11-25 15:20",
		"/remind 5m tea":                             "tea @ 2026-11-25 15:15",
		"/remind 1h30m tea":                          "tea @ 2026-11-25 16:40",
		"/remind tmr 9am standup":                    "standup @ 2026-11-26 09:00",
		"/remind end of month pay rent":              "pay rent @ 2026-11-30 09:00",
		"/提醒 每天8点和20点 吃药":                            "吃药 @ 2026-11-25 20:00",
		"/提醒 元旦 放假":                                  "放假 @ 2027-01-01 09:00",
		"/提醒 三个工作日后 交报告":                             "交报告 @ 2026-11-30 15:10",
		"/remind every day drink water at 8pm":       "drink water @ 2026-11-25 20:00",
		"/remind ask sum up the week on friday at 5": "sum up the week @ 2026-11-27 17:00",
	} {
		answer, set := remindBy(t, text, "en")
		if len(set) != 1 || set[0].Text+" @ "+set[0].DueAt.Format("2006-01-02 15:04") != wanted {
			t.Errorf("%q: %+v, want %s; answer: %s", text, set, wanted, answer)
		}
	}
	for _, text := range []string{"/remind list", "/提醒 列表", "/提醒列表", "/remind all", "/remind"} {
		if answer, set := remindBy(t, text, "en"); !strings.HasPrefix(answer, "There are no reminders here.") || len(set) > 0 {
			t.Errorf("%q: %s, %+v", text, answer, set)
		}
	}
}

// A refusal names the words that it could not read, sets nothing, and ends in the other way to ask.
func TestRefusalsOfTimesShowAnotherWay(t *testing.T) {
	t.Parallel()
	for text, named := range map[string]string{
		"/提醒 每天9点，从下周一开始 喝水": "从下周一开始",
		"/提醒 喝水":      "/提醒 10分钟后 喝水",
		"/提醒 明天9点":    "写上内容",
		"/提醒 昨天9点 喝水": "过去",
		"/提醒 6年后 喝水":  "五年",
		"/提醒 每五个月 喝水": "重复",
		"/提醒 0秒后 喝水":  "现在",
	} {
		answer, set := remindBy(t, text, "zh")
		if !strings.Contains(answer, named) || !strings.HasSuffix(answer, "直接用平常的话跟我说。") || len(set) > 0 {
			t.Errorf("%q: %s, %+v", text, answer, set)
		}
	}
	for text, named := range map[string]string{
		"/remind tomorrow or friday call mom": "or friday call mom",
		"/remind call mom by friday":          "friday",
		"/remind call mom":                    "/remind in 10 minutes",
		"/remind tomorrow at 9":               "what to say",
		"/remind yesterday call mom":          "past",
		"/remind in 6 years call mom":         "five years",
		"/remind every 5 months call mom":     "repeat",
	} {
		answer, set := remindBy(t, text, "en")
		if !strings.Contains(answer, named) || !strings.HasSuffix(answer, "or ask me in plain words.") || len(set) > 0 {
			t.Errorf("%q: %s, %+v", text, answer, set)
		}
	}
}
