package card

import (
	"strings"
	"unicode/utf8"

	"ebb/bot/dingtalk/markdown"
)

func status(lang, tool string) string {
	switch {
	case lang == "en" && tool != "":
		return "⏳ Using " + tool + " …"
	case lang == "en":
		return "⏳ Thinking …"
	case tool != "":
		return "⏳ 正在使用工具 " + tool + " …"
	}
	return "⏳ 正在思考 …"
}

func queuedStatus(lang string) string {
	if lang == "en" {
		return "⏳ Waiting for other answers …"
	}
	return "⏳ 排队中，稍后回答 …"
}

func trialText(lang string, finished bool) string {
	switch {
	case lang == "en" && finished:
		return "**Ebb tried this card template.** Nothing needs to be done."
	case lang == "en":
		return "**Ebb tries this card template**"
	case finished:
		return "**Ebb 试用了这个卡片模板。** 无需处理。"
	}
	return "**Ebb 正在试用这个卡片模板**"
}

// keptThought bounds the reasoning of a frame, in bytes.
const keptThought = 600

// thought is the end of a model's reasoning as one quoted line, which later frames may drop.
func thought(text string) string {
	cut := len(text) > keptThought
	if cut {
		text = text[len(text)-keptThought:]
		text = strings.TrimLeftFunc(text, func(r rune) bool { return r == utf8.RuneError })
	}
	text = strings.Join(strings.Fields(whole(text)), " ")
	switch {
	case text == "":
		return ""
	case cut:
		text = "… " + text
	}
	return Final(markdown.Pictures{}.Safe("> 💭 " + text))
}

func closed(lang string) string {
	if lang == "en" {
		return "This card has stopped. Please see the latest message in this conversation, or ask again."
	}
	return "这张卡片已停止更新。请看本会话里最新的消息；如果没有看到回答，请再问一次。"
}
