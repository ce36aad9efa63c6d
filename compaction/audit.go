package compaction

import (
	"strings"
	"time"

	"ebb/sessions"
)

// AuditSource is what a summary tells, and how much room it has.
type AuditSource struct {
	Events   []sessions.Event
	Previous string         // the summary that it continues; empty for none
	Location *time.Location // of the times that the summariser read; UTC where nil
	Budget   int            // tokens that the summary was asked to take; 0: any number
	Count    func(text string) int
	cleaned  cleaned
}

// Audit is how a summary compares with what it tells. Its JSON form is for the log.
type Audit struct {
	Must      []Identifier `json:"-"` // what the summary has to hold, the most important first
	Missing   []string     `json:"missing,omitempty"`
	Invented  []string     `json:"invented,omitempty"` // stands in the summary and not in its source, unmarked
	Recall    float64      `json:"recall"`             // part of Must that is in the summary
	Precision float64      `json:"precision"`          // part of the summary's identifiers that is in the source

	source known
	names  []string
}

// Passed reports whether there is nothing to repair.
func (a Audit) Passed() bool { return len(a.Missing)+len(a.Invented) == 0 }

// AuditSummary checks a summary's identifiers against its source. Whether it tells the newest request is not asked: the
// newest turn is never summarised. The same arguments have the same answer, and no
// answer forbids a summary: it says what to repair.
func AuditSummary(src AuditSource, summary string) Audit { return src.read().audit(summary) }

// auditor is a source as far as it matters to any summary of it: reading it is most of an audit.
type auditor struct {
	must  []Identifier
	known known
	names []string
}

func (r auditor) audit(summary string) Audit {
	a := Audit{Must: r.must, Recall: 1, Precision: 1, source: r.known, names: r.names}
	have, ids := knownOf(summary, r.names)
	for _, id := range r.must {
		if !have.has(id) {
			a.Missing = append(a.Missing, id.Text)
		}
	}
	if len(r.must) > 0 {
		a.Recall = 1 - float64(len(a.Missing))/float64(len(r.must))
	}
	checked, wrong, seen := 0, 0, map[string]bool{}
	for _, id := range ids {
		if id.Type == TypeName || id.weak || seen[id.Key] || marked(summary, id.to) {
			continue
		}
		seen[id.Key] = true
		checked++
		if a.invents(id) {
			wrong++
			a.Invented = append(a.Invented, id.Text)
		}
	}
	if checked > 0 {
		a.Precision = 1 - float64(wrong)/float64(checked)
	}
	return a
}

// invents reports whether an identifier of a summary has no source.
func (a Audit) invents(id Identifier) bool {
	return id.Type != TypeName && !id.weak && !a.source.has(id)
}

// known are the identifiers of a text, for looking up.
type known struct {
	keys  map[string]bool // exact ones
	loose map[string]bool // what exact ones may be spelled as
	text  []byte          // folded, in lower case
}

func knownOf(text string, names []string) (known, []Identifier) {
	f := fold(text)
	k := known{keys: map[string]bool{}, loose: map[string]bool{}, text: lowerASCII([]byte(f.text))}
	ids := identify(f, names)
	k.add(ids...)
	return k, ids
}

func (k *known) add(ids ...Identifier) {
	for _, id := range ids {
		k.keys[id.Key] = true
		if id.loose != "" {
			k.loose[id.loose] = true
		}
	}
}

// has reports whether an identifier is there, in whatever spelling: one that says less stands for one that says more,
// both ways. What a pattern sees otherwise in another place is looked for as it is written.
func (k known) has(id Identifier) bool {
	if k.keys[id.Key] || k.loose[id.Key] || id.loose != "" && k.keys[id.loose] {
		return true
	}
	if id.Type == TypeName {
		return false
	}
	text := string(lowerASCII([]byte(id.Text)))
	if id.Type == TypeVersion {
		text = strings.TrimPrefix(text, "v")
	}
	for _, at := range bytesOf(text, k.text) {
		if alone(k.text, at, at+len(text)) {
			return true
		}
	}
	return false
}

// alone reports whether what stands between two bytes of a text is an identifier of its own there, and not the
// beginning or the end of a longer one.
func alone(text []byte, from, to int) bool {
	if from > 0 && isWord(text[from]) {
		v := text[from-1] == 'v' && isNum(text[from]) && (from == 1 || !isWord(text[from-2])) // v1.2.3
		if isWord(text[from-1]) && !v || from > 1 && strings.IndexByte("-_.,@", text[from-1]) >= 0 && isWord(text[from-2]) {
			return false
		}
	}
	if to < len(text) && isWord(text[to-1]) {
		if isWord(text[to]) || to+1 < len(text) && strings.IndexByte("-_.,:/?#=&@%+", text[to]) >= 0 && isWord(text[to+1]) {
			return false
		}
	}
	return true
}

// marks stand behind what a summary says and its source does not.
var marks = map[string]string{"zh": "[未证实]", "en": "[unverified]"}

// marked reports whether a mark stands at a byte of a text.
func marked(text string, at int) bool {
	for _, m := range marks {
		if strings.HasPrefix(text[at:], m) {
			return true
		}
	}
	return false
}

// names is the roster of a range: who spoke.
func (src AuditSource) names() []string {
	var nicks []string
	for _, e := range src.Events {
		if e.Role == sessions.RoleUser {
			nicks = append(nicks, sessions.Nick(e.SenderNick))
		}
	}
	return roster(nicks)
}
