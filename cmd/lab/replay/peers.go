package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// digest is a summary as a simulated policy makes it: its size, the messages that it goes back to, and the identifiers
// that it still has.
type digest struct {
	block
	told  map[int]bool
	marks []string
}

// Sizes of summaries, in tokens: a quarter of what they tell, up to a cap.
const (
	summaryParts = 4
	rollingCap   = 800 // of one that replaces the last
	segmentCap   = 400 // of one that stands beside the others
)

// simulation is one conversation under a policy that is written down below instead of run.
type simulation struct {
	talk
	*meter
	coin      *rand.Rand
	copied    float64 // probability with which a summary copies an identifier
	summaries []digest
	first     int // the first raw message
	now       int // messages said so far
	made      int // summaries
	waiting   bool
	flushed   int // compactions at the last flush, plus one
	lastAt    time.Time
}

// peer is a policy to simulate. Both functions may be nil.
type peer struct {
	name   string
	group  resultGroup
	before func(*simulation) // a message has come: now is what was said before it
	after  func(*simulation) // it is answered
}

// simulate replays a talk under a policy.
func simulate(t talk, p peer, copied float64) bill {
	s := &simulation{
		talk: t, meter: newMeter(), copied: copied,
		coin: rand.New(rand.NewPCG(7, uint64(len(t.said)))), lastAt: t.said[0].at,
	}
	for i := 0; i+1 < len(t.said); i += 2 {
		s.now, s.waiting = i, true
		if p.before != nil {
			p.before(s)
		}
		s.waiting = false
		s.call(callMain, s.prompt(i+1), 0)
		s.see(t, shown{past: i, raw: i - s.first, rawTotal: tokensOf(s.raw(i)), told: s.told(), holds: s.holds})
		s.now = i + 2
		if p.after != nil {
			p.after(s)
		}
	}
	return s.bill
}

// raw are the messages that are not summarised, up to message end.
func (s *simulation) raw(end int) []block { return s.messages(s.first, end) }

func (s *simulation) messages(from, end int) []block {
	var out []block
	for i := from; i < end; i++ {
		out = append(out, block{fmt.Sprintf("message %d", i), s.said[i].tokens()})
	}
	return out
}

// prompt is a main request whose last message is that before end.
func (s *simulation) prompt(end int) []block {
	out := []block{{"system", systemTokens}}
	for _, d := range s.summaries {
		out = append(out, d.block)
	}
	return append(out, s.raw(end)...)
}

// size is the prompt so far, in tokens.
func (s *simulation) size() int { return tokensOf(s.prompt(s.now)) }

func (s *simulation) told() map[int]bool {
	var sets []map[int]bool
	for _, d := range s.summaries {
		sets = append(sets, d.told)
	}
	return told(sets...)
}

func (s *simulation) holds(mark string) bool {
	return slices.ContainsFunc(s.summaries, func(d digest) bool { return slices.Contains(d.marks, mark) })
}

// tell makes a summary of so many tokens of the messages from first to end and of earlier summaries. It costs nothing yet.
func (s *simulation) tell(tokens, first, end int, earlier ...digest) digest {
	s.made++
	d := digest{block: block{fmt.Sprintf("summary %d", s.made), tokens}, told: map[int]bool{}}
	pass := func(mark string) {
		if mark != "" && s.coin.Float64() < s.copied {
			d.marks = append(d.marks, mark)
		}
	}
	for _, e := range earlier {
		for i := range e.told {
			d.told[i] = true
		}
		for _, mark := range e.marks {
			pass(mark)
		}
	}
	for i := first; i < end; i++ {
		d.told[i] = true
		pass(s.said[i].mark)
	}
	return d
}

// pay accounts a call with a prompt of its own.
func (s *simulation) pay(input []block, output int) {
	s.call(callSummary, chain([]block{{"instruction", instruction}}, input), output)
	s.noteWaiting()
}

// payOnPrefix accounts a call that is the conversation's own request with an instruction behind it.
func (s *simulation) payOnPrefix(kind callKind, end, instruct, output int) {
	s.callAfter(kind, s.last[callMain], chain(s.prompt(end), []block{{"instruction", instruct}}), output)
	s.noteWaiting()
}

func (s *simulation) noteWaiting() {
	if s.waiting {
		s.inline++
	}
}

// roll tells the messages up to end in one summary that replaces the last.
func (s *simulation) roll(end int) {
	source := s.messages(s.first, end)
	var input []block
	size := tokensOf(source) / summaryParts
	for _, d := range s.summaries {
		input, size = append(input, d.block), size+d.tokens
	}
	d := s.tell(min(rollingCap, size), s.first, end, s.summaries...)
	s.pay(chain(input, source), d.tokens)
	s.summaries, s.first, s.epoch = []digest{d}, end, s.epoch+1
}

// windowTail is how many messages the sliding window leaves raw.
const windowTail = 40

// slidingWindow is the fixed window with its seed's numbers: batches of window messages, or after the cooldown as few as
// least, and a tail that stays raw.
func slidingWindow(name string, window, least int, cooldown time.Duration) peer {
	return peer{name: name, after: func(s *simulation) {
		for _, total := range []int{s.now - 1, s.now} { // both messages of the turn are looked at as they come
			end := total - windowTail
			delta := end - s.first
			now := s.said[total-1].at
			if delta >= window || cooldown > 0 && delta >= least && now.Sub(s.lastAt) >= cooldown {
				s.roll(end)
				s.lastAt = now
			}
		}
	}}
}

