package bot

import (
	"fmt"
	"unicode"
)

// phrase is something that Ebb itself tells people, apart from what a model says.
type phrase int

const (
	sayHere phrase = iota
	sayEmpty
	sayCutOff
	sayRounds
	sayBusy
	sayDenied
	sayRefused
	sayMalformed
	sayOverflow
	sayTimeout
	sayDead
	sayStale
	sayOverQuota
	sayNotAdmin
	sayNothingToCompact
	sayNoGain
	sayCompactFailed
	sayUndone
	sayNothingToUndo
	sayUndoFailed
	sayLogEmpty
	sayLogUnreadable
	sayRenewed
	sayNotRenewed
	sayHelp
)

// phrases are the texts in Chinese and English: polite, short, and without anything of what went wrong inside.
var phrases = map[phrase][2]string{
	sayHere:      {"我在。有什么可以帮你？发 /help 看我能做什么。", "I'm here. How can I help? Send /help to see what I can do."},
	sayEmpty:     {"模型这次没有给出回答，请换个说法再问一次。", "The model gave no answer this time. Please try asking in other words."},
	sayCutOff:    {"\n\n（回答太长，到这里被截断了；回复“继续”可以接着说。）", "\n\n(The answer was cut off here for its length; reply \"continue\" to go on.)"},
	sayRounds:    {"这个问题需要的步骤太多，我先停在这里。请把它拆小一点再问。", "This needs more steps than I may take. Please ask for a smaller part of it."},
	sayBusy:      {"模型服务现在很忙，没能及时回答。请稍后再试。", "The model service is busy and did not answer in time. Please try again later."},
	sayDenied:    {"模型服务暂时不可用，需要管理员处理，已记录。请稍后再试。", "The model service is not available until an administrator looks at it; this has been recorded. Please try again later."},
	sayRefused:   {"这条内容模型不便回答，请换个说法。", "The model can't answer this as it is. Please put it differently."},
	sayMalformed: {"这条消息我暂时处理不了，已记录下来。请换个说法再试。", "I can't process this message at the moment; it has been recorded. Please try again in other words."},
	sayOverflow:  {"这条消息太长，超出了模型能读的范围。请缩短后再发。", "This message is longer than the model can read. Please send a shorter one."},
	sayTimeout:   {"这个问题处理超时了，请稍后再试，或把它拆小一点。", "This took too long. Please try again later, or ask for a smaller part of it."},
	sayDead:      {"你在 %s 发的这条消息我试了几次都没能处理，已放在一边并记录给管理员，不影响后面的对话。", "I tried your message of %s several times and could not process it. It is set aside for an administrator; the conversation goes on."},
	sayStale:     {"抱歉，我刚才离线了。这期间有 %d 条消息（最早 %s）没有及时回答，现在可能已经过时；还需要的话请再说一声。", "Sorry, I was offline. %d messages (the oldest of %s) went unanswered and may be out of date by now; please tell me what you still need."},
	sayOverQuota: {"本组织的钉钉消息额度已用完，我看不到这条消息的内容。请联系管理员。", "Your organisation's DingTalk quota is used up, so I can't see what this message says. Please contact an administrator."},
	sayNotAdmin:  {"这个命令只有管理员可以用。", "Only administrators can use this command."},

	sayNoGain:           {"无需压缩：压缩后不会明显变小。", "Nothing to compact: it would not become much smaller."},
	sayNothingToCompact: {"无需压缩：%s。", "Nothing to compact: %s."},
	sayCompactFailed:    {"❌ 压缩失败，保持原历史不变。", "❌ Compaction failed; the history stays as it was."},
	sayUndone:           {"↩️ 已撤销上一次压缩：消息 %d–%d 恢复原文，%s → %s tokens。", "↩️ The last compaction is undone: events %d–%d stand in full again, %s → %s tokens."},
	sayNothingToUndo:    {"没有可以撤销的压缩。", "There is no compaction to undo."},
	sayUndoFailed:       {"撤销没有成功，历史保持不变，请稍后再试。", "The compaction could not be undone; nothing changed. Please try again later."},
	sayLogEmpty:         {"这个会话还没有压缩过。", "This conversation has not been compacted yet."},
	sayLogUnreadable:    {"压缩记录暂时读不到，请稍后再试。", "The compaction log can't be read at the moment. Please try again later."},
	sayRenewed:          {"好，我们从头开始。之前的内容已归档，重要的事记在记忆里。", "A fresh start. What was said before is kept in the archive, and what matters in memory."},
	sayNotRenewed:       {"没能开始新的对话，一切照旧，请稍后再试。", "The new conversation could not be begun; nothing changed. Please try again later."},
	sayHelp: {
		"直接说话就行，我会记住重要的事。命令（带 * 的在群里限管理员）：\n\n- `/状态` 上下文用量、压缩次数（`/status`）\n- `/压缩 [重点]` * 现在就压缩（`/compact`）\n- `/压缩撤销` * 撤销上一次压缩（`/compact undo`）\n- `/压缩记录` * 最近的压缩记录（`/compact log`）\n- `/新对话` * 从头开始（`/new`）\n- `/帮助` 这段说明（`/help`）",
		"Just talk; I remember what matters. Commands (* in groups: administrators):\n\n- `/status` context in use, compactions\n- `/compact [focus]` * compact now\n- `/compact undo` * take the last compaction back\n- `/compact log` * the latest compactions\n- `/new` * begin a new conversation\n- `/help` this text",
	},
}

// say is a phrase in a language, zh or en.
func say(p phrase, lang string, args ...any) string {
	i := 0
	if lang == "en" {
		i = 1
	}
	if len(args) == 0 {
		return phrases[p][i]
	}
	return fmt.Sprintf(phrases[p][i], args...)
}

// languageOf is the language to answer a text in: Chinese where there is any, English where there are only Latin
// words, else the configured one.
func languageOf(text, configured string) string {
	latin := false
	for _, r := range text {
		if unicode.Is(unicode.Han, r) {
			return "zh"
		}
		latin = latin || unicode.Is(unicode.Latin, r)
	}
	if latin {
		return "en"
	}
	return configured
}
