package written

import (
	"testing"

	"ebb/sessions/rules/rulestest"
)

// Each rule of rules.tsv matches its first example, and not its second.
func TestRuleExamples(t *testing.T) {
	t.Parallel()
	rulestest.Examples(t, ruleFile, nil)
}

func TestIsTalk(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"好的，没问题！预算评审会我来安排，周三下午三点，会议室已经预定。\n\n请问接下来需要我帮大家安排预算评审会的议程吗？",
		"没问题，我会通知大家。",
		"预算评审会定在周三。如有其他需要，随时告诉我！",
		"周三下午可以。\n\n您看这个时间方便吗？",
		"Sure! I've booked the room for Wednesday.\n\n- 3 pm\n- room 2",
		"The review is on Wednesday. Would you like me to send the invitations?",
		"I'll send the invitations to everyone now.",
		"Thanks, I will take care of it.",
		"你好！我是 Ebb，很高兴为大家服务。",
		"非常抱歉，我无法处理这段内容。",
		"I'm sorry, but I can't assist with that request.",
		"I cannot help with this.",
		"As an AI language model, I have no access to the chat.",
	} {
		if !IsTalk(text) {
			t.Errorf("%q passes for a description", text)
		}
	}
	for _, text := range []string{
		"## 用户与身份\n- 李娜\n## 待办与承诺\n- 张伟：我会帮大家跟进\n## 未决问题\n- 谁来写公告？",
		"好的，以下是这段对话的摘要：\n李娜负责支付网关，周五发布。",
		"李娜问预算评审会什么时候开，张伟说周三下午，大家同意。公告谁来写还没有定。",
		"好的方案有两个：甲和乙，大家选了甲。",
		"Sure enough, the build failed. Bob fixed it on Friday.",
		"Great progress was made: Alice shipped the release. Open: who writes the announcement, and whether the old API stays?",
		"Thanks to Carol the move is done.",
		"抱歉信已经发给客户，李娜跟进。",
		"Here is a summary of the conversation: Alice asked Bob to let her know by Friday.",
		"Sure, here is the summary:\nAlice and Bob planned the release.",
		"- 3月5日 14:20 李娜：好的，没问题，需要我帮大家安排吗？",
		"周五发布", "A-10086", "",
	} {
		if IsTalk(text) {
			t.Errorf("%q passes for a reply", text)
		}
	}
}
