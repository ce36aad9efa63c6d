package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"ebb/compaction/identify"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// countingModel answers one conversation as recorded, writes summaries by a rule, and accounts the engine's requests.
type countingModel struct {
	recordedTalk
	most   int     // tokens of a summary that does not continue another
	copied float64 // probability with which a summary copies an identifier

	mu        sync.Mutex
	meter     *billMeter
	coin      *rand.Rand
	next      int  // the current question
	waiting   bool // a person waits for the answer
	digests   []summaryRecord
	reference string // summaries and pinned memory of the last request
	wrong     error  // the first request with other messages than the conversation's
}

type summaryRecord struct {
	lines   []string
	sources map[int]bool
	keys    []string
}

func newCountingModel(t recordedTalk, most int, copied float64) *countingModel {
	return &countingModel{
		recordedTalk: t, most: most, copied: copied, meter: newMeter(),
		coin: rand.New(rand.NewPCG(11, uint64(len(t.said)))),
	}
}

func (m *countingModel) expectMessage(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next, m.waiting = i, true
}

// From now on requests delay no reply.
func (m *countingModel) noteAnswered() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = false
}

func (m *countingModel) finalBill() (policyBill, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.meter.policyBill, m.wrong
}

// Generate implements llm.Model. A flush is forced to call its tool, and a summary is offered none.
func (m *countingModel) Generate(_ context.Context, r llm.Request) (llm.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(r.Messages) < 2 {
		return llm.Response{}, &llm.CallError{Class: llm.Malformed, Model: "counting", Err: errors.New("a request of less than two messages")}
	}
	switch {
	case r.Force != "":
		return m.replyFlush(r)
	case len(r.Tools) == 0:
		return m.writeSummary(r)
	}
	return m.replyChat(r), nil
}

// The reference message grows at its end: it has several blocks.
func blocksOf(messages []llm.Message) []promptBlock {
	blocks := []promptBlock{{"system " + messages[0].Content, systemTokens}}
	for _, msg := range messages[1:] {
		if !isReference(msg) {
			blocks = append(blocks, promptBlock{msg.Role + " " + msg.Content, blockTokens(msg.Content)})
			continue
		}
		for i, part := range strings.Split(msg.Content, "\n<<<") {
			if i == 0 {
				blocks = append(blocks, promptBlock{part, blockTokens(part)})
				continue
			}
			blocks = append(blocks, promptBlock{part, blockTokens(part) - blockOverhead})
		}
	}
	return blocks
}

// Only the message with summaries and pinned memory has fences.
func isReference(msg llm.Message) bool {
	return msg.Role == "user" && strings.Contains(msg.Content, "\n<<<")
}

func (m *countingModel) replyChat(r llm.Request) llm.Response {
	blocks := blocksOf(r.Messages)
	before := m.meter.spend[callMain]
	m.meter.recordCall(callMain, blocks, 0)
	reference, raw := "", r.Messages[1:]
	if isReference(raw[0]) {
		reference, raw = raw[0].Content, raw[1:]
	}
	if reference != m.reference {
		m.reference, m.meter.epoch = reference, m.meter.epoch+1
	}
	s := shownMessages{past: m.next, summarized: m.summarizedIn(reference), holds: func(mark string) bool { return strings.Contains(reference, mark) }}
	// The question is last; lines with the time stand between the messages.
	for i := len(raw) - 2; i >= 0; i-- {
		at := m.next - s.raw - 1
		if at >= 0 && raw[i].Content == m.said[at].text {
			s.raw, s.rawTotal = s.raw+1, s.rawTotal+m.said[at].tokenCount()
			continue
		}
		if !strings.HasPrefix(raw[i].Content, "[") {
			m.wrong = errors.Join(m.wrong, fmt.Errorf("%s: the request for message %d shows %q as message %d", m.name, m.next, raw[i].Content, at))
			break
		}
	}
	if last := raw[len(raw)-1].Content; last != m.said[m.next].text && m.wrong == nil {
		m.wrong = fmt.Errorf("%s: the request for message %d asks %q", m.name, m.next, last)
	}
	m.meter.recordShown(m.recordedTalk, s)
	after := m.meter.spend[callMain]
	reply := m.said[m.next+1].text
	return llm.Response{
		Text: reply, Finish: llm.FinishStop, Model: "counting",
		Usage: sessions.Usage{
			Prompt: after.prompt - before.prompt, Cached: after.cached - before.cached, Completion: blockTokens(reply) - blockOverhead,
		},
	}
}

