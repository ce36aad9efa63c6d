package chaos

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ebb/bot/openai/openaitest"
	"ebb/cmd/lab/rig"
)

// chaosModel repeats the marks of the messages it answers, saves every fact in its requests, and fails on demand.
type chaosModel struct {
	thread func(asked string) string // the session in which marks were said

	mu      sync.Mutex
	rng     *rand.Rand
	bad     int
	until   time.Time
	now     map[string]modelCall // the latest question by session, until its answer is ready
	asked   map[string]time.Time // first request by process and question
	both    []overlap
	words   map[string]wordSeen            // numbers of facts and reminders, in any request
	results map[string]callResult          // the last result of a call that a request had
	illegal []string                       // faults of requests
	shown   map[string]map[string][]string // words of pictures and files in the last request with a message, by its mark and the process
}

// wordSeen is the last request with a word.
type wordSeen struct {
	process string
	at      time.Time
}

// modelCall is a request for an answer to people.
type modelCall struct {
	process  string
	since    time.Time // the first attempt of the process
	from, to time.Time // until the answer is ready
}

// overlap is a question of one process before the answer to another's in the same session.
type overlap struct {
	thread        string
	first, second modelCall
}

func (o overlap) conversationID() string {
	conversation, _, _ := strings.Cut(o.thread, " ")
	return conversation
}

func newChaosModel(rng *rand.Rand) *chaosModel {
	return &chaosModel{rng: rng, now: map[string]modelCall{}, asked: map[string]time.Time{}, words: map[string]wordSeen{}, shown: map[string]map[string][]string{}, results: map[string]callResult{}}
}

// spoilFor makes half of the answers bad for a while.
func (m *chaosModel) spoilFor(kind int, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bad, m.until = kind, time.Now().Add(d)
}

func (m *chaosModel) copyOverlaps() []overlap {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.both)
}

// inquiry is a process's request, by the marks of its messages.
type inquiry struct {
	process string
	marks   []string
	at      time.Time // first
}

// copyInquiries has no order.
func (m *chaosModel) copyInquiries() []inquiry {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []inquiry
	for id, at := range m.asked {
		process, asked, _ := strings.Cut(id, " ")
		all = append(all, inquiry{process, strings.Fields(asked), at})
	}
	return all
}

// badReply replaces a good answer, or returns it. asked are the marks of its questions; empty for upkeep.
func (m *chaosModel) badReply(r openaitest.Request, asked string, good openaitest.Reply) openaitest.Reply {
	thread := m.thread(asked)
	m.mu.Lock()
	defer m.mu.Unlock()
	id := r.Key + " " + asked
	if m.asked[id].IsZero() {
		m.asked[id] = time.Now()
	}
	call := modelCall{process: r.Key, since: m.asked[id], from: time.Now()}
	bad := m.bad % 7
	upkeep := bad == 6 // flushes and summaries alone are slow
	if time.Now().After(m.until) || upkeep && r.Kind == openaitest.Chat || !upkeep && m.rng.IntN(2) == 0 {
		took := time.Duration(20+m.rng.IntN(200)) * time.Millisecond
		m.noteCall(call, thread, took)
		return good.After(took)
	}
	switch bad {
	case 0:
		return openaitest.Error(500, "", "")
	case 1:
		return openaitest.Error(429, "1", "")
	case 2:
		return openaitest.Hang()
	case 3:
		return good.BreakAfter(2)
	case 4, 6:
		took := time.Duration(m.rng.IntN(3000)) * time.Millisecond
		m.noteCall(call, thread, took)
		return good.After(took)
	}
	return good.EndAfter(3)
}

// noteCall keeps a question until its answer is ready, and finds another process's question in the same session. m.mu
// must be held.
func (m *chaosModel) noteCall(call modelCall, thread string, took time.Duration) {
	if thread == "" {
		return
	}
	call.to = call.from.Add(took)
	if last := m.now[thread]; last.process != call.process && last.to.After(call.from) {
		m.both = append(m.both, overlap{thread, last, call})
	}
	m.now[thread] = call
}

func (m *chaosModel) noteWords(r openaitest.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, msg := range r.Messages {
		for _, word := range markedWords.FindAllString(msg.Content, -1) {
			m.words[word] = wordSeen{r.Key, time.Now()}
		}
	}
}

func (m *chaosModel) wordsSeen() map[string]wordSeen {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.words)
}

// askedWords are the numbers of facts in the messages since the last answer.
func askedWords(messages []openaitest.Message) string {
	var words []string
	for i := len(messages) - 1; i >= 0 && messages[i].Role == "user"; i-- {
		words = append(factWords.FindAllString(messages[i].Content, -1), words...)
	}
	return strings.Join(words, " ")
}

func (m *chaosModel) replyTo(r openaitest.Request) openaitest.Reply {
	m.noteWords(r)
	switch r.Kind {
	case openaitest.Flush:
		if facts := saveFacts(r); r.Offers("memory_save") {
			return m.badReply(r, "", openaitest.Calls("memory_save", facts))
		} else { // the arguments are wanted as text
			return m.badReply(r, "", openaitest.Text(facts))
		}
	case openaitest.Summary:
		return m.badReply(r, "", openaitest.Text(rig.SampleSummary))
	}
	messages := slices.Clone(r.Messages)
	for i := range messages {
		messages[i].Content = beside.ReplaceAllString(messages[i].Content, "")
	}
	m.noteResults(r)
	turn := turnIn(messages)
	asked := withPictures(r, rig.MarksAsked(questionsOf(turn)))
	m.noteContent(r, asked)
	if tool, args := nextCall(turn); r.Offers(tool) {
		return m.badReply(r, asked, openaitest.Calls(tool, args))
	}
	noted := ""
	if words := askedWords(questionsOf(turn)); words != "" {
		noted = "，" + words + " 记下了"
	}
	return m.badReply(r, asked, openaitest.Text(asked+noted+" "+modelWords))
}

// modelWords are in each answer of the model, and in no notice that it failed.
const modelWords = "发布窗口是周五晚上八点到十点，回滚由李娜负责；压测报告下班前会放到群文件里。"

// countText counts tokens by bytes.
func countText(r openaitest.Request, a openaitest.Reply) (prompt, completion int) {
	n := 0
	for _, msg := range r.Messages {
		n += len(msg.Content)
	}
	return rig.PromptOverhead + n/rig.BytesPerToken, len(a.Content())/rig.BytesPerToken + 1
}

var (
	beside     = regexp.MustCompile(`(?s)<<<.*?>>>`) // hits from memory and the log, which are no question
	knownFacts = regexp.MustCompile(`(?s)<<<known (\S+)\n.*?\nknown \S+>>>`)
	toRemember = regexp.MustCompile(`编号(K\d{6})的[^。"\\\n]+`)
)

// saveFacts saves the facts of a transcript, except those that the request lists as known. An instruction may follow the transcript.
func saveFacts(r openaitest.Request) string {
	var facts []map[string]string
	seen := map[string]bool{}
	for _, f := range toRemember.FindAllString(knownFacts.ReplaceAllString(r.Text(), ""), -1) {
		if !seen[f] && len(facts) < maxFactsPerCall {
			seen[f] = true
			facts = append(facts, map[string]string{"content": f, "kind": "fact"})
		}
	}
	args, _ := json.Marshal(map[string]any{"facts": facts, "nothing_to_save": len(facts) == 0}) // maps of strings
	return string(args)
}

const maxFactsPerCall = 20 // as the tool's schema allows
