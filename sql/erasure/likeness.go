package erasure

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ebb/memory/classify"
	"ebb/memory/dates"
	"ebb/memory/text"
)

// A text repeats a saying when it has most of its character trigrams, and all of its numbers.
const (
	saidShare    = 0.75
	aboutShare   = 0.4 // share of a message's clause in a memory, for the clause to be its source
	minSayingHan = 5   // characters of a saying with Chinese in it
	minSaying    = 10  // characters of another
	maxPieces    = 64  // pieces that sessions are searched for
)

// likeness finds texts that repeat others.
type likeness struct {
	marks   map[string]bool
	words   []string         // searched for anywhere
	sayings []saying         // repeated with other words around them, or approximately
	having  map[string][]int // sayings by trigram
}

func newLikeness() likeness { return likeness{marks: map[string]bool{}, having: map[string][]int{}} }

// saying is a text for comparison.
type saying struct {
	text    string // folded
	grams   int
	numbers []string
}

// learn adds a text by its marks, or as a whole when it has none.
func (l *likeness) learn(text string) {
	before := len(l.marks)
	marksOf(text, l.marks)
	if text = strings.TrimSpace(text); len(l.marks) == before && utf8.RuneCountInString(text) >= minWhole {
		l.words = append(l.words, text)
	}
}

// say adds a text for approximate comparison, without the dates that were added to it.
func (l *likeness) say(said string) {
	said = strings.TrimSpace(text.Fold(dates.Strip(classify.TrimLead(said))))
	if utf8.RuneCountInString(said) < leastSaid(said) {
		return
	}
	grams := gramsOf(said)
	for g := range grams {
		l.having[g] = append(l.having[g], len(l.sayings))
	}
	l.sayings = append(l.sayings, saying{text: said, grams: len(grams), numbers: numbersIn(said)})
}

// identify adds a text by its identifiers.
func (l *likeness) identify(text string) {
	marks := map[string]bool{}
	marksOf(text, marks)
	for m := range marks {
		if strings.ContainsAny(m, "0123456789@") && !strings.ContainsFunc(m, func(r rune) bool { return !identifying(r) }) {
			l.marks[m] = true
		}
	}
}

// source learns the clauses of a message that are about a fact. A message that is the only source and has no such
// clause is learned as a whole, since the fact paraphrases it.
func (l *likeness) source(message, fact string, alone bool) {
	about, found := gramsOf(fact), false
	for _, clause := range strings.FieldsFunc(message, func(r rune) bool { return strings.ContainsRune("，,。.；;！!？?：:\n", r) }) {
		if share(gramsOf(clause), about) >= aboutShare {
			found = true
			l.say(clause)
		}
	}
	if !found && alone {
		l.say(message)
	}
}

// in reports whether a text repeats something.
func (l *likeness) in(text string) bool {
	if text == "" {
		return false
	}
	for _, w := range l.words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return l.marked(text, func(string) bool { return true }) || l.repeatsSaying(text)
}

// far reports whether a text repeats something in another session. An identifier of work is common knowledge there.
func (l *likeness) far(text string) bool { return l.marked(text, personal) || l.repeatsSaying(text) }

func (l *likeness) marked(text string, counts func(mark string) bool) bool {
	if len(l.marks) == 0 || text == "" {
		return false
	}
	own := map[string]bool{}
	marksOf(text, own)
	for m := range own {
		if l.marks[m] && counts(m) {
			return true
		}
	}
	return false
}

// repeatsSaying reports whether a text repeats one of the sayings.
func (l *likeness) repeatsSaying(text string) bool {
	return len(l.repeatedSayings(text)) > 0
}

// repeatedSayings lists the sayings that a text repeats.
func (l *likeness) repeatedSayings(said string) (found []int) {
	if len(l.sayings) == 0 || said == "" {
		return nil
	}
	shared := map[int]int{}
	for g := range gramsOf(said) {
		for _, i := range l.having[g] {
			shared[i]++
		}
	}
	folded := ""
	for i, n := range shared {
		s := &l.sayings[i]
		if float64(n) < saidShare*float64(s.grams) {
			continue
		}
		if folded == "" {
			folded = text.Fold(said)
		}
		if !slices.ContainsFunc(s.numbers, func(n string) bool { return !strings.Contains(folded, n) }) {
			found = append(found, i)
		}
	}
	return found
}

// pieces are strings of which every repeating text has at least one, as far as that is cheap to compute.
func (l *likeness) pieces() []string {
	set := map[string]bool{}
	for m := range l.marks {
		if personal(m) {
			set[m] = true
		}
	}
	for _, s := range l.sayings {
		for _, run := range strings.FieldsFunc(s.text, func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }) {
			rs := []rune(strings.TrimSpace(run))
			least := 6
			if strings.ContainsFunc(run, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
				least = 3
			}
			for size := max(least, len(rs)/4); len(rs) >= least; rs = rs[min(size, len(rs)):] {
				set[string(rs[:min(size, len(rs))])] = true
			}
		}
	}
	list := slices.Sorted(maps.Keys(set))
	return list[:min(len(list), maxPieces)]
}

// personal reports whether an identifier is a person's rather than one of work: a long number, or an address.
func personal(mark string) bool {
	digits := 0
	for _, r := range mark {
		if unicode.IsDigit(r) {
			if digits++; digits >= 6 {
				return true
			}
		} else {
			digits = 0
		}
	}
	return strings.Contains(mark, "@")
}

// sameStatement reports whether two facts say the same; one of them may begin with its author's name.
func sameStatement(a, b string) bool {
	a, b = classify.TrimLead(dates.Strip(a)), classify.TrimLead(dates.Strip(b))
	if text.Normalize(a) == text.Normalize(b) {
		return true
	}
	if !slices.Equal(numbersIn(text.Fold(a)), numbersIn(text.Fold(b))) {
		return false
	}
	x, y := gramsOf(a), gramsOf(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	return 2*len(x) >= len(y) && share(x, y) >= saidShare
}

func leastSaid(text string) int {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		return minSayingHan
	}
	return minSaying
}

// gramsOf is the set of trigrams, without punctuation and blanks.
func gramsOf(said string) map[string]bool {
	rs := []rune(text.Normalize(said))
	set := make(map[string]bool, len(rs))
	for i := range max(0, len(rs)-2) {
		set[string(rs[i:i+3])] = true
	}
	return set
}

// share is the part of a set that is in another one, 0 to 1.
func share(of, in map[string]bool) float64 {
	if len(of) == 0 {
		return 0
	}
	n := 0
	for g := range of {
		if in[g] {
			n++
		}
	}
	return float64(n) / float64(len(of))
}

// numbersIn lists the runs of digits of a folded text, each once.
func numbersIn(text string) []string {
	list := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsDigit(r) })
	slices.Sort(list)
	return slices.Compact(list)
}
