package main

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"sync"
	"time"

	"ebb/bot/openai/openaitest"
)

// chaosModel is a model that repeats the marks of what it answers, saves every fact that it is shown, and fails where it
// is told to.
type chaosModel struct {
	place func(asked string) (conversation string)

	mu    sync.Mutex
	rng   *rand.Rand
	bad   int
	until time.Time
	now   map[string]modelCall // by conversation: the latest question, while its answer is on the way
	both  []overlap
}

// modelCall is one question to the model for an answer to people.
type modelCall struct {
	process  string
	from, to time.Time // when its answer is ready
}

// overlap is a question that came from one process while another's for the same conversation had no answer yet.
type overlap struct {
	conversation  string
	first, second modelCall
}

func newChaosModel(rng *rand.Rand) *chaosModel {
	return &chaosModel{rng: rng, now: map[string]modelCall{}}
}

// spoil makes half of the answers bad for a while.
func (m *chaosModel) spoil(kind int, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bad, m.until = kind, time.Now().Add(d)
}

// slip is a bad answer in place of a good one, or not. conversation is whom a good one is for; empty for nobody.
func (m *chaosModel) slip(r openaitest.Request, conversation string, good openaitest.Reply) openaitest.Reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Now().After(m.until) || m.rng.IntN(2) == 0 {
		took := time.Duration(20+m.rng.IntN(200)) * time.Millisecond
		if conversation != "" {
			a := modelCall{process: r.Key, from: time.Now(), to: time.Now().Add(took)}
			if last := m.now[conversation]; last.process != a.process && last.to.After(a.from) {
				m.both = append(m.both, overlap{conversation, last, a})
			}
			m.now[conversation] = a
		}
		return good.After(took)
	}
	switch m.bad % 6 {
	case 0:
		return openaitest.Error(500, "", "")
	case 1:
		return openaitest.Error(429, "1", "")
	case 2:
		return openaitest.Hang()
	case 3:
		return good.BreakAfter(2)
	case 4:
		return good.After(time.Duration(m.rng.IntN(3000)) * time.Millisecond)
	}
	return good.EndAfter(3)
}

func (m *chaosModel) reply(r openaitest.Request) openaitest.Reply {
	switch r.Kind {
	case openaitest.Flush:
		return m.slip(r, "", openaitest.Calls("memory_save", saveFacts(r)))
	case openaitest.Summary:
		return m.slip(r, "", openaitest.Text(benchSummary))
	}
	asked := askedMarks(r.Messages)
	return m.slip(r, m.place(asked), openaitest.Text(asked+" 发布窗口是周五晚上八点到十点，回滚由李娜负责；压测报告下班前会放到群文件里。"))
}

// countText counts tokens by the bytes.
func countText(r openaitest.Request, a openaitest.Reply) (prompt, completion int) {
	n := 0
	for _, msg := range r.Messages {
		n += len(msg.Content)
	}
	return promptOverhead + n/bytesPerToken, len(a.Content())/bytesPerToken + 1
}

var (
	knownFacts = regexp.MustCompile(`(?s)<<<known (\S+)\n.*?\nknown \S+>>>`)
	toRemember = regexp.MustCompile(`编号(K\d{6})：[^。"\\\n]+`)
)

// saveFacts is the call that saves what a transcript says is to be remembered, but for what the model is told is known.
func saveFacts(r openaitest.Request) string {
	var facts []map[string]string
	seen := map[string]bool{}
	for _, f := range toRemember.FindAllString(knownFacts.ReplaceAllString(r.Last().Content, ""), -1) {
		if !seen[f] && len(facts) < maxFactsPerCall {
			seen[f] = true
			facts = append(facts, map[string]string{"content": f, "kind": "fact"})
		}
	}
	args, _ := json.Marshal(map[string]any{"facts": facts, "nothing_to_save": len(facts) == 0}) // maps of strings
	return string(args)
}

const maxFactsPerCall = 20 // as the tool's schema allows
