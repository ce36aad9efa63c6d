package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

type peerSummary struct {
	promptBlock
	sources map[int]bool
	marks   []string
}

// Summaries have a quarter of their sources' tokens, up to a cap.
const (
	summaryParts = 4
	rollingCap   = 800 // replaces the last
	segmentCap   = 400 // stands beside the others
)

type simulation struct {
	recordedTalk
	*billMeter
	coin      *rand.Rand
	copied    float64 // probability with which a summary copies an identifier
	summaries []peerSummary
	first     int // the first raw message
	now       int
	made      int
	waiting   bool
	flushed   int // compactions at the last flush, plus one
	lastAt    time.Time
}

// Both functions may be nil.
type peerPolicy struct {
	name   string
	group  resultGroup
	before func(*simulation) // before an answer: now excludes the new message
	after  func(*simulation) // after it
}

func simulateTalk(t recordedTalk, p peerPolicy, copied float64) policyBill {
	s := &simulation{
		recordedTalk: t, billMeter: newMeter(), copied: copied,
		coin: rand.New(rand.NewPCG(7, uint64(len(t.said)))), lastAt: t.said[0].at,
	}
	for i := 0; i+1 < len(t.said); i += 2 {
		s.now, s.waiting = i, true
		if p.before != nil {
			p.before(s)
		}
		s.waiting = false
		s.recordCall(callMain, s.buildPrompt(i+1), 0)
		s.recordShown(t, shownMessages{past: i, raw: i - s.first, rawTotal: tokensOf(s.rawBlocks(i)), summarized: s.summarizedSet(), holds: s.hasMark})
		s.now = i + 2
		if p.after != nil {
			p.after(s)
		}
	}
	return s.policyBill
}

func (s *simulation) rawBlocks(end int) []promptBlock { return s.messageBlocks(s.first, end) }

func (s *simulation) messageBlocks(from, end int) []promptBlock {
	var out []promptBlock
	for i := from; i < end; i++ {
		out = append(out, promptBlock{fmt.Sprintf("message %d", i), s.said[i].tokenCount()})
	}
	return out
}

func (s *simulation) buildPrompt(end int) []promptBlock {
	out := []promptBlock{{"system", systemTokens}}
	for _, d := range s.summaries {
		out = append(out, d.promptBlock)
	}
	return append(out, s.rawBlocks(end)...)
}

func (s *simulation) promptSize() int { return tokensOf(s.buildPrompt(s.now)) }

func (s *simulation) summarizedSet() map[int]bool {
	var sets []map[int]bool
	for _, d := range s.summaries {
		sets = append(sets, d.sources)
	}
	return unionSets(sets...)
}

func (s *simulation) hasMark(mark string) bool {
	return slices.ContainsFunc(s.summaries, func(d peerSummary) bool { return slices.Contains(d.marks, mark) })
}

// makeSummary summarizes messages from first to end and earlier summaries, without the cost.
func (s *simulation) makeSummary(tokens, first, end int, earlier ...peerSummary) peerSummary {
	s.made++
	d := peerSummary{promptBlock: promptBlock{fmt.Sprintf("summary %d", s.made), tokens}, sources: map[int]bool{}}
	pass := func(mark string) {
		if mark != "" && s.coin.Float64() < s.copied {
			d.marks = append(d.marks, mark)
		}
	}
	for _, e := range earlier {
		for i := range e.sources {
			d.sources[i] = true
		}
		for _, mark := range e.marks {
			pass(mark)
		}
	}
	for i := first; i < end; i++ {
		d.sources[i] = true
		pass(s.said[i].mark)
	}
	return d
}

func (s *simulation) payCall(input []promptBlock, output int) {
	s.recordCall(callSummary, joinBlocks([]promptBlock{{"instruction", instruction}}, input), output)
	s.noteWaiting()
}

