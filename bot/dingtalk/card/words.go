package card

// status is the line of an unfinished card. tool names a running tool; empty: the model works.
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

// closed is the text of a card that no reply ended.
func closed(lang string) string {
	if lang == "en" {
		return "This card has stopped. Please see the latest message in this conversation, or ask again."
	}
	return "这张卡片已停止更新。请看本会话里最新的消息；如果没有看到回答，请再问一次。"
}
