package command

import (
	"fmt"
	"testing"

	"ebb/memory"
	"ebb/sessions"
)

// The person whom /forget is about, and the confirmation: "please" is no part of a name, and "me no" has no target.
func TestCommandForgetWords(t *testing.T) {
	t.Parallel()
	for text, wanted := range map[string]string{
		"me": "me 0", "我": "me 0", "ME": "me 0", "me yes": "me 1", "me yes please": "me 1", "me, yes": "me 1", "me Yes!": "me 1",
		"我 确认": "me 1", "我 确认 吧": "me 1", "me no": "me 2", "me not": "me 2", "我 不要": "me 2", "我 算了。": "me 2", "me please": "me 0",
		"last": "last 0", "上一条": "last 0", "刚才那条": "last 0", "last please": "last 0",
		"@王芳": "@王芳 0", "＠王芳 确认": "@王芳 1", "@Wang Fang yes": "@Wang Fang 1", "@王芳 取消": "@王芳 2",
		"": " 0", "yes": "yes 0", "0123": "0123 0", "me again": "me again 0",
	} {
		who, answer := forgetWords(text)
		want(t, text, fmt.Sprint(who, " ", int(answer)), wanted)
	}
}

// Each outcome of a flush without facts has words of the group's language, and no code of the compaction log.
func TestUnsavedWords(t *testing.T) {
	t.Parallel()
	for outcome, words := range map[sessions.FlushOutcome][2]string{
		"":                               {"这次没有另外存入", "nothing was saved besides the summary"},
		"off":                            {"这次没有另外存入", "nothing was saved besides the summary"},
		"done before":                    {"重要的事之前已经记下", "what matters was saved before"},
		"owed":                           {"重要的事还没能记下，稍后会再试", "what matters is not saved yet; this is tried again later"},
		"later":                          {"重要的事稍后一起整理", "what matters is saved later, together with more"},
		"nothing to save":                {"没有要存的", "nothing to save"},
		"saved 0, known 2":               {"没有存下新的内容", "nothing new was saved"},
		"none, passed over 3":            {"没有存下新的内容，有 3 条没有读到", "nothing new was saved; messages that were not read: 3"},
		"nothing to save, passed over 1": {"没有要存的，有 1 条没有读到", "nothing to save; messages that were not read: 1"},
	} {
		want(t, string(outcome), [2]string{unsavedWords(outcome, "zh"), unsavedWords(outcome, "en")}, words)
	}
}

func TestCommandNumbers(t *testing.T) {
	t.Parallel()
	for text, id := range map[string]int64{
		"12": 12, "#12": 12, "＃１２": 12, "１２": 12, "# 12": 12, " 12 ": 12, "0": 0, "-3": 0, "#": 0, "": 0, "3 4": 0, "three": 0, "3.5": 0,
		"99999999999999999999": 0,
	} {
		want(t, text, memoryID(text), id)
	}
}

// The groups of a person are not deleted: a preview counts them in brackets, and names some in a private chat.
func TestPreviewCountsGroupsApart(t *testing.T) {
	t.Parallel()
	p := memory.Preview{Messages: 9, Answers: 1, Groups: []string{"发布组"}, Private: 1}
	six := []string{"甲", "", "乙", "丙", "丁", "戊", "己"}
	for got, wanted := range map[string]string{
		previewInWords(p, "zh") + groupsInWords(p.Groups, false, "zh"): "9 条消息、1 条我的回答、1 个私聊（涉及 1 个群）",
		previewInWords(p, "en") + groupsInWords(p.Groups, false, "en"): "9 messages; 1 answer of mine; 1 private chat (in 1 group)",
		groupsInWords(p.Groups, true, "zh"):                            "（涉及 1 个群：发布组）",
		groupsInWords(six, true, "zh"):                                 "（涉及 7 个群：甲、乙、丙、丁、戊、…）",
		groupsInWords([]string{"", "b"}, true, "en"):                   " (in 2 groups: b)",
		groupsInWords(nil, true, "en"):                                 "",
	} {
		want(t, "preview", got, wanted)
	}
}

// A receipt leaves out what there is none of, and counts in good English.
func TestCommandReceipts(t *testing.T) {
	t.Parallel()
	few := memory.Forgotten{Sessions: 1, Memories: 1, Events: 9, Messages: 2, Healed: 2, Summaries: 1, Replies: 4, Embeddings: 3}
	many := memory.Forgotten{Memories: 3, Messages: 1, Summaries: 2, Blobs: 1}
	for got, wanted := range map[string]string{
		receipt(few, "zh"):                      "2 条相关消息、2 份摘要中的相关内容、1 份摘要（会用剩下的内容重写）",
		receipt(few, "en"):                      "2 related messages; 2 summaries, where their lines are gone; 1 summary, to be written again from what is left",
		receipt(many, "en"):                     "2 other memories of the same thing; 1 related message; 2 summaries, to be written again from what is left; 1 stored tool result",
		receipt(memory.Forgotten{}, "zh"):       "",
		receiptOfPerson(few, "zh"):              "1 条记忆、2 条消息、2 份摘要中的相关内容、1 份摘要（会用剩下的内容重写）",
		receiptOfPerson(many, "en"):             "3 memories; 1 message; 2 summaries, to be written again from what is left; 1 stored tool result",
		receiptOfPerson(memory.Forgotten{}, ""): "",
	} {
		want(t, "receipt", got, wanted)
	}
}
