package erasure

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"ebb/memory/similarity"
	"ebb/sessions"
)

// trait is a word, a mark or a saying by which a text may be the person's.
type trait struct {
	since  time.Time // when they said it
	shared bool      // others said it too, or the bot said it first
}

// Content that others said too, or the bot said first, is not the person's.
type personTraits struct {
	labels  []string // ids, as the bot writes them
	names   map[string]*trait
	marks   map[string]*trait
	words   map[string]*trait // compared as a whole
	like    similarity.Set    // sayings
	sayings []*trait          // parallel to like
}

func newTraits(labels, nicks []string) *personTraits {
	t := &personTraits{
		labels: labels, names: map[string]*trait{}, marks: map[string]*trait{}, words: map[string]*trait{}, like: similarity.New(),
	}
	for _, n := range nicks {
		if n = nameIn(n); n != "" {
			t.names[n] = &trait{}
		}
	}
	return t
}

// A text without marks is learned as a whole, when whole is set.
func (t *personTraits) learnMarks(text string, since time.Time, whole bool) {
	marks := map[string]bool{}
	similarity.MarksOf(text, marks)
	for m := range marks {
		noteEarliest(t.marks, m, since)
	}
	if text = strings.TrimSpace(text); whole && len(marks) == 0 && len([]rune(text)) >= similarity.MinWhole {
		noteEarliest(t.words, text, since)
	}
}

func noteEarliest(set map[string]*trait, key string, since time.Time) {
	if old := set[key]; old == nil {
		set[key] = &trait{since: since}
	} else if since.Before(old.since) {
		old.since = since
	}
}

func (t *personTraits) learnSaying(text string, since time.Time) {
	if t.like.AddSaying(text) {
		t.sayings = append(t.sayings, &trait{since: since})
	}
}

func (t *personTraits) matchText(text string) (found []*trait) {
	if text == "" {
		return nil
	}
	if len(t.marks) > 0 {
		own := map[string]bool{}
		similarity.MarksOf(text, own)
		for m := range own {
			if tr := t.marks[m]; tr != nil {
				found = append(found, tr)
			}
		}
	}
	for w, tr := range t.words {
		if strings.Contains(text, w) {
			found = append(found, tr)
		}
	}
	for _, i := range t.like.RepeatedSayings(text) {
		found = append(found, t.sayings[i])
	}
	return found
}

// Content that the bot said before the person is from elsewhere.
func (t *personTraits) matchAnswer(text string, at time.Time) []*trait {
	found := t.matchText(text)
	for _, tr := range found {
		if at.Before(tr.since) {
			tr.shared = true
		}
	}
	return append(found, t.matchNames(text)...)
}

func (t *personTraits) matchOther(nick, text string) {
	if tr := t.names[nameIn(nick)]; tr != nil {
		tr.shared = true
	}
	if strings.HasPrefix(text, "[引用 ") { // a quote is not their own words
		if _, own, ok := strings.Cut(text, "]\n"); ok {
			text = own
		}
	}
	for _, tr := range t.matchText(text) {
		tr.shared = true
	}
}

func (t *personTraits) matchNames(text string) (found []*trait) {
	if len(t.names) == 0 {
		return nil
	}
	text = strings.ToLower(text)
	for n, tr := range t.names {
		if containsName(text, n) {
			found = append(found, tr)
		}
	}
	return found
}

func (t *personTraits) hasLabel(text string) bool {
	return slices.ContainsFunc(t.labels, func(l string) bool { return strings.Contains(text, l) })
}

// repeats needs the whole session to be read.
func (t *personTraits) repeats(text string) bool {
	return t.hasLabel(text) || hasUnshared(t.matchText(text)) || hasUnshared(t.matchNames(text))
}

func hasUnshared(found []*trait) bool {
	return slices.ContainsFunc(found, func(t *trait) bool { return !t.shared })
}

// Shorter ones such as (1) and (2026) stand in texts about anything.
const minLabel = 6

// labelsOf are the bot's notations of a person's ids. A short id counts only with a nick. A person from outside has
// no visible id.
func labelsOf(who person) []string {
	var labels []string
	for _, id := range who.ids {
		outside := sessions.Outside(sessions.UserID(id))
		if outside {
			labels = append(labels, id)
		}
		if utf8.RuneCountInString(id) >= minLabel {
			labels = append(labels, "("+id+")")
			if !outside {
				continue
			}
		}
		for _, n := range who.nicks {
			if sessions.Nick(n) != "" {
				labels = append(labels, sessions.Speaker(n, sessions.UserID(id)))
			}
		}
	}
	return labels
}
