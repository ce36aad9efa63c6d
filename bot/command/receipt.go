package command

import (
	"fmt"
	"strings"

	"ebb/memory"
)

// deleted has singular and plural in en.
type deleted struct {
	n      int
	zh, en string
}

func receipt(done memory.Forgotten, lang string) string {
	return inWords(lang, []deleted{
		{max(0, done.Memories-1), "条说同一件事的记忆", "other memory of the same thing|other memories of the same thing"},
		{done.Messages, "条相关消息", "related message|related messages"},
		{done.Healed, "份摘要中的相关内容", "summary, where its lines are gone|summaries, where their lines are gone"},
		{done.Summaries, "份摘要（会用剩下的内容重写）", "summary, to be written again from what is left|summaries, to be written again from what is left"},
		{done.Blobs, "份存放的工具结果", "stored tool result|stored tool results"},
	})
}

func receiptOfPerson(done memory.Forgotten, lang string) string {
	return inWords(lang, []deleted{
		{done.Memories, "条记忆", "memory|memories"},
		{done.Messages, "条消息", "message|messages"},
		{done.Healed, "份摘要中的相关内容", "summary, where its lines are gone|summaries, where their lines are gone"},
		{done.Summaries, "份摘要（会用剩下的内容重写）", "summary, to be written again from what is left|summaries, to be written again from what is left"},
		{done.Blobs, "份存放的工具结果", "stored tool result|stored tool results"},
	})
}

func previewInWords(p memory.Preview, lang string) string {
	return inWords(lang, []deleted{
		{p.Messages, "条消息", "message|messages"},
		{p.Answers, "条我的回答", "answer of mine|answers of mine"},
		{p.Facts, "条记忆", "memory|memories"},
		{p.DigestLines, "行日报", "line of digests|lines of digests"},
		{p.Summaries, "份摘要（去掉其中的相关内容）", "summary, without the parts about it|summaries, without the parts about it"},
		{p.Usage, "行用量（去掉名字）", "row of usage, which loses the name|rows of usage, which lose the name"},
		{p.Schedules, "个提醒", "reminder|reminders"},
		{p.Promotions, "条分享的记忆（去掉名字）", "shared memory, which loses the name|shared memories, which lose the name"},
		{p.Compactions, "次压缩或撤销记录（去掉名字）", "record of a compaction, which loses the name|records of compactions, which lose the name"},
		{p.IDs, "个加密编号", "encrypted id|encrypted ids"},
		{p.Logins, "次控制台登录", "login of the console|logins of the console"},
		{p.Private, "个私聊", "private chat|private chats"},
	})
}

func inWords(lang string, things []deleted) string {
	var parts []string
	for _, c := range things {
		one, many, _ := strings.Cut(c.en, "|")
		switch {
		case c.n == 0:
		case lang != "en":
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.zh))
		case c.n == 1:
			parts = append(parts, "1 "+one)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", c.n, many))
		}
	}
	if lang != "en" {
		return strings.Join(parts, "、")
	}
	return strings.Join(parts, "; ")
}
