package bench

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"ebb/bot/openai/openaitest"
	"ebb/cmd/lab/rig"
)

// benchModel answers at once and costs next to nothing.
type benchModel struct {
	facts atomic.Int64
	held  chan string // marks of taken and unanswered questions

	mu   sync.Mutex
	seen map[string]bool
}

func newBenchModel() *benchModel {
	return &benchModel{held: make(chan string, 16), seen: map[string]bool{}}
}

// A question with holdWord hangs the model at its first request.
const holdWord = "#hold"

// A question with toolWord is answered by a call of benchTool first.
const (
	toolWord  = "#tool"
	benchTool = "odd__echo"
)

// replyTo repeats the marks of its question: the askers find their answers by them.
func (m *benchModel) replyTo(r openaitest.Request) openaitest.Reply {
	switch r.Kind {
	case openaitest.Flush:
		n := m.facts.Add(1)
		return openaitest.Calls("memory_save", fmt.Sprintf(
			`{"facts":[{"content":"张伟：第 %d 次演练的回滚用时三分四十秒","kind":"fact"},{"content":"李娜：第 %d 批用例周五前重跑","kind":"task"}]}`, n, n))
	case openaitest.Summary:
		return openaitest.Text(rig.SampleSummary)
	}
	asked := rig.MarksAsked(withoutRounds(r.Messages))
	if strings.Contains(r.Last().Content, toolWord) {
		return openaitest.Calls(benchTool, `{"text":"发布窗口"}`)
	}
	if strings.Contains(r.Last().Content, holdWord) && m.isFirst(asked) {
		m.held <- asked
		return openaitest.Hang()
	}
	return openaitest.Text(asked + " 发布窗口是周五晚上八点到十点，回滚由李娜负责；压测报告下班前会放到群文件里，到时候再提醒大家。")
}

// withoutRounds leaves out the calls of tools behind the question, and their results.
func withoutRounds(messages []openaitest.Message) []openaitest.Message {
	for n := len(messages) - 1; n > 0 && (messages[n].Role == "tool" || len(messages[n].ToolCalls) > 0); n-- {
		messages = messages[:n]
	}
	return messages
}

func (m *benchModel) isFirst(asked string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.seen[asked]
	m.seen[asked] = true
	return !before
}

// A tokenizer would cost time.
func (m *benchModel) countUsage(r openaitest.Request, a openaitest.Reply) (prompt, completion int) {
	n := 0
	for _, msg := range r.Messages {
		n += len(msg.Content)
	}
	return rig.PromptOverhead + n/rig.BytesPerToken, len(a.Content())/rig.BytesPerToken + 1
}
