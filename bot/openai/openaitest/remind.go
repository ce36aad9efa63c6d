package openaitest

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"ebb/bot/schedule/when"
)

const remindTool = "remind"

var (
	remindRE     = regexp.MustCompile(`(?i)(?:提醒|叫|通知)(?:我|大家)|\bremind\s+(?:me|us|everyone)\b`)
	remindOnlyRE = regexp.MustCompile(`(?i)^(?:请|麻烦|帮我)*提醒(?:我|大家)|^(?:please\s+)?remind\s+(?:me|us|everyone)\b`)
	scheduledRE  = regexp.MustCompile(`^\[(?:定时|scheduled)`)
	reminderRE   = regexp.MustCompile(`^set as reminder (\d+): .*?due (\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?)`)
	timeMarks    = regexp.MustCompile(`[\s，,、]+`)
)

// reminderOf returns the arguments of the tool for a text with "remind me" and a time, such as "10分钟后提醒我喝水". The time stands at
// the beginning or at the end. It returns false for any other text.
func reminderOf(s said) (args string, ok bool) {
	text := strings.TrimRight(strings.TrimSpace(s.text), "。.！!")
	if !remindRE.MatchString(text) || scheduledRE.MatchString(text) {
		return "", false
	}
	at, what := splitReminder(text)
	if at == "" || what == "" {
		return "", false
	}
	b, _ := json.Marshal(map[string]string{"when": at, "text": what})
	return string(b), true
}

func splitReminder(text string) (at, what string) {
	if _, rest, err := when.Parse(text, time.Now()); err == nil {
		before, behind, _ := strings.Cut(text, rest)
		switch at = strings.TrimSpace(before); {
		case !remindRE.MatchString(at):
			return "", ""
		case strings.TrimSpace(behind) == "":
			return at, rest
		}
		for _, at := range []string{behind, before + " " + behind} {
			if _, more, err := when.Parse(at, time.Now()); err == nil && more == "" {
				return strings.Trim(at, " ,，、"), rest
			}
		}
		return "", ""
	}
	head := remindOnlyRE.FindString(text)
	for _, m := range timeMarks.FindAllStringIndex(text, -1) {
		_, rest, err := when.Parse(text[m[1]:], time.Now())
		if head != "" && m[0] > len(head) && err == nil && rest == "" {
			return text[m[1]:], strings.TrimPrefix(strings.TrimSpace(text[len(head):m[0]]), "to ")
		}
	}
	return "", ""
}

// answerReminder reads the tool's result back. It is empty for a text that asks for no reminder.
func answerReminder(s said, results map[string]string) string {
	args, ok := reminderOf(s)
	result := results[args]
	switch m := reminderRE.FindStringSubmatch(result); {
	case m != nil:
		return s.in("好的，提醒 #"+m[1]+" 已设好，时间 "+m[2]+"。", "Reminder #"+m[1]+" is set for "+m[2]+".")
	case ok && result != "":
		reason, _, _ := strings.Cut(result, ";")
		reason = strings.TrimPrefix(strings.TrimPrefix(reason, "error: "), "remind: ")
		return s.in("这个提醒没有设成（"+reason+"）。", "This reminder was not set: "+reason+".")
	case ok:
		return s.in("这里设不了提醒。", "Reminders can't be set here.")
	case remindOnlyRE.MatchString(s.text) && !isQuestion(s.text):
		return s.in("没有设提醒：我是按规则答话的演示模型，没看懂时间。试试“10分钟后提醒我喝水”。",
			`No reminder was set: I am a demo model with fixed rules, and could not read the time. Try "remind me in 10 minutes to drink water".`)
	}
	return ""
}
