package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"ebb/bot/openai/openaitest"
)

// benchModel is a model that answers at once and costs next to nothing.
type benchModel struct {
	facts atomic.Int64
	held  chan string // marks of questions that were taken and not answered

	mu   sync.Mutex
	seen map[string]bool
}

func newBenchModel() *benchModel {
	return &benchModel{held: make(chan string, 16), seen: map[string]bool{}}
}

// holdWord in a question makes the model hang the first time that it is asked.
const holdWord = "#hold"

// benchSummary is long enough to be taken for a summary of anything.
const benchSummary = `## 用户与身份
- 张伟：支付网关负责人；李娜：发布；Alex：回滚
## 进行中的任务
- 支付网关 2.4 的联调与压测，三条链路已通，剩余五条用例待重跑
## 待办与承诺
- 周五前补齐错误码说明；新证书更换后通知值班同学；压测报告归档到知识库
## 决定与约束
- 发布窗口定在 5 月 20 日晚上八点，两小时；回滚脚本演练过，三分四十秒完成
## 关键标识
- PO-20260315-7781、pay-stage-2`

// reply repeats the marks of what is asked; to a flush it gives two facts that nobody said before.
func (m *benchModel) reply(r openaitest.Request) openaitest.Reply {
	switch r.Kind {
	case openaitest.Flush:
		n := m.facts.Add(1)
		return openaitest.Calls("memory_save", fmt.Sprintf(
			`{"facts":[{"content":"张伟：第 %d 次演练的回滚用时三分四十秒","kind":"fact"},{"content":"李娜：第 %d 批用例周五前重跑","kind":"task"}]}`, n, n))
	case openaitest.Summary:
		return openaitest.Text(benchSummary)
	}
	asked := askedMarks(r.Messages)
	if strings.Contains(r.Last().Content, holdWord) && m.first(asked) {
		m.held <- asked
		return openaitest.Hang()
	}
	return openaitest.Text(asked + " 发布窗口是周五晚上八点到十点，回滚由李娜负责；压测报告下班前会放到群文件里，到时候再提醒大家。")
}

// first reports whether these marks come for the first time.
func (m *benchModel) first(asked string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.seen[asked]
	m.seen[asked] = true
	return !before
}

// askedMarks are the marks in the messages since the last answer.
func askedMarks(messages []openaitest.Message) string {
	var asked []string
	for i := len(messages) - 1; i >= 0 && messages[i].Role == "user"; i-- {
		asked = append(marks.FindAllString(messages[i].Content, -1), asked...)
	}
	return strings.Join(asked, " ")
}

// usage counts tokens by the bytes, as quickly as that can be done.
func (m *benchModel) usage(r openaitest.Request, a openaitest.Reply) (prompt, completion int) {
	n := 0
	for _, msg := range r.Messages {
		n += len(msg.Content)
	}
	return promptOverhead + n/bytesPerToken, len(a.Content())/bytesPerToken + 1
}

const (
	bytesPerToken  = 3
	promptOverhead = 900 // the tools
)