func (m *countingModel) recordAside(kind callKind, r llm.Request, output string) sessions.Usage {
	var blocks []promptBlock
	for _, msg := range r.Messages {
		blocks = append(blocks, promptBlock{msg.Role + " " + msg.Content, blockTokens(msg.Content)})
	}
	if m.waiting {
		m.meter.inline++
	}
	before := m.meter.spend[kind]
	m.meter.recordCall(kind, blocks, blockTokens(output)-blockOverhead)
	after := m.meter.spend[kind]
	return sessions.Usage{Prompt: after.prompt - before.prompt, Cached: after.cached - before.cached, Completion: after.output - before.output}
}

var (
	digestTag   = regexp.MustCompile(`Account no\. (\d+) of what was said`)
	headingLine = regexp.MustCompile(`(?m)^(#+ [^(\n]*[^(\n ])`)
	fenced      = regexp.MustCompile(`(?s)<<<([a-z-]+) \w+\n(.*?)\n[a-z-]+ \w+>>>`)
	targetWords = regexp.MustCompile(`(?:About |约 ?)(\d+)`)
)

func (m *countingModel) summarizedIn(text string) map[int]bool {
	var sets []map[int]bool
	for _, d := range m.digestsIn(text) {
		sets = append(sets, d.sources)
	}
	return unionSets(sets...)
}

func (m *countingModel) digestsIn(text string) []summaryRecord {
	var out []summaryRecord
	for _, tag := range digestTag.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(tag[1]); err == nil && n > 0 && n <= len(m.digests) {
			out = append(out, m.digests[n-1])
		}
	}
	return out
}

// transcriptLine is one event as models see it.
type transcriptLine struct {
	N               int64
	Who, Role, Text string
}

func transcriptIn(text string) []transcriptLine {
	var out []transcriptLine
	for line := range strings.SplitSeq(text, "\n") {
		var l transcriptLine
		if strings.HasPrefix(line, `{"n":`) && json.Unmarshal([]byte(line), &l) == nil && l.Role != string(sessions.RoleSummary) {
			out = append(out, l)
		}
	}
	return out
}

// A request about another conversation belongs to another bill.
func (m *countingModel) checkOwn(lines []transcriptLine) {
	for _, l := range lines {
		if i := int(l.N) - 1; m.wrong == nil && (i < 0 || i >= len(m.said) || m.said[i].text != l.Text) {
			m.wrong = fmt.Errorf("%s: a request about another conversation shows %q as message %d", m.name, l.Text, i)
		}
	}
}

func (m *countingModel) repairSummary(r llm.Request, draft, input string) (llm.Response, error) {
	text := strings.TrimRight(draft, "\n")
	var missing []string
	for line := range strings.SplitSeq(input, "\n") {
		var finding struct{ Missing string }
		if json.Unmarshal([]byte(line), &finding) == nil && finding.Missing != "" {
			missing = append(missing, finding.Missing)
		}
	}
	if more := m.copyMarks(missing); len(more) > 0 {
		text += "\n" + strings.Join(more, ", ")
	}
	for _, tag := range digestTag.FindAllStringSubmatch(draft, -1) {
		if n, err := strconv.Atoi(tag[1]); err == nil && n > 0 && n <= len(m.digests) {
			m.digests[n-1].keys = append(m.digests[n-1].keys, missing...)
		}
	}
	return llm.Response{Text: text, Finish: llm.FinishStop, Model: "counting", Usage: m.recordAside(callSummary, r, text)}, nil
}