// payOnPrefix accounts the conversation's request with an instruction behind it.
func (s *simulation) payOnPrefix(kind callKind, end, instruct, output int) {
	s.callAfter(kind, s.last[callMain], joinBlocks(s.buildPrompt(end), []promptBlock{{"instruction", instruct}}), output)
	s.noteWaiting()
}

func (s *simulation) noteWaiting() {
	if s.waiting {
		s.inline++
	}
}

func (s *simulation) rollSummary(end int) {
	source := s.messageBlocks(s.first, end)
	var input []promptBlock
	size := tokensOf(source) / summaryParts
	for _, d := range s.summaries {
		input, size = append(input, d.promptBlock), size+d.tokens
	}
	d := s.makeSummary(min(rollingCap, size), s.first, end, s.summaries...)
	s.payCall(joinBlocks(input, source), d.tokens)
	s.summaries, s.first, s.epoch = []peerSummary{d}, end, s.epoch+1
}

const windowTail = 40

// slidingWindow takes batches of window messages, or after the cooldown as few as least, and keeps a raw tail.
func slidingWindow(name string, window, least int, cooldown time.Duration) peerPolicy {
	return peerPolicy{name: name, after: func(s *simulation) {
		for _, total := range []int{s.now - 1, s.now} { // both messages of the turn are looked at as they come
			end := total - windowTail
			delta := end - s.first
			now := s.said[total-1].at
			if delta >= window || cooldown > 0 && delta >= least && now.Sub(s.lastAt) >= cooldown {
				s.rollSummary(end)
				s.lastAt = now
			}
		}
	}}
}

// picoclawPolicy summarizes all but the last four of more than twenty messages. It summarizes more than ten in halves
// and merges these; the merge has no earlier summary.
func picoclawPolicy() peerPolicy {
	const most, keep, halved = 20, 4, 10
	return peerPolicy{
		name: picoclawDefault, group: groupPeer,
		after: func(s *simulation) {
			end := (s.now - keep) / 2 * 2 // a person's message begins what stays
			if s.now-s.first <= most {
				return
			}
			if end-s.first <= halved {
				s.rollSummary(end)
				return
			}
			var halves []peerSummary
			middle := (s.first + end) / 2
			for _, r := range [][2]int{{s.first, middle}, {middle, end}} {
				source := s.messageBlocks(r[0], r[1])
				d := s.makeSummary(tokensOf(source)/summaryParts, r[0], r[1])
				s.payCall(source, d.tokens)
				halves = append(halves, d)
			}
			d := s.makeSummary(min(rollingCap, halves[0].tokens+halves[1].tokens), end, end, halves...)
			s.payCall([]promptBlock{halves[0].promptBlock, halves[1].promptBlock}, d.tokens)
			s.summaries, s.first, s.epoch = []peerSummary{d}, end, s.epoch+1
		},
	}
}

const (
	nanobotKeep    = 8
	nanobotRounds  = 5
	nanobotEntries = 50
	nanobotIdle    = 15 * time.Minute
	nanobotDream   = 1500 // tokens of memory
	nanobotHistory = 8000 // tokens of entries that a prompt shows
)

// A prompt shows the newest entries only.
func (s *simulation) addEntry(end int) {
	d := s.makeSummary(min(segmentCap, tokensOf(s.messageBlocks(s.first, end))/summaryParts), s.first, end)
	s.payOnPrefix(callSummary, s.now, instruction, d.tokens)
	s.summaries, s.first, s.epoch = append(s.summaries, d), end, s.epoch+1
	for len(s.summaries) > nanobotEntries || len(s.summaries) > 1 && s.summaryTokens() > nanobotHistory {
		s.summaries = s.summaries[1:]
	}
}

func (s *simulation) summaryTokens() int {
	n := 0
	for _, d := range s.summaries {
		n += d.tokens
	}
	return n
}