// picoclaw summarises all but the last four messages once there are more than twenty. More than ten messages are told in
// halves, which are merged: what was summarised before is in neither.
func picoclaw() peer {
	const most, keep, halved = 20, 4, 10
	return peer{
		name: picoclawDefault, group: groupPeer,
		after: func(s *simulation) {
			end := (s.now - keep) / 2 * 2 // a person's message begins what stays
			if s.now-s.first <= most {
				return
			}
			if end-s.first <= halved {
				s.roll(end)
				return
			}
			var halves []digest
			middle := (s.first + end) / 2
			for _, r := range [][2]int{{s.first, middle}, {middle, end}} {
				source := s.messages(r[0], r[1])
				d := s.tell(tokensOf(source)/summaryParts, r[0], r[1])
				s.pay(source, d.tokens)
				halves = append(halves, d)
			}
			d := s.tell(min(rollingCap, halves[0].tokens+halves[1].tokens), end, end, halves...)
			s.pay([]block{halves[0].block, halves[1].block}, d.tokens)
			s.summaries, s.first, s.epoch = []digest{d}, end, s.epoch+1
		},
	}
}

// nanobot's numbers.
const (
	nanobotKeep    = 8
	nanobotRounds  = 5
	nanobotEntries = 50
	nanobotIdle    = 15 * time.Minute
	nanobotDream   = 1500 // tokens of its memory
	nanobotHistory = 8000 // tokens of entries that a prompt shows
)

// entry tells the messages up to end in one entry beside the others, asked for behind the conversation's own prefix. A
// prompt shows the newest entries only.
func (s *simulation) entry(end int) {
	d := s.tell(min(segmentCap, tokensOf(s.messages(s.first, end))/summaryParts), s.first, end)
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

// nanobotTokens is nanobot where its window is what limits it: at the limit it summarises until half of it is free.
func nanobotTokens(limit int) peer {
	shrink := func(s *simulation) {
		if s.size() < limit {
			return
		}
		for range nanobotRounds {
			over := s.size() - limit/2
			end, freed := s.first, 0
			for end+2 <= s.now-nanobotKeep && freed < over {
				freed += tokensOf(s.messages(end, end+2))
				end += 2
			}
			if over <= 0 || end == s.first {
				return
			}
			s.entry(end)
		}
	}
	return peer{name: fmt.Sprintf("nanobot, tokens at %dk", limit/1000), group: groupPeer, before: shrink, after: shrink}
}

// nanobotIdler is nanobot as it comes: all but eight messages are summarised when nobody has spoken for a while. With
// dream its entries become one memory when it is idle for hours.
func nanobotIdler(dream bool) peer {
	p := peer{name: nanobotDefault, group: groupPeer}
	if dream {
		p.name = "nanobot, idle + Dream"
	}
	p.before = func(s *simulation) {
		if s.gap(s.now) < nanobotIdle {
			return
		}
		s.waiting = false // while nobody waits
		if s.now-s.first > nanobotKeep {
			s.entry((s.now - nanobotKeep) / 2 * 2)
		}
		if !dream || len(s.summaries) == 0 || s.gap(s.now) < 2*time.Hour {
			return
		}
		var input []block
		for _, d := range s.summaries {
			input = append(input, d.block)
		}
		d := s.tell(min(nanobotDream, s.summaryTokens()), s.now, s.now, s.summaries...)
		s.pay(input, d.tokens)
		s.summaries = []digest{d}
	}
	return p
}

// The token budget of flush before compaction, in its seed's numbers scaled to a threshold.
const (
	budgetFlush  = 0.9
	budgetShare  = 0.8 // of the threshold: 64,000 of 80,000
	budgetRecent = 0.6
	budgetSlack  = 500
	flushInput   = 500
	flushOutput  = 300
	budgetAt     = 8000 // tokens, for those who act on a budget
)

// pomelobot is flush before compaction as its text has it: memory is flushed at nine tenths of the threshold, once a
// cycle, and at the threshold all but the newest part of the budget is told in one rolling summary.
func pomelobot(threshold int) peer {
	recent := int(budgetRecent * float64(int(budgetShare*float64(threshold))-systemTokens-budgetSlack))
	check := func(s *simulation) {
		size := s.size()
		if float64(size) >= budgetFlush*float64(threshold) && s.flushed <= s.epoch {
			s.payOnPrefix(callFlush, s.now, flushInput, flushOutput)
			s.flushed = s.epoch + 1
		}
		if size < threshold {
			return
		}
		end, kept := s.now, 0
		for end > s.first && kept+s.said[end-1].tokens() <= recent {
			end--
			kept += s.said[end].tokens()
		}
		if end > s.first {
			s.roll(end)
		}
	}
	return peer{
		name: fmt.Sprintf("pomelobot, %dk", threshold/1000), group: groupPeer,
		before: check, after: check,
	}
}

// Names of simulated policies that others are compared with.
const (
	windowSeed       = "sliding window 12/40/900/30"
	windowHalfway    = "sliding window, cooldown >= 6"
	everyMessage     = "a summary for every message"
	nothingAtAll     = "no compaction"
	picoclawDefault  = "picoclaw, default"
	nanobotDefault   = "nanobot, idle"
	pomelobotAtEight = "pomelobot, 8k"
)

// seedCooldown is the time that the sliding window's seed gives.
const seedCooldown = 900 * time.Second

// peers are the simulated policies, baselines first.
func peers() []peer {
	return []peer{
		{name: nothingAtAll},
		slidingWindow(everyMessage, 1, 1, 0),
		slidingWindow(windowSeed, 12, 1, seedCooldown),
		slidingWindow(windowHalfway, 12, 6, seedCooldown),
		picoclaw(),
		nanobotTokens(budgetAt),
		nanobotIdler(false),
		nanobotIdler(true),
		pomelobot(budgetAt),
	}
}
