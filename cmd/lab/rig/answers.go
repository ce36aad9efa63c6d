package rig

import (
	"strings"

	"ebb/bot/openai/openaitest"
)

// SampleSummary is long enough for a summary of anything.
const SampleSummary = `## 用户与身份
- 张伟：支付网关负责人；李娜：发布；Alex：回滚
## 进行中的任务
- 支付网关 2.4 的联调与压测，三条链路已通，剩余五条用例待重跑
## 待办与承诺
- 周五前补齐错误码说明；新证书更换后通知值班同学；压测报告归档到知识库
## 决定与约束
- 发布窗口定在 5 月 20 日晚上八点，两小时；回滚脚本演练过，三分四十秒完成
## 关键标识
- PO-20260315-7781、pay-stage-2`

// MarksAsked are the marks in the messages since the last answer.
func MarksAsked(messages []openaitest.Message) string {
	var asked []string
	for i := len(messages) - 1; i >= 0 && messages[i].Role == "user"; i-- {
		asked = append(MarkPattern.FindAllString(messages[i].Content, -1), asked...)
	}
	return strings.Join(asked, " ")
}

// MatchQuestion matches a chat request whose newest message has the words, in any case.
func MatchQuestion(words string) openaitest.Matcher {
	words = strings.ToLower(words)
	return func(r openaitest.Request) bool { return strings.Contains(strings.ToLower(LastQuestion(r)), words) }
}

// LastQuestion is the newest message of a person in a chat request; empty for other requests.
func LastQuestion(r openaitest.Request) (last string) {
	if r.Kind != openaitest.Chat {
		return ""
	}
	for _, m := range r.Messages {
		if m.Role == "user" {
			last = m.Content
		}
	}
	return last
}

const (
	BytesPerToken  = 3
	PromptOverhead = 900 // tokens of a prompt's tools
)
