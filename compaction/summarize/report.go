package summarize

import (
	"ebb/compaction/audit"
	"ebb/compaction/transcript"
)

// Report is a draft's audit in the compaction log. Recall is the share of the source's identifiers in the model's
// text, Precision the reverse, both of the worst chunk before healing.
type Report struct {
	SummaryTokens int      `json:"summary_tokens"`
	SourceTokens  int      `json:"source_tokens"`
	Calls         int      `json:"calls"` // model calls
	Recall        float64  `json:"recall"`
	Precision     float64  `json:"precision"`
	Missing       []string `json:"missing,omitempty"`   // some of the added identifiers
	Invented      []string `json:"invented,omitempty"`  // some of the identifiers without a source
	Added         int      `json:"added,omitempty"`     // number of added identifiers
	Repaired      bool     `json:"repaired,omitempty"`  // a second text of the model replaced the first
	Healed        bool     `json:"healed,omitempty"`    // the text was changed without a model
	Trimmed       bool     `json:"trimmed,omitempty"`   // its middle was cut
	RolledUp      int      `json:"rolled_up,omitempty"` // number of summaries rolled up
	// RollUpFailed is the range of a failed roll-up.
	RollUpFailed string `json:"roll_up_failed,omitempty"`
	Fallback     string `json:"fallback,omitempty"`    // model that replaced the summary model
	Unavailable  int    `json:"unavailable,omitempty"` // tool results that are no longer readable
}

// maxNoted bounds the lists of a report, noted the characters of an entry.
const (
	maxNoted = 8
	noted    = 80
)

// The worst of several chunks stays.
func (r *Report) addFindings(a audit.Findings) {
	r.mergeFindings(Report{Recall: a.Recall, Precision: a.Precision, Missing: a.Missing, Added: len(a.Missing), Invented: a.Invented})
}

func (r *Report) mergeFindings(other Report) {
	r.Recall, r.Precision = min(r.Recall, other.Recall), min(r.Precision, other.Precision)
	r.Added += other.Added
	r.Missing, r.Invented = appendBounded(r.Missing, other.Missing), appendBounded(r.Invented, other.Invented)
	r.Repaired, r.Healed, r.Trimmed = r.Repaired || other.Repaired, r.Healed || other.Healed, r.Trimmed || other.Trimmed
}

func appendBounded(list, more []string) []string {
	for _, s := range more {
		if len(list) == maxNoted {
			break
		}
		list = append(list, transcript.Clip(s, noted))
	}
	return list
}
