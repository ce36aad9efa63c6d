package audit

import (
	"strings"
	"time"

	"ebb/compaction/identify"
	"ebb/compaction/transcript"
	"ebb/sessions"
)

// Source is the source of a summary and the summary's budget.
type Source struct {
	Events   []sessions.Event
	Previous string         // summary to continue; empty for none
	Location *time.Location // zone of the transcript's times; UTC when nil
	Budget   int            // requested tokens of the summary; 0 is unbounded
	Count    func(text string) int
	Cleaned  transcript.Cleaner
}

// Findings compares a summary with its source. The JSON form is for the log.
type Findings struct {
	Required  []identify.Identifier `json:"-"` // most important first
	Missing   []string              `json:"missing,omitempty"`
	Invented  []string              `json:"invented,omitempty"` // in the summary without a source, and not marked
	Recall    float64               `json:"recall"`             // share of Must in the summary
	Precision float64               `json:"precision"`          // share of the summary's identifiers in the source

	source identifierIndex
	names  []string
}

// Passed reports whether nothing needs repair.
func (a Findings) Passed() bool { return len(a.Missing)+len(a.Invented) == 0 }

// Reference is a source, read once for all drafts: reading it is most of an audit.
type Reference struct {
	Must  []identify.Identifier
	known identifierIndex
	names []string
}

// Compare checks a summary's identifiers against the source, deterministically. Findings reject no summary; they say
// what to repair.
func (r Reference) Compare(summary string) Findings {
	a := Findings{Required: r.Must, Recall: 1, Precision: 1, source: r.known, names: r.names}
	have, ids := indexText(summary, r.names)
	for _, id := range r.Must {
		if !have.hasIdentifier(id) {
			a.Missing = append(a.Missing, id.Text)
		}
	}
	if len(r.Must) > 0 {
		a.Recall = 1 - float64(len(a.Missing))/float64(len(r.Must))
	}
	checked, wrong, seen := 0, 0, map[string]bool{}
	for _, id := range ids {
		if id.Type == identify.TypeName || id.Weak || seen[id.Key] || isMarked(summary, id.To) {
			continue
		}
		seen[id.Key] = true
		checked++
		if a.isInvented(id) {
			wrong++
			a.Invented = append(a.Invented, id.Text)
		}
	}
	if checked > 0 {
		a.Precision = 1 - float64(wrong)/float64(checked)
	}
	return a
}

func (a Findings) isInvented(id identify.Identifier) bool {
	return id.Type != identify.TypeName && !id.Weak && !a.source.hasIdentifier(id)
}

type identifierIndex struct {
	keys  map[string]bool // exact
	loose map[string]bool // less exact keys of the same identifiers
	text  []byte          // folded, in lower case
}

func indexText(text string, names []string) (identifierIndex, []identify.Identifier) {
	f := identify.Fold(text)
	k := identifierIndex{keys: map[string]bool{}, loose: map[string]bool{}, text: identify.LowerASCII([]byte(f.Text))}
	ids := identify.FindWithNames(f, names)
	k.addAll(ids...)
	return k, ids
}

func (k *identifierIndex) addAll(ids ...identify.Identifier) {
	for _, id := range ids {
		k.keys[id.Key] = true
		if id.Loose != "" {
			k.loose[id.Loose] = true
		}
	}
}

// hasIdentifier matches less exact spellings with exact ones both ways. A value that a pattern reads differently in
// another place is searched as text.
func (k identifierIndex) hasIdentifier(id identify.Identifier) bool {
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

// marks follow a summary's values without a source.
var marks = map[string]string{"zh": "[未证实]", "en": "[unverified]"}

func isMarked(text string, at int) bool {
	for _, m := range marks {
		if strings.HasPrefix(text[at:], m) {
			return true
		}
	}
	return false
}

func (src Source) speakerNames() []string {
	var nicks []string
	for _, e := range src.Events {
		if e.Role == sessions.RoleUser {
			nicks = append(nicks, sessions.Nick(e.SenderNick))
		}
	}
	return identify.NameList(nicks)
}
