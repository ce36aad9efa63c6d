package audit

import (
	"strings"
	"time"

	"ebb/compaction/identify"
	"ebb/compaction/transcript"
	"ebb/sessions"
)

// AuditSource is what a summary tells, and how much room it has.
type Source struct {
	Events   []sessions.Event
	Previous string         // the summary that it continues; empty for none
	Location *time.Location // of the times that the summariser read; UTC where nil
	Budget   int            // tokens that the summary was asked to take; 0: any number
	Count    func(text string) int
	Cleaned  transcript.Cleaner
}

// Audit is how a summary compares with what it tells. Its JSON form is for the log.
type Findings struct {
	Must      []identify.Identifier `json:"-"` // what the summary has to hold, the most important first
	Missing   []string              `json:"missing,omitempty"`
	Invented  []string              `json:"invented,omitempty"` // stands in the summary and not in its source, unmarked
	Recall    float64               `json:"recall"`             // part of Must that is in the summary
	Precision float64               `json:"precision"`          // part of the summary's identifiers that is in the source

	source known
	names  []string
}

// Passed reports whether there is nothing to repair.
func (a Findings) Passed() bool { return len(a.Missing)+len(a.Invented) == 0 }

// AuditSummary checks a summary's identifiers against its source. Whether it tells the newest request is not asked: the
// newest turn is never summarised. The same arguments have the same answer, and no
// answer forbids a summary: it says what to repair.
func Compare(src Source, summary string) Findings { return src.Read().Compare(summary) }

// auditor is a source as far as it matters to any summary of it: reading it is most of an audit.
type Reference struct {
	Must  []identify.Identifier
	known known
	names []string
}

func (r Reference) Compare(summary string) Findings {
	a := Findings{Must: r.Must, Recall: 1, Precision: 1, source: r.known, names: r.names}
	have, ids := knownOf(summary, r.names)
	for _, id := range r.Must {
		if !have.has(id) {
			a.Missing = append(a.Missing, id.Text)
		}
	}
	if len(r.Must) > 0 {
		a.Recall = 1 - float64(len(a.Missing))/float64(len(r.Must))
	}
	checked, wrong, seen := 0, 0, map[string]bool{}
	for _, id := range ids {
		if id.Type == identify.TypeName || id.Weak || seen[id.Key] || marked(summary, id.To) {
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
func (a Findings) invents(id identify.Identifier) bool {
	return id.Type != identify.TypeName && !id.Weak && !a.source.has(id)
}

// known are the identifiers of a text, for looking up.
type known struct {
	keys  map[string]bool // exact ones
	loose map[string]bool // what exact ones may be spelled as
	text  []byte          // folded, in lower case
}

func knownOf(text string, names []string) (known, []identify.Identifier) {
	f := identify.Fold(text)
	k := known{keys: map[string]bool{}, loose: map[string]bool{}, text: identify.LowerASCII([]byte(f.Text))}
	ids := identify.FindWithNames(f, names)
	k.add(ids...)
	return k, ids
}

func (k *known) add(ids ...identify.Identifier) {
	for _, id := range ids {
		k.keys[id.Key] = true
		if id.Loose != "" {
			k.loose[id.Loose] = true
		}
	}
}

// has reports whether an identifier is there, in whatever spelling: one that says less stands for one that says more,
// both ways. What a pattern sees otherwise in another place is looked for as it is written.
func (k known) has(id identify.Identifier) bool {
	if k.keys[id.Key] || k.loose[id.Key] || id.Loose != "" && k.keys[id.Loose] {
		return true
	}
	if id.Type == identify.TypeName {
		return false
	}
	text := string(identify.LowerASCII([]byte(id.Text)))
	if id.Type == identify.TypeVersion {
		text = strings.TrimPrefix(text, "v")
	}
	return identify.ContainsAlone(k.text, text)
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
func (src Source) names() []string {
	var nicks []string
	for _, e := range src.Events {
		if e.Role == sessions.RoleUser {
			nicks = append(nicks, sessions.Nick(e.SenderNick))
		}
	}
	return identify.NameList(nicks)
}
