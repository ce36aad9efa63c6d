package reconcile

import (
	"slices"
	"time"
	"unicode/utf8"

	"ebb/memory"
	"ebb/memory/classify"
	"ebb/memory/text"
	"ebb/sessions"
)

// Decision relates a draft to the memories of its scope.
type Decision struct {
	Same       int64   // the memory that says it already; 0: it is stored
	Supersedes []int64 // memories in force that it corrects
	By         int64   // the newer memory that corrects it, so that it is stored as history only; 0: none
}

// Ledger has the memories of one scope: those in force, superseded ones that a draft may read like, and their
// successors.
type Ledger struct {
	rows []ledgerRow
}

type ledgerRow struct {
	memory.Memory

	normal string
	grams  map[string]bool // made when needed
}

// Add adds a memory.
func (l *Ledger) Add(m memory.Memory) {
	l.rows = append(l.rows, ledgerRow{Memory: m, normal: text.Normalize(classify.TrimLead(m.Content))})
}

// Names reports whether a draft replaces no memory, or one that its chat may read.
func (l *Ledger) Names(d memory.Draft) bool {
	return d.Replaces == 0 || slices.ContainsFunc(l.rows, func(r ledgerRow) bool { return r.ID == d.Replaces && mayKnow(d, r.Memory) })
}

// Shows lists those of ids that the draft's chat may know of.
func (l *Ledger) Shows(d memory.Draft, ids []int64) []int64 {
	var out []int64
	for _, r := range l.rows {
		if slices.Contains(ids, r.ID) && mayKnow(d, r.Memory) {
			out = append(out, r.ID)
		}
	}
	return out
}

// mayKnow reports whether the draft's chat may know and correct a memory of the same scope. People's statements about
// themselves are known in private and in the group of their origin. Only its group corrects a memory of the team.
func mayKnow(d memory.Draft, m memory.Memory) bool {
	return d.Scope == memory.ScopeUser && d.SourceGroup == "" || sameSource(d, m)
}

// Successors lists the memories that superseded those of ids still in force in their group; see [Ledger.Decide].
func (l *Ledger) Successors(ids []int64) []int64 {
	var out []int64
	for _, r := range l.rows {
		if r.SupersededBy != 0 && slices.Contains(ids, r.ID) {
			out = append(out, r.SupersededBy)
		}
	}
	return out
}

// Supersede notes that a memory corrects others.
func (l *Ledger) Supersede(by int64, ids []int64) {
	for i := range l.rows {
		if slices.Contains(ids, l.rows[i].ID) {
			l.rows[i].SupersededBy = by
		}
	}
}

// Decide compares a draft with the known memories. The time of a statement counts, not that of its row: order and
// repetition of extractions change nothing.
//
// People's statements about themselves in two conversations share a key, and both stay: their readers differ. In
// private, people may correct their statements of a group, by id or by words; in the group the old one stays in force.
func (l *Ledger) Decide(d memory.Draft) Decision {
	if id := l.findRepeated(d); id != 0 {
		return Decision{Same: id}
	}
	var v Decision
	newest := time.Time{}
	for _, m := range l.findCorrected(d) {
		switch {
		case !laterThan(d.SaidAt, m):
			v.Supersedes = append(v.Supersedes, m.ID)
		case saidAt(m).After(newest):
			v.By, newest = m.ID, saidAt(m)
		}
	}
	return v
}

func saidAt(m memory.Memory) time.Time {
	if m.SaidAt.IsZero() {
		return m.CreatedAt
	}
	return m.SaidAt
}

// laterThan counts a zero time as now.
func laterThan(at time.Time, m memory.Memory) bool { return !at.IsZero() && saidAt(m).After(at) }

// findRepeated returns the memory that a draft repeats, or 0: one in force, in nearly the same words, or one corrected
// after the draft was said. Two people may say the same about themselves.
func (l *Ledger) findRepeated(d memory.Draft) int64 {
	body, found := text.Normalize(classify.TrimLead(d.Content)), int64(0)
	for i := range l.rows {
		r := &l.rows[i]
		if !sameReaders(d, r.Memory) || !oneSubject(d.SubjectID, r.SubjectID) {
			continue
		}
		switch exact := r.normal == body; {
		case exact && l.inForce(d, r.Memory):
			return r.ID
		case exact && l.correctedAfter(d.SaidAt, r.SupersededBy):
			found = r.ID
		}
	}
	if found != 0 {
		return found
	}
	grams := text.Trigrams(body)
	for i := range l.rows {
		r := &l.rows[i]
		if !l.inForce(d, r.Memory) || !sameReaders(d, r.Memory) || !mayBeOneFact(d, r.Memory) || !alikeInLength(body, r.normal) {
			continue
		}
		if r.grams == nil {
			r.grams = text.Trigrams(r.normal)
		}
		if text.Jaccard(grams, r.grams) >= nearShare && addsNothing(classify.TrimLead(d.Content), classify.TrimLead(r.Content)) {
			return r.ID
		}
	}
	return 0
}