// writeSummary writes a quarter of its input's length and copies identifiers. A summary that continues or joins
// others has their length and the quarter, up to a cap.
func (m *countingModel) writeSummary(r llm.Request) (llm.Response, error) {
	system, input := r.Messages[0].Content, r.Messages[len(r.Messages)-1].Content
	for _, part := range fenced.FindAllStringSubmatch(input, -1) {
		if part[1] == "draft" {
			return m.repairSummary(r, part[2], input)
		}
	}
	earlier, lines := m.digestsIn(input), transcriptIn(input)
	m.checkOwn(lines)
	d := summaryRecord{sources: map[int]bool{}}
	size, source, limit := 0, 0, m.most
	for _, e := range earlier {
		limit = rollingCap
		d.lines, d.sources = append(d.lines, e.lines...), unionSets(d.sources, e.sources)
		d.keys = append(d.keys, e.keys...)
		size += blockTokens(strings.Join(e.lines, "\n") + strings.Join(e.keys, ", "))
	}
	for _, l := range lines {
		if m.sourcesBefore(int(l.N) - 1) {
			limit = rollingCap // summarized again from the messages
		}
		d.sources[int(l.N)-1] = true
		source += blockTokens(l.Text)
		d.keys = append(d.keys, keysOf(l)...)
	}
	if target := targetWords.FindStringSubmatch(system); target != nil {
		if n, err := strconv.Atoi(target[1]); err == nil && n > 0 {
			limit = min(limit, n)
		}
	}
	size = min(limit, size+source/summaryParts)
	d.keys = m.copyMarks(d.keys)
	for _, l := range lines {
		d.lines = append(d.lines, shortenMessage(l, size-blockTokens(strings.Join(d.keys, ", ")), source))
	}
	m.digests = append(m.digests, d)
	text := d.writeText(len(m.digests), headingLine.FindAllString(system, -1), size)
	return llm.Response{Text: text, Finish: llm.FinishStop, Model: "counting", Usage: m.recordAside(callSummary, r, text)}, nil
}

func (m *countingModel) sourcesBefore(i int) bool {
	return slices.ContainsFunc(m.digests, func(d summaryRecord) bool { return d.sources[i] })
}

func (m *countingModel) copyMarks(keys []string) []string {
	var out []string
	for _, k := range keys {
		if !slices.Contains(out, k) && m.coin.Float64() < m.copied {
			out = append(out, k)
		}
	}
	return out
}

// shortenMessage leaves out possible parts of identifiers.
func shortenMessage(l transcriptLine, size, source int) string {
	room := len(l.Text) * max(0, size) / max(1, source)
	var b strings.Builder
	for word := range strings.FieldsSeq(l.Text) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsDigit(r) || strings.ContainsRune("/@`%$#[]():", r) }) {
			continue
		}
		if b.Len() > 0 && b.Len()+len(word) > room {
			break
		}
		b.WriteString(word + " ")
	}
	return strings.TrimSpace(b.String())
}

// writeText takes about size tokens. It leaves out the oldest lines first.
func (a summaryRecord) writeText(number int, headings []string, size int) string {
	if len(headings) == 0 {
		headings = []string{"## What was said"}
	}
	head := fmt.Sprintf("Account no. %d of what was said\n%s\n", number, headings[0])
	tail := "\n" + strings.Join(headings[1:], "\nnone\n")
	if len(a.keys) > 0 {
		tail += "\n" + strings.Join(a.keys, ", ")
	}
	lines := a.lines
	body := strings.Join(lines, "; ")
	for len(lines) > 1 && len(head)+len(body)+len(tail) > size*bytesPerBlock {
		lines = lines[1:]
		body = strings.Join(lines, "; ")
	}
	return head + body + tail
}

// replyFlush saves about as much as such a call's usual output.
func (m *countingModel) replyFlush(r llm.Request) (llm.Response, error) {
	const facts = 6
	lines := transcriptIn(r.Messages[len(r.Messages)-1].Content)
	m.checkOwn(lines)
	s := draft.Save{Nothing: len(lines) == 0}
	for i := range min(facts, len(lines)) {
		l := lines[i*len(lines)/facts]
		s.Facts = append(s.Facts, memory.Fact{Content: l.Who + " said: " + tokens.HeadTail(l.Text, 120), Kind: memory.KindFact})
	}
	arguments, err := json.Marshal(s)
	if err != nil {
		return llm.Response{}, fmt.Errorf("writing what to save: %w", err)
	}
	calls := []sessions.ToolCall{{ID: "c1", Name: r.Force, Arguments: string(arguments)}}
	return llm.Response{
		ToolCalls: calls, Finish: llm.FinishTools, Model: "counting", Usage: m.recordAside(callFlush, r, string(arguments)),
	}, nil
}

func keysOf(l transcriptLine) []string {
	var out []string
	if nick, _, _ := strings.Cut(l.Who, "("); nick != "" {
		out = append(out, strings.TrimSpace(nick))
	}
	for _, id := range identify.Find(l.Text) {
		out = append(out, id.Text)
	}
	return out
}