// nanobotTokens is limited by its window: at the limit it summarizes until half of it is free.
func nanobotTokens(limit int) peerPolicy {
	shrink := func(s *simulation) {
		if s.promptSize() < limit {
			return
		}
		for range nanobotRounds {
			over := s.promptSize() - limit/2
			end, freed := s.first, 0
			for end+2 <= s.now-nanobotKeep && freed < over {
				freed += tokensOf(s.messageBlocks(end, end+2))
				end += 2
			}
			if over <= 0 || end == s.first {
				return
			}
			s.addEntry(end)
		}
	}
	return peerPolicy{name: fmt.Sprintf("nanobot, tokens at %dk", limit/1000), group: groupPeer, before: shrink, after: shrink}
}

// nanobotIdler is nanobot by default: it summarizes all but eight messages after an idle time. With dream its entries
// become one memory after hours.
func nanobotIdler(dream bool) peerPolicy {
	p := peerPolicy{name: nanobotDefault, group: groupPeer}
	if dream {
		p.name = "nanobot, idle + Dream"
	}
	p.before = func(s *simulation) {
		if s.gapBefore(s.now) < nanobotIdle {
			return
		}
		s.waiting = false // without delay for a person
		if s.now-s.first > nanobotKeep {
			s.addEntry((s.now - nanobotKeep) / 2 * 2)
		}
		if !dream || len(s.summaries) == 0 || s.gapBefore(s.now) < 2*time.Hour {
			return
		}
		var input []promptBlock
		for _, d := range s.summaries {
			input = append(input, d.promptBlock)
		}
		d := s.makeSummary(min(nanobotDream, s.summaryTokens()), s.now, s.now, s.summaries...)
		s.payCall(input, d.tokens)
		s.summaries = []peerSummary{d}
	}
	return p
}

// The numbers of flush before compaction, scaled to a threshold.
const (
	budgetFlush  = 0.9
	budgetShare  = 0.8 // share of the threshold: 64,000 of 80,000
	budgetRecent = 0.6
	budgetSlack  = 500
	flushInput   = 500
	flushOutput  = 300
	budgetAt     = 8000 // tokens of policies with a budget
)

// pomelobotPolicy is flush before compaction: memory is flushed once a cycle, at nine tenths of the threshold. At the
// threshold one rolling summary takes all but the newest part of the budget.
func pomelobotPolicy(threshold int) peerPolicy {
	recent := int(budgetRecent * float64(int(budgetShare*float64(threshold))-systemTokens-budgetSlack))
	check := func(s *simulation) {
		size := s.promptSize()
		if float64(size) >= budgetFlush*float64(threshold) && s.flushed <= s.epoch {
			s.payOnPrefix(callFlush, s.now, flushInput, flushOutput)
			s.flushed = s.epoch + 1
		}
		if size < threshold {
			return
		}
		end, kept := s.now, 0
		for end > s.first && kept+s.said[end-1].tokenCount() <= recent {
			end--
			kept += s.said[end].tokenCount()
		}
		if end > s.first {
			s.rollSummary(end)
		}
	}
	return peerPolicy{
		name: fmt.Sprintf("pomelobot, %dk", threshold/1000), group: groupPeer,
		before: check, after: check,
	}
}

const (
	windowSeed       = "sliding window 12/40/900/30"
	windowHalfway    = "sliding window, cooldown >= 6"
	everyMessage     = "a summary for every message"
	nothingAtAll     = "no compaction"
	picoclawDefault  = "picoclaw, default"
	nanobotDefault   = "nanobot, idle"
	pomelobotAtEight = "pomelobot, 8k"
)

const seedCooldown = 900 * time.Second

// The baselines come first.
func peerPolicies() []peerPolicy {
	return []peerPolicy{
		{name: nothingAtAll},
		slidingWindow(everyMessage, 1, 1, 0),
		slidingWindow(windowSeed, 12, 1, seedCooldown),
		slidingWindow(windowHalfway, 12, 6, seedCooldown),
		picoclawPolicy(),
		nanobotTokens(budgetAt),
		nanobotIdler(false),
		nanobotIdler(true),
		pomelobotPolicy(budgetAt),
	}
}