// Statements about a person from two conversations differ in their readers.
func sameReaders(d memory.Draft, m memory.Memory) bool {
	return d.Scope != memory.ScopeUser || m.SourceGroup == d.SourceGroup
}

// sameSource reports whether a draft may be another value of a memory. People's statements about themselves, and
// memories of the team, belong to the conversation of their origin.
func sameSource(d memory.Draft, m memory.Memory) bool {
	return d.Scope != memory.ScopeUser && d.Scope != memory.ScopeTeam || m.SourceGroup == d.SourceGroup
}

// oneSubject accepts an unknown person as any.
func oneSubject(a, b sessions.UserID) bool { return a == b || a == "" || b == "" }

// inForce counts a memory that was corrected in private as in force in the group where it was said.
func (l *Ledger) inForce(d memory.Draft, m memory.Memory) bool {
	if m.SupersededBy == 0 {
		return true
	}
	if d.Scope != memory.ScopeUser || d.SourceGroup == "" || m.SourceGroup != d.SourceGroup {
		return false
	}
	return slices.ContainsFunc(l.rows, func(r ledgerRow) bool { return r.ID == m.SupersededBy && r.SourceGroup != m.SourceGroup })
}

// alikeInLength excludes most pairs early, with some room: repeated trigrams count once.
func alikeInLength(a, b string) bool {
	x, y := float64(utf8.RuneCountInString(a)), float64(utf8.RuneCountInString(b))
	return min(x, y) >= 0.7*max(x, y)
}

// mayBeOneFact requires one person, and no two keys.
func mayBeOneFact(d memory.Draft, m memory.Memory) bool {
	return d.SubjectID == m.SubjectID && (d.Key == "" || m.Key == "" || text.NormalizeKey(d.Key) == m.Key)
}

func (l *Ledger) correctedAfter(at time.Time, by int64) bool {
	return slices.ContainsFunc(l.rows, func(r ledgerRow) bool {
		return r.ID == by && !at.IsZero() && !saidAt(r.Memory).Before(at)
	})
}

// findCorrected lists memories in force: those of the draft's key or named id, or else those that its words correct.
func (l *Ledger) findCorrected(d memory.Draft) []memory.Memory {
	var out []memory.Memory
	named := int64(0)
	if l.Names(d) {
		named = l.successorOf(d, d.Replaces)
	}
	for _, r := range l.rows {
		if l.inForce(d, r.Memory) && (r.ID == named && mayKnow(d, r.Memory) || sameThing(d, r.Memory)) {
			out = append(out, r.Memory)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, r := range l.rows {
		if l.inForce(d, r.Memory) && mayKnow(d, r.Memory) && !laterThan(d.SaidAt, r.Memory) && movesDate(d, r.Memory) {
			out = append(out, r.Memory)
		}
	}
	if len(out) > 0 || !hasMark(d.Content) {
		return out
	}
	var best memory.Memory
	most := 0.0
	for _, r := range l.rows {
		if !l.inForce(d, r.Memory) || !mayKnow(d, r.Memory) || laterThan(d.SaidAt, r.Memory) || !mayBeOneFact(d, r.Memory) {
			continue
		}
		if score := scoreCorrection(d.Content, r.Content); score > most {
			best, most = r.Memory, score
		}
	}
	if most > 0 {
		out = append(out, best)
	}
	return out
}

// sameThing compares key and person. Without a person, a key such as "owner" can be that of many things: the texts
// must not name two.
func sameThing(d memory.Draft, m memory.Memory) bool {
	switch key := text.NormalizeKey(d.Key); {
	case key == "" || m.Key != key || !sameSource(d, m):
		return false
	case d.SubjectID == m.SubjectID && d.SubjectID != "" && !d.SubjectIsValue:
		return true
	case d.SubjectID != m.SubjectID && !d.SubjectIsValue:
		return false
	}
	return !ofTwoThings(d.Content, m.Content, d.Key)
}

func (l *Ledger) successorOf(d memory.Draft, id int64) int64 {
	for range l.rows {
		at := slices.IndexFunc(l.rows, func(r ledgerRow) bool { return r.ID == id })
		if at < 0 || l.inForce(d, l.rows[at].Memory) {
			break
		}
		id = l.rows[at].SupersededBy
	}
	return id
}
