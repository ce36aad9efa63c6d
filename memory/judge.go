package memory

import (
	"slices"
	"time"
	"unicode/utf8"
)

// Verdict says what becomes of a draft beside the memories that its scope has.
type Verdict struct {
	Same       int64   // the memory that says it already; 0 for none: it is stored
	Supersedes []int64 // memories in force that it corrects
	By         int64   // the newer memory that corrects it: it is stored as history only; 0 for none
}

// Ledger is what drafts are compared with: the memories of one scope and scope id. It holds those in force, those
// superseded ones that a draft may read like, and their successors.
type Ledger struct {
	rows []ledgerRow
}

type ledgerRow struct {
	Memory

	normal string
	grams  map[string]bool // made when they are asked for
}

// Add takes a memory up.
func (l *Ledger) Add(m Memory) {
	l.rows = append(l.rows, ledgerRow{Memory: m, normal: Normal(m.Content)})
}

// Names reports whether a draft may replace the memory that it names, or names none: it is among them, and the chat
// that the draft comes from may read it.
func (l *Ledger) Names(d Draft) bool {
	return d.Replaces == 0 || slices.ContainsFunc(l.rows, func(r ledgerRow) bool { return r.ID == d.Replaces && shows(d, r.Memory) })
}

// Shows lists those of ids that the chat which a draft comes from may know of.
func (l *Ledger) Shows(d Draft, ids []int64) []int64 {
	var out []int64
	for _, r := range l.rows {
		if slices.Contains(ids, r.ID) && shows(d, r.Memory) {
			out = append(out, r.ID)
		}
	}
	return out
}

// shows reports whether the chat that a draft comes from may know of a memory of the same scope: what a person said of
// themself is read in private, and in the group where they said it.
func shows(d Draft, m Memory) bool {
	return d.Scope != ScopeUser || d.SourceGroup == "" || d.SourceGroup == m.SourceGroup
}

// Supersede notes that a memory corrects others.
func (l *Ledger) Supersede(by int64, ids []int64) {
	for i := range l.rows {
		if slices.Contains(ids, l.rows[i].ID) {
			l.rows[i].SupersededBy = by
		}
	}
}

// Judge compares a draft with what is known. The same statement gets the same verdict however often, and in whatever
// order, it is drawn out of the log: what was said later counts, not what was stored later.
func (l *Ledger) Judge(d Draft) Verdict {
	if id := l.same(d); id != 0 {
		return Verdict{Same: id}
	}
	var v Verdict
	newest := time.Time{}
	for _, m := range l.corrected(d) {
		switch {
		case !laterThan(d.SaidAt, m):
			v.Supersedes = append(v.Supersedes, m.ID)
		case toldAt(m).After(newest):
			v.By, newest = m.ID, toldAt(m)
		}
	}
	return v
}

// toldAt is when a memory was said, as far as that is known.
func toldAt(m Memory) time.Time {
	if m.SaidAt.IsZero() {
		return m.CreatedAt
	}
	return m.SaidAt
}

// laterThan reports whether a memory was said later than at. What has no time is said now.
func laterThan(at time.Time, m Memory) bool { return !at.IsZero() && toldAt(m).After(at) }

// same is the memory that says what a draft does: one in force, word for word or nearly, or one that the draft reads
// like and that was corrected after the draft was said; 0 for none. What is told of a person in one conversation is
// another memory than what was told in another, for who may read it differs.
func (l *Ledger) same(d Draft) int64 {
	text, found := Normal(d.Content), int64(0)
	for i := range l.rows {
		r := &l.rows[i]
		if d.Scope == ScopeUser && r.SourceGroup != d.SourceGroup {
			continue
		}
		switch exact := r.normal == text; {
		case exact && r.SupersededBy == 0:
			return r.ID
		case exact && l.correctedAfter(d.SaidAt, r.SupersededBy):
			found = r.ID
		}
	}
	if found != 0 {
		return found
	}
	grams := trigrams(text)
	for i := range l.rows {
		r := &l.rows[i]
		if r.SupersededBy != 0 || d.Scope == ScopeUser && r.SourceGroup != d.SourceGroup || !compatible(d, r.Memory) ||
			!alikeInLength(text, r.normal) {
			continue
		}
		if r.grams == nil {
			r.grams = trigrams(r.normal)
		}
		if jaccard(grams, r.grams) >= nearShare && saysNoMore(d.Content, r.Content) {
			return r.ID
		}
	}
	return 0
}

// alikeInLength reports whether two texts can be near duplicates at all; a repeated trigram counts once, so that there
// is some room.
func alikeInLength(a, b string) bool {
	x, y := float64(utf8.RuneCountInString(a)), float64(utf8.RuneCountInString(b))
	return min(x, y) >= 0.7*max(x, y)
}

// compatible reports whether two wordings can be of one fact: about the same person, and of no two keys.
func compatible(d Draft, m Memory) bool {
	return d.SubjectID == m.SubjectID && (d.Key == "" || m.Key == "" || KeyOf(d.Key) == m.Key)
}

// correctedAfter reports whether the memory that superseded another one was said at that time or later.
func (l *Ledger) correctedAfter(at time.Time, by int64) bool {
	return slices.ContainsFunc(l.rows, func(r ledgerRow) bool {
		return r.ID == by && !at.IsZero() && !toldAt(r.Memory).Before(at)
	})
}

// corrected lists the memories in force that a draft tells another value of: those of its key and the one that it names,
// or else the one that it reads as a correction of.
func (l *Ledger) corrected(d Draft) []Memory {
	var out []Memory
	key, named := KeyOf(d.Key), int64(0)
	if l.Names(d) {
		named = l.successor(d.Replaces)
	}
	for _, r := range l.rows {
		if r.SupersededBy == 0 && (r.ID == named || key != "" && r.Key == key && sameSubject(d, r.Memory)) {
			out = append(out, r.Memory)
		}
	}
	if len(out) > 0 || !marked(d.Content) {
		return out
	}
	var best Memory
	most := 0.0
	for _, r := range l.rows {
		if r.SupersededBy != 0 || laterThan(d.SaidAt, r.Memory) || !compatible(d, r.Memory) {
			continue
		}
		if score := corrects(d.Content, r.Content); score > most {
			best, most = r.Memory, score
		}
	}
	if most > 0 {
		out = append(out, best)
	}
	return out
}

// sameSubject reports whether a draft and a memory of its key tell of one person, or of one thing whose value a person is.
func sameSubject(d Draft, m Memory) bool {
	return d.SubjectID == m.SubjectID || d.SubjectIsValue
}

// successor is the memory in force that the one named, or those that superseded it, led to.
func (l *Ledger) successor(id int64) int64 {
	for range l.rows {
		at := slices.IndexFunc(l.rows, func(r ledgerRow) bool { return r.ID == id })
		if at < 0 || l.rows[at].SupersededBy == 0 {
			break
		}
		id = l.rows[at].SupersededBy
	}
	return id
}
