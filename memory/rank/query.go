package rank

import (
	_ "embed"
	"math"
	"slices"
	"time"

	"ebb/memory/dates"
	"ebb/memory/text"
	"ebb/sessions/rules"
)

type queryTerm struct {
	text    string
	shown   string
	kind    termKind
	hash    uint32
	weight  float64
	synonym bool // a synonym of a word of the query
	name    bool // a participant's: in the log it stands in every greeting
}

// Query is a parsed search text.
type Query struct {
	text    string // folded
	now     time.Time
	terms   []queryTerm
	people  []string
	dates   []dates.Span
	when    bool // it asks for a time
	you     bool // it asks for the bot's words
	noTerms bool // no term selects texts, so any text may do
}

const maxQuery = 256

const (
	maxWidened    = 24  // terms of a query that gets synonyms
	synonymWeight = 0.4 // share of a word's weight, for its synonym
)

var weightOf = [...]float64{word: 1, soft: 0.5, pair: 1, glyph: 0.5, lone: 0.7}

// ParseQuery parses a search text. now, in the askers' zone, is the reference of "yesterday".
func ParseQuery(body string, now time.Time) Query {
	folded := text.Fold(body)
	q := Query{
		text: folded, now: now, dates: dates.Find(folded, now), when: asksWhen().MatchString(folded), you: asksYou().MatchString(folded),
	}
	place := make(map[string]int)
	var times []float64
	for _, t := range termsOf(body) {
		if i, known := place[t.text]; known {
			times[i]++
		} else if len(q.terms) < maxQuery {
			place[t.text] = len(q.terms)
			times = append(times, 1)
			q.terms = append(q.terms, queryTerm{shown: t.shown, text: t.text, kind: t.kind, hash: termHash(t.text)})
		}
	}
	for i := range q.terms {
		q.terms[i].weight = weightOf[q.terms[i].kind] * math.Sqrt(times[i])
	}
	q.addSynonyms(place)
	q.noTerms = !slices.ContainsFunc(q.terms, selectsTexts)
	return q
}

func (q *Query) addSynonyms(known map[string]int) {
	if len(q.terms) > maxWidened {
		return
	}
	for _, t := range q.terms {
		if t.kind != word && t.kind != pair {
			continue
		}
		for _, other := range synonyms[t.text] {
			if _, ok := known[other]; !ok {
				known[other] = len(q.terms)
				q.terms = append(q.terms, queryTerm{text: other, shown: other, kind: t.kind, hash: termHash(other), weight: synonymWeight * t.weight, synonym: true})
			}
		}
	}
}

//go:embed rules.tsv
var ruleLines string

var (
	ruleFile = rules.Read(ruleLines)

	asksWhen = ruleFile.Regexp("asksWhen")
	asksYou  = ruleFile.Regexp("asksYou") // for the bot's words
)

// Person is a participant of a conversation.
type Person struct {
	ID   string
	Nick string
}

// AddPeople adds participants: a named one counts as a text's speaker or subject.
func (q *Query) AddPeople(people ...Person) {
	for _, p := range people {
		if !text.ContainsWord(q.text, text.Fold(p.Nick)) {
			continue
		}
		if !slices.Contains(q.people, p.ID) {
			q.people = append(q.people, p.ID)
		}
		for _, t := range termsOf(p.Nick) {
			for i := range q.terms {
				q.terms[i].name = q.terms[i].name || q.terms[i].hash == termHash(t.text)
			}
		}
	}
	q.noTerms = !slices.ContainsFunc(q.terms, selectsTexts)
}

// HasNoTerms reports a query without topic, as in "what did we talk about yesterday?".
func (q Query) HasNoTerms() bool { return q.noTerms }

// People are the ids of the named participants.
func (q Query) People() []string { return q.people }

func (q Query) namesPerson(who []string) bool {
	return slices.ContainsFunc(who, func(id string) bool { return slices.Contains(q.people, id) })
}

// Span is the first time that the query names. A day or month without a year is the last such one.
func (q Query) Span() (from, to time.Time, ok bool) {
	if len(q.dates) == 0 {
		return time.Time{}, time.Time{}, false
	}
	s := q.dates[0]
	if s.Yearly && s.From.After(q.now) {
		return s.From.AddDate(-1, 0, 0), s.To.AddDate(-1, 0, 0), true
	}
	return s.From, s.To, true
}

const (
	dayFactor  = 3   // for a text of the named day
	spanFactor = 1.7 // for a text of a longer named time
)

func (q Query) dateFactor(at time.Time) float64 {
	f := 1.0
	for _, s := range q.dates {
		switch {
		case !s.Holds(at):
		case s.OneDay():
			f = max(f, dayFactor)
		default:
			f = max(f, spanFactor)
		}
	}
	return f
}

func selectsTexts(t queryTerm) bool {
	return !t.name && (t.kind == word || t.kind == pair || t.kind == lone)
}

// EventKeys are the query's keys for the events of a scope, perhaps none.
func (q Query) EventKeys(s Scope) []int64 { return q.keysIn(s, false) }

// MemoryKeys include people's names, unlike [Query.EventKeys]: a memory has its subject's name as a term.
func (q Query) MemoryKeys(s Scope) []int64 { return q.keysIn(s, true) }

func (q Query) keysIn(s Scope, memories bool) []int64 {
	var keys []int64
	for _, t := range q.terms {
		if selectsTexts(t) || memories && t.name && t.kind != glyph || q.noTerms && !t.name {
			keys = append(keys, s.keyOf(t.hash))
		}
	}
	return keys
}

// TermWeight is the weight of a key's term, which about n of the texts have.
func (q Query) TermWeight(key int64, n, texts int) float64 {
	for _, t := range q.terms {
		if t.hash == lowHash(key) {
			return t.weight * termRarity(float64(texts), float64(n))
		}
	}
	return 0
}
