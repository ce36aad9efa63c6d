package draft

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"ebb/memory/classify"
	"ebb/memory/text"
	"ebb/sessions"
)

// Only people's own words may become a memory outside the session: the others may repeat anything.
type voice int

const (
	own voice = iota
	quoted
	tool
	assistant
)

type sourceText struct {
	voice voice
	seq   int64 // 0 before its turn has committed
	who   sessions.UserID
	at    time.Time
	text  string
	terms map[string]bool
	names map[string]bool // terms of the writer's names: they count as naming themselves
}

type sourceTexts struct {
	texts   []sourceText
	seen    map[string]int // texts with a term
	foreign bool           // a quote's or a tool's words are among them
}

// Speakers may name themselves by every name in the roster.
func readSources(c Chat) sourceTexts {
	ev := sourceTexts{seen: map[string]int{}}
	names := map[sessions.UserID]map[string]bool{}
	for name, id := range c.Roster {
		if names[id] == nil {
			names[id] = map[string]bool{}
		}
		for t := range text.Terms(text.Tokenize(name)) {
			names[id][t] = true
		}
	}
	add := func(v voice, e sessions.Event, body string) {
		if strings.TrimSpace(body) == "" {
			return
		}
		w := sourceText{voice: v, seq: e.Seq, at: e.CreatedAt, text: body, terms: text.Terms(text.Tokenize(body))}
		if v == own {
			w.who = e.SenderID
			w.names = names[e.SenderID]
		}
		for t := range w.terms {
			ev.seen[t]++
		}
		ev.foreign = ev.foreign || v == quoted || v == tool
		ev.texts = append(ev.texts, w)
	}
	for _, e := range c.Said {
		switch e.Role {
		case sessions.RoleUser:
			words, others := OwnWords(e)
			add(own, e, words)
			add(quoted, e, others)
		case sessions.RoleTool:
			add(tool, e, e.Content)
		case sessions.RoleAssistant:
			add(assistant, e, e.Content)
		case sessions.RoleSummary: // repeats the content of other events
		}
	}
	return ev
}

// OwnWords separates a sender's words from the replied message and lines marked as quoted. A scheduled message counts as
// quoted: it repeats words of another day.
func OwnWords(e sessions.Event) (words, others string) {
	if e.IsScheduled() {
		return "", e.Content
	}
	var mine, theirs []string
	text := e.Content
	if e.Message != nil {
		text = e.Message.Text
		if q := e.Message.Quote; q != nil && q.Text != "" {
			theirs = append(theirs, q.Text)
		}
	}
	for line := range strings.Lines(text) {
		switch head := strings.TrimSpace(line); {
		case strings.HasPrefix(head, ">"), strings.HasPrefix(head, "＞"), strings.HasPrefix(head, "[引用"):
			theirs = append(theirs, line)
		default:
			mine = append(mine, line)
		}
	}
	return strings.Join(mine, ""), strings.Join(theirs, "\n")
}

const (
	supportShare = 0.3  // share of the fact's terms
	ownShare     = 0.75 // share of the best foreign text's score, from which a person's own words count as the source
)

type factSource struct {
	sourceText

	found      bool
	start, end int64
}

// The own words of the named speaker come first, and the last of equals, as it is in force.
func (ev sourceTexts) findSource(content string, by sessions.UserID) factSource {
	terms := text.Terms(text.Tokenize(content))
	best := map[voice]int{}
	score := map[voice]float64{}
	named, most := -1, 0.0
	for i, w := range ev.texts {
		s, ok := ev.scoreText(w, terms)
		if !ok {
			continue
		}
		if s >= score[w.voice] {
			best[w.voice], score[w.voice] = i, s
		}
		if w.voice == own && by != "" && w.who == by && s >= most {
			named, most = i, s
		}
	}
	foreign := quoted
	if score[tool] > score[quoted] {
		foreign = tool
	}
	switch {
	case score[own] > 0 && score[own] >= ownShare*score[foreign]:
		if named >= 0 && most >= ownShare*score[own] {
			return ev.addNeighbours(named, terms)
		}
		return ev.addNeighbours(best[own], terms)
	case score[foreign] > 0:
		return ev.addNeighbours(best[foreign], terms)
	case score[assistant] > 0:
		return ev.addNeighbours(best[assistant], terms)
	}
	return factSource{}
}

// Rare terms weigh more, and those with digits twice. With too few it is not ok. The writer's names count only with
// other words, for a nick may be any text.
func (ev sourceTexts) scoreText(w sourceText, terms map[string]bool) (score float64, ok bool) {
	held, named := 0, 0
	for t := range terms {
		switch {
		case w.terms[t]:
			held++
		case w.names[t]:
			named++
		}
	}
	rest := len(terms) - named
	if held == 0 || 2*named > len(terms) || float64(held) < supportShare*float64(rest) || held+named < 2 && len(terms) > 2 {
		return 0, false
	}
	for _, t := range slices.Sorted(maps.Keys(terms)) { // sums in another order differ, and equals would not be equal
		if !w.terms[t] && !w.names[t] {
			continue
		}
		weight := math.Log(1 + float64(len(ev.texts)+1)/(float64(ev.seen[t])+0.5))
		if text.HasDigit(t) {
			weight *= 2
		}
		score += weight
	}
	return score, true
}

// outweighsRetold reports whether people's words have as many of a fact's terms as each retold line. It is for facts without
// support: paraphrases and translations share few terms.
func (ev sourceTexts) outweighsRetold(content string, retold []string) bool {
	terms := text.Terms(text.Tokenize(content))
	held := func(in, names map[string]bool) (n int) {
		for t := range terms {
			switch {
			case !in[t] && !names[t]:
			case text.HasDigit(t):
				n += 2
			default:
				n++
			}
		}
		return n
	}
	said, restated := 0, 0
	for _, w := range ev.texts {
		if w.voice == own {
			said = max(said, held(w.terms, w.names))
		}
	}
	for _, body := range retold {
		for line := range strings.Lines(body) {
			restated = max(restated, held(text.Terms(text.Tokenize(line)), nil))
		}
	}
	return said > 0 && said >= restated
}

// near is in events: question and answer are parts of one fact.
const near = 3

// Neighbours have the same voice and missing terms.
func (ev sourceTexts) addNeighbours(at int, terms map[string]bool) factSource {
	w := ev.texts[at]
	s := factSource{sourceText: w, found: true, start: w.seq, end: w.seq}
	if w.seq == 0 {
		return s
	}
	for _, other := range ev.texts {
		if other.seq == 0 || other.voice != w.voice || other.seq < w.seq-near || other.seq > w.seq+near {
			continue
		}
		more := 0
		for t := range terms {
			if other.terms[t] && !w.terms[t] {
				more++
			}
		}
		if 4*more >= len(terms) && more > 0 {
			s.start, s.end = min(s.start, other.seq), max(s.end, other.seq)
		}
	}
	return s
}

// The message that the turn answers counts too.
func (ev sourceTexts) asksToRemember(s factSource) bool {
	if s.found && s.voice == own && classify.AsksToRemember(s.text) {
		return true
	}
	for _, w := range ev.texts {
		if w.voice == own && w.seq == 0 && classify.AsksToRemember(w.text) {
			return true
		}
	}
	return false
}
