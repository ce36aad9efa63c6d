package show

import (
	"fmt"
	"strings"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// Heads are the headings of a person's export.
type Heads struct{ Facts, Messages, Records string }

// ExportHeads returns them in zh or en.
func ExportHeads(lang string) Heads {
	if lang == "en" {
		return Heads{"## What is remembered about you or was said by you", "## What you said", "## Other records with your name"}
	}
	return Heads{"## 与你有关或由你说出的记忆", "## 你说过的话", "## 其他带有你名字的记录"}
}

var recordWords = map[memory.RecordKind][2]string{
	memory.RecordUsage: {"模型用量", "use of models"}, memory.RecordID: {"加密编号", "encrypted id"}, memory.RecordPromotion: {"由你分享给团队的记忆", "memory that you shared with the team"},
	memory.RecordSchedule:   {"由你设置的提醒", "reminder that you set"},
	memory.RecordFile:       {"由你发送或记住的文件", "file that you sent or had kept"},
	memory.RecordCompaction: {"由你发起的压缩或撤销", "compaction or undo that you asked for"},
	memory.RecordLogin:      {"控制台登录", "login of the console"}, memory.RecordAction: {"控制台操作", "action in the console"},
}

var scheduleWords = map[sessions.ScheduleKind][2]string{
	sessions.Remind: {"到时提醒", "reminds"}, sessions.AskModel: {"到时提问", "asks the model"},
}

// ExportRecord is a line of Markdown: time, kind, content, and the tokens of usage.
func ExportRecord(r memory.Record, loc *time.Location, lang string) string {
	words := []string{wordIn(recordWords[r.Kind], string(r.Kind), lang)}
	if text := oneLine(r.Text); text != "" {
		words = append(words, text)
	}
	at := r.At.In(loc).Format("2006-01-02 15:04")
	switch {
	case r.Kind == memory.RecordUsage:
		at = r.At.UTC().Format("2006-01-02") // a day of UTC
		words = append(words, fmt.Sprintf("%d + %d tokens", r.Prompt, r.Completion))
	case r.Kind == memory.RecordSchedule:
		words = append(words, wordIn(scheduleWords[r.Way], string(r.Way), lang), r.Spec, wordIn([2]string{"时间", "due"}, "", lang)+" "+r.DueAt.In(loc).Format("2006-01-02 15:04"))
	case r.Rows > 1:
		words = append(words, fmt.Sprintf("× %d", r.Rows))
	}
	return fmt.Sprintf("- %s · %s\n", at, strings.Join(words, " · "))
}

// ExportFact is a line of Markdown: time, place, content.
func ExportFact(m memory.Memory, loc *time.Location, lang string) string {
	at := m.SaidAt
	if at.IsZero() {
		at = m.CreatedAt
	}
	state := ""
	switch zh := lang != "en"; {
	case m.SupersededBy != 0 && zh:
		state = fmt.Sprintf("（已被 #%d 取代）", m.SupersededBy)
	case m.SupersededBy != 0:
		state = fmt.Sprintf(" (replaced by #%d)", m.SupersededBy)
	}
	return fmt.Sprintf("- %s · #%d · %s · %s · %s%s\n", at.In(loc).Format("2006-01-02 15:04"), m.ID,
		ScopeWord(m.Scope, lang), KindWord(m.Kind, lang), oneLine(m.Content), state)
}

// ScopeWord names a scope in zh or en.
func ScopeWord(s memory.Scope, lang string) string {
	words := map[memory.Scope][2]string{
		memory.ScopeUser: {"个人", "person"}, memory.ScopeGroup: {"本群", "group"}, memory.ScopeTeam: {"全团队", "team"}, memory.ScopeSession: {"会话", "conversation"},
	}
	return wordIn(words[s], string(s), lang)
}

// KindWord names a kind in zh or en.
func KindWord(k memory.Kind, lang string) string {
	words := map[memory.Kind][2]string{
		memory.KindFact: {"事实", "fact"}, memory.KindProfile: {"个人情况", "profile"}, memory.KindPreference: {"偏好", "preference"},
		memory.KindDecision: {"决定", "decision"}, memory.KindTask: {"进展", "task"}, memory.KindDigest: {"每日摘要", "digest"},
	}
	return wordIn(words[k], string(k), lang)
}

func wordIn(word [2]string, other, lang string) string {
	switch {
	case word[0] == "":
		return other
	case lang == "en":
		return word[1]
	}
	return word[0]
}

// ExportSaid is a line of Markdown: time, place, content.
func ExportSaid(s memory.PersonMessage, loc *time.Location, lang string) string {
	at := s.Event.CreatedAt
	if m := s.Event.Message; m != nil && !m.SentAt.IsZero() {
		at = m.SentAt
	}
	place := s.Title
	switch zh := lang != "en"; {
	case s.Private && zh:
		place = "私聊"
	case s.Private:
		place = "private"
	case place == "":
		place = string(s.Event.Key)
	}
	return fmt.Sprintf("- %s · %s · %s\n", at.In(loc).Format("2006-01-02 15:04"), oneLine(sessions.Nick(place)), oneLine(s.Event.Content))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
