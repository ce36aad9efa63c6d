package openaitest

import (
	"fmt"
	"hash/fnv"
	"strings"
	"unicode"
)

func (s said) in(chinese, english string) string {
	if strings.ContainsFunc(s.text, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		return chinese
	}
	return english
}

func answerTo(s said, before, asked, results []said, turn turnResults) string {
	to := ""
	if s.who != "" && len(asked) > 1 {
		to = s.nick() + s.in("，", ", ")
	}
	reminder := answerReminder(s, turn.reminders)
	switch {
	case reminder != "":
		return to + reminder
	case rememberRE.MatchString(s.text) && turn.saved:
		return to + s.in("记住了：", "Remembered: ") + strings.TrimLeft(rememberRE.ReplaceAllString(statements(s.text), ""), " :：,，。")
	case rememberRE.MatchString(s.text) && turn.tried[saveTool]:
		return to + s.in("这条没有存进记忆：密码、指令、闲聊和群里的个人隐私不会被存。",
			"This was not saved: memory keeps no passwords, instructions, small talk and private matters of a person in a group.")
	case smallTalk(s.text) != "":
		return to + smallTalk(s.text)
	case !isQuestion(s.text):
		return to + acknowledge(s)
	}
	if hit, ok := best(s.text, known(before, asked, s)); ok {
		return to + cite(s, hit)
	}
	if hit, ok := best(s.text, results); ok {
		return to + cite(s, hit)
	}
	return to + s.in("我没有找到相关的记录，不知道答案。", "I found no record of that, so I don't know.")
}

func cite(question, hit said) string {
	text := strings.Join(strings.Fields(bulletRE.ReplaceAllString(hit.text, "")), " ")
	switch hit.from {
	case "context":
		if hit.who != "" {
			return hit.nick() + question.in(" 说过：", " said: ") + text
		}
		return question.in("前面提到：", "Said before: ") + text
	case "summary":
		return question.in("之前的讨论里有：", "From the earlier talk: ") + text
	case "query_history":
		return question.in("查了聊天记录：", "From the chat log: ") + text
	}
	return question.in("记忆里有：", "From memory: ") + text
}

func smallTalk(text string) string {
	s := said{text: text}
	switch strings.ToLower(strings.Trim(text, " 。！!？?~，,")) {
	case "你好", "您好", "hi", "hello", "在吗", "在么", "早", "早上好", "大家好":
		return s.in("你好！我在，有事请说。", "Hello! I'm here. How can I help?")
	case "谢谢", "多谢", "辛苦了", "thanks", "thank you":
		return s.in("不客气。", "You're welcome.")
	case "你是谁", "who are you":
		return s.in("我是按规则答话的演示模型，不是真的大模型。", "I am a demo model that answers by fixed rules, not a real language model.")
	}
	return ""
}

// The text selects one of several wordings.
func acknowledge(s said) string {
	ways := []string{
		s.in("收到：%s", "Noted: %s"), s.in("好的，了解：%s", "All right: %s"), s.in("明白，%s", "Understood: %s"), s.in("知道了：%s", "I see: %s"),
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.text))
	return fmt.Sprintf(ways[h.Sum32()%uint32(len(ways))], clip(strings.Join(strings.Fields(s.text), " "), 40))
}
