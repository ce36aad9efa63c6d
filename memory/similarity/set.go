package similarity

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
	saidShare  = 0.75
	aboutShare = 0.4 // share of a clause of a message in a memory, for the clause to be its source
	maxPieces  = 64
)

// Set finds texts that repeat the added ones.
type Set struct {
	marks   map[string]bool
	words   []string         // searched for anywhere
	sayings []saying         // repeated with other words around them, or approximately
	having  map[string][]int // indexes of sayings by trigram
}

// New returns an empty set.
func New() Set { return Set{marks: map[string]bool{}, having: map[string][]int{}} }

type saying struct {
	text    string // folded
	grams   int
	numbers []string
}

// Add adds a text by its marks, or as a whole if it has none.
func (l *Set) Add(text string) {
	before := len(l.marks)
	MarksOf(text, l.marks)
	if text = strings.TrimSpace(text); len(l.marks) == before && utf8.RuneCountInString(text) >= MinWhole {
		l.words = append(l.words, text)
	}
}

// AddSaying adds a text for approximate comparison, without added dates. It returns false for a text too short to
// identify.
func (l *Set) AddSaying(said string) bool {
	said = strings.TrimSpace(text.Fold(dates.Strip(classify.TrimLead(said))))
	if utf8.RuneCountInString(said) < leastSaid(said) {
		return false
	}
	grams := trigramsOf(said)
	for g := range grams {
		l.having[g] = append(l.having[g], len(l.sayings))
	}
	l.sayings = append(l.sayings, saying{text: said, grams: len(grams), numbers: numbersIn(said)})
	return true
}

// AddIdentifiers adds a text by its identifiers.
func (l *Set) AddIdentifiers(text string) {
	marks := map[string]bool{}
	MarksOf(text, marks)
	for m := range marks {
		if strings.ContainsAny(m, "0123456789@") && !strings.ContainsFunc(m, func(r rune) bool { return !isIdentifying(r) }) {
			l.marks[m] = true
		}
	}
}

// AddSource adds the clauses of a message that are about a fact; without one the whole message, if it is the only
// source.
func (l *Set) AddSource(message, fact string, alone bool) {
	about, found := trigramsOf(fact), false
	for _, clause := range strings.FieldsFunc(message, func(r rune) bool { return strings.ContainsRune("，,。.；;！!？?：:\n", r) }) {
		if text.Share(trigramsOf(clause), about) >= aboutShare {
			found = true
			l.AddSaying(clause)
		}
	}
	if !found && alone {
		l.AddSaying(message)
	}
}

// Repeats reports whether a text repeats an added one.
func (l *Set) Repeats(text string) bool {
	if text == "" {
		return false
	}
	for _, w := range l.words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return l.hasMark(text, func(string) bool { return true }) || l.RepeatsSaying(text)
}

// RepeatsFar is for another session, where identifiers of work are common knowledge.
func (l *Set) RepeatsFar(text string) bool {
	return l.hasMark(text, isPersonal) || l.RepeatsSaying(text)
}

func (l *Set) hasMark(text string, counts func(mark string) bool) bool {
	if len(l.marks) == 0 || text == "" {
		return false
	}
	own := map[string]bool{}
	MarksOf(text, own)
	for m := range own {
		if l.marks[m] && counts(m) {
			return true
		}
	}
	return false
}

// RepeatsSaying reports whether a text repeats a saying.
func (l *Set) RepeatsSaying(text string) bool {
	return len(l.RepeatedSayings(text)) > 0
}

// RepeatedSayings lists repeated sayings, in the order of [Set.AddSaying] from 0 on.
func (l *Set) RepeatedSayings(said string) (found []int) {
	if len(l.sayings) == 0 || said == "" {
		return nil
	}
	shared := map[int]int{}
	for g := range trigramsOf(said) {
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

// Pieces are strings for a search, of which nearly every repeating text has one.
func (l *Set) Pieces() []string {
	set := map[string]bool{}
	for m := range l.marks {
		if isPersonal(m) {
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

// A long number or an address is a person's, other identifiers are of work.
func isPersonal(mark string) bool {
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

// SameStatement reports whether two facts say the same. One may begin with its author's name.
func SameStatement(a, b string) bool {
	a, b = classify.TrimLead(dates.Strip(a)), classify.TrimLead(dates.Strip(b))
	if text.Normalize(a) == text.Normalize(b) {
		return true
	}
	if !slices.Equal(numbersIn(text.Fold(a)), numbersIn(text.Fold(b))) {
		return false
	}
	x, y := trigramsOf(a), trigramsOf(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	return 2*len(x) >= len(y) && text.Share(x, y) >= saidShare
}

// Retells reports whether a memory repeats nearly all of one that was consolidated into it, or more than each other
// row does. The model did not record sources.
func Retells(content, old string, others []string) bool {
	if SameStatement(old, content) {
		return true
	}
	bare := classify.TrimLead(dates.Strip(old))
	folded := text.Fold(content)
	if slices.ContainsFunc(numbersIn(text.Fold(bare)), func(n string) bool { return !strings.Contains(folded, n) }) {
		return false
	}
	shared := Share(bare, content)
	return shared >= saidShare || shared >= aboutShare && !slices.ContainsFunc(others, func(o string) bool {
		return Share(bare, o) > shared
	})
}

func trigramsOf(said string) map[string]bool { return text.Trigrams(text.Normalize(said)) }

// Share is the part of a text that is in another one, 0 to 1, by their trigrams.
func Share(of, in string) float64 { return text.Share(trigramsOf(of), trigramsOf(in)) }

func numbersIn(text string) []string {
	list := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsDigit(r) })
	slices.Sort(list)
	return slices.Compact(list)
}
