package command

import (
	"context"
	"testing"
	"time"

	"ebb/bot/schedule"
	"ebb/sessions"
)

// noted is the schedules of a session.
type noted struct {
	sessions.Schedules
	list []sessions.Schedule
}

func (n noted) ActiveSchedules(context.Context, sessions.Key) ([]sessions.Schedule, error) {
	return n.list, nil
}

// The list gives the time of a single reminder once, and the next time of a repeated one beside its rule.
func TestListOfRemindersGivesEachTimeOnce(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	creator := sessions.Message{SenderNick: "张伟"}
	list := noted{list: []sessions.Schedule{
		{ID: 1, DueAt: due, Spec: "2026-11-27T09:00:00Z", Text: "喝水", Creator: creator},
		{ID: 2, DueAt: due, Spec: "CRON_TZ=UTC 0 9 * * 5", Text: "交周报", Creator: creator},
	}}
	planner := &schedule.Planner{Store: list, Calls: schedule.Uncounted{}, Location: time.UTC, Settings: func() schedule.Settings { return schedule.Settings{Enabled: true} }}
	for lang, wanted := range map[string]string{
		"zh": "这里的提醒：\n\n- #1 2026年11月27日（周五）09:00 · “喝水” · 张伟\n- #2 每周五 09:00 · 下次 2026-11-27 09:00 · “交周报” · 张伟\n\n`/提醒 删除 编号` 删除，`/提醒 修改 编号 时间` 改时间。",
		"en": "Reminders here:\n\n- #1 Friday, 27 November 2026 at 09:00 · \"喝水\" · 张伟\n- #2 every Friday at 09:00 · next 2026-11-27 09:00 · \"交周报\" · 张伟\n\n`/remind delete N` deletes one, `/remind change N WHEN` changes its time.",
	} {
		want(t, lang, remindCommand{planner: planner, asked: sessions.Event{SenderID: "u"}, lang: lang}.list(t.Context(), ""), wanted)
	}
}
