package summarize

import (
	"context"
	"ebb/compaction"
	"ebb/compaction/audit"
	"ebb/compaction/transcript"
	"strings"

	"github.com/rs/zerolog"
)

// audited returns a text that tells the chunk after the audit. A text that passes costs no call. For another the model
// is asked once to mend it, the better of the two texts is taken, and what it still lacks is added by hand. Whatever
// comes of that, there is a summary: the audit improves one and never stands in its way.
func (t *telling) audited(ctx context.Context, c chunk, text string) string {
	src := audit.Source{
		Events: c.events, Previous: t.res.Text, Location: t.Location, Budget: t.Target, Count: t.Counter.Count, Cleaned: t.cleaned,
	}
	by, most := src.Read(), t.longest(c)
	found := t.examine(by, text, most)
	if found.worthAsking() {
		if mended, again, ok := t.repair(ctx, c, by, text, found, most); ok {
			text, found, t.res.Repaired = mended, again, true
		}
	}
	// A model that never minds the length must not fill the window, nor stop compactions for good: what its text loses
	// here is in the log.
	if found.tokens > 0 {
		text, _ = t.Counter.Shorten(text, t.draft(most), func(s string) string { return s })
		found.Findings, t.res.Trimmed = by.Compare(text), true
	}
	t.res.note(found.Findings)
	healed, changed := t.heal(text, found.Findings)
	t.res.Healed = t.res.Healed || changed
	return healed
}

// heal adds to a text what its audit misses.
func (t *telling) heal(text string, a audit.Findings) (healed string, changed bool) {
	if a.Passed() {
		return text, false
	}
	return audit.Heal(text, a, t.Target/compaction.RequiredShare, t.Counter.Count, t.Language)
}

// examined is what checking a text against its source found.
type examined struct {
	audit.Findings
	lacks  []string // headings
	tokens int      // of a text that is too long once it is healed; 0 for one that is not
}

func (t *telling) examine(by audit.Reference, text string, most int) examined {
	found := examined{Findings: by.Compare(text), lacks: t.layout.lacking(text, t.Language)}
	if most > 0 {
		healed, _ := t.heal(text, found.Findings)
		if n := t.Counter.Count(healed); n > most {
			found.tokens = n
		}
	}
	return found
}

// longest is how many tokens the healed summary so far may take once it covers a chunk; 0 for any number. It is shorter than what it tells, where that is long enough for the comparison to say something.
func (t *telling) longest(c chunk) int {
	most := t.Most
	if source := compaction.TokensOf(c.events) + t.Counter.Count(t.res.Text); source > audit.LargeSource {
		if n := int(compaction.MaxRatio * float64(source)); most == 0 || n < most {
			most = n
		}
	}
	return most
}

// draft is the length of a text that a heal makes no longer than most, in tokens.
func (t *telling) draft(most int) int {
	return max(compaction.MinSummary, most-compaction.HealAllowance(t.Target))
}

// goodRecall is the share of identifiers from which on a text is not written again for the rest: they are cheaper to
// append than to ask for.
const goodRecall = 0.9

// worthAsking reports whether the model should mend the text. What it made up, or a section that it left out, is nothing
// that an addition mends, and to leave the middle out of a text that is too long is the last resort.
func (e examined) worthAsking() bool {
	return len(e.Invented)+len(e.lacks) > 0 || e.Recall < goodRecall || e.tokens > 0
}

// betterThan compares two texts: one of a fitting length is better, whatever identifiers it lacks.
func (e examined) betterThan(old examined) bool {
	if (e.tokens > 0) != (old.tokens > 0) {
		return e.tokens == 0
	}
	return e.faults() < old.faults()
}

func (e examined) faults() int { return len(e.Missing) + len(e.Invented) + len(e.lacks) }

// repair asks once for a better text, and reports whether one came. No trouble is worth a second try.
func (t *telling) repair(ctx context.Context, c chunk, by audit.Reference, text string, found examined, most int) (string, examined, bool) {
	user := t.focus
	if len(found.lacks) > 0 {
		user += transcript.Fence("sections", strings.Join(found.lacks, "\n")) + "\n\n"
	}
	user += audit.RepairPrompt(text, found.Findings, found.tokens, t.draft(most), t.Language)
	system := t.instruction(true)
	used := t.Counter.Count(system) + int(float64(t.Counter.Count(user))*estimateMargin) + requestFrame
	r := CompleteRequest{Model: t.model, System: system, User: user, MaxOutput: min(t.mostOutput(), t.Context-used)}
	if r.MaxOutput < t.Counter.Count(text) {
		return "", examined{}, false // there is no room to write it again
	}
	_, mended, err := t.ask(ctx, r, c.events)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Str("model", nameOf(r.Model)).Msg("Summary not repaired by its model")
		return "", examined{}, false
	}
	again := t.examine(by, mended, most)
	return mended, again, again.betterThan(found)
}

// maxNoted bounds the lists of a report, and noted one entry of them in characters.
const (
	maxNoted = 8
	noted    = 80
)

// note keeps what an audit found, and of several chunks the worst.
func (r *Report) note(a audit.Findings) {
	r.merge(Report{Recall: a.Recall, Precision: a.Precision, Missing: a.Missing, Added: len(a.Missing), Invented: a.Invented})
}

// merge adds what another summary's audit found to a report.
func (r *Report) merge(other Report) {
	r.Recall, r.Precision = min(r.Recall, other.Recall), min(r.Precision, other.Precision)
	r.Added += other.Added
	r.Missing, r.Invented = few(r.Missing, other.Missing), few(r.Invented, other.Invented)
	r.Repaired, r.Healed, r.Trimmed = r.Repaired || other.Repaired, r.Healed || other.Healed, r.Trimmed || other.Trimmed
}

// few adds to a list as far as a report's goes.
func few(list, more []string) []string {
	for _, s := range more {
		if len(list) == maxNoted {
			break
		}
		list = append(list, transcript.Clip(s, noted))
	}
	return list
}
