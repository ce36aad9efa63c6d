package summarize

import (
	"context"
	"strings"

	"github.com/rs/zerolog"

	"ebb/compaction"
	"ebb/compaction/audit"
	"ebb/compaction/transcript"
)

// The model is asked at most once, the better text wins, and healing adds the rest.
func (t *summaryRun) auditText(ctx context.Context, c chunkRequest, text string) string {
	src := audit.Source{
		Events: c.events, Previous: t.res.Text, Location: t.summarizer.Location, Budget: t.Target, Count: t.summarizer.Counter.Count, Cleaned: t.cleaned,
	}
	by, most := src.Read(), t.longestSummary(c)
	found := t.examineText(by, text, most)
	if found.worthAsking() {
		if mended, again, ok := t.repairText(ctx, c, by, text, found, most); ok {
			text, found, t.res.Repaired = mended, again, true
		}
	}
	// A model that ignores the length must neither fill the window nor stop compactions. The report names the losses.
	if found.tokens > 0 {
		text, _ = t.summarizer.Counter.Shorten(text, t.draftLength(most), func(s string) string { return s })
		found.Findings, t.res.Trimmed = by.Compare(text), true
	}
	t.res.addFindings(found.Findings)
	healed, changed := t.healText(text, found.Findings)
	t.res.Healed = t.res.Healed || changed
	return healed
}

func (t *summaryRun) healText(text string, a audit.Findings) (healed string, changed bool) {
	if a.Passed() {
		return text, false
	}
	return audit.Heal(text, a, t.Target/compaction.RequiredShare, t.summarizer.Counter.Count, t.summarizer.Language)
}

type draftCheck struct {
	audit.Findings
	lacks  []string // missing headings
	tokens int      // size of the healed text if it is too long; else 0
}

func (t *summaryRun) examineText(by audit.Reference, text string, most int) draftCheck {
	found := draftCheck{Findings: by.Compare(text), lacks: t.layout.missingHeadings(text, t.summarizer.Language)}
	if most > 0 {
		healed, _ := t.healText(text, found.Findings)
		if n := t.summarizer.Counter.Count(healed); n > most {
			found.tokens = n
		}
	}
	return found
}

// longestSummary bounds the healed summary up to this chunk in tokens; 0: none. A summary of a large source must be
// shorter than it.
func (t *summaryRun) longestSummary(c chunkRequest) int {
	most := t.MaxTokens
	if source := compaction.TokensOf(c.events) + t.summarizer.Counter.Count(t.res.Text); source > audit.LargeSource {
		if n := int(compaction.MaxRatio * float64(source)); most == 0 || n < most {
			most = n
		}
	}
	if section := t.attachments(); most > 0 && section != "" {
		most = max(compaction.MinSummary, most-t.summarizer.Counter.Count(section))
	}
	return most
}

// Healing keeps the length within most.
func (t *summaryRun) draftLength(most int) int {
	return max(compaction.MinSummary, most-compaction.HealAllowance(t.Target))
}

// Above goodRecall, appending is cheaper.
const goodRecall = 0.9

// worthAsking reports faults that healing repairs badly or not at all, and a long text: cutting is the last resort.
func (e draftCheck) worthAsking() bool {
	return len(e.Invented)+len(e.lacks) > 0 || e.Recall < goodRecall || e.tokens > 0
}

// A fitting length is better than identifiers.
func (e draftCheck) betterThan(old draftCheck) bool {
	if (e.tokens > 0) != (old.tokens > 0) {
		return e.tokens == 0
	}
	return e.countFaults() < old.countFaults()
}

func (e draftCheck) countFaults() int { return len(e.Missing) + len(e.Invented) + len(e.lacks) }

// The bool says that the new text is better.
func (t *summaryRun) repairText(ctx context.Context, c chunkRequest, by audit.Reference, text string, found draftCheck, most int) (string, draftCheck, bool) {
	user := t.focus
	if len(found.lacks) > 0 {
		user += transcript.Fence("sections", strings.Join(found.lacks, "\n")) + "\n\n"
	}
	user += audit.RepairPrompt(text, found.Findings, found.tokens, t.draftLength(most), t.summarizer.Language)
	system := t.writeInstructions(true)
	used := t.summarizer.Counter.Count(system) + int(float64(t.summarizer.Counter.Count(user))*estimateMargin) + requestFrame
	r := t.request(system, user, min(t.mostOutput(), t.summarizer.Context-used))
	if r.MaxOutput < t.summarizer.Counter.Count(text) {
		return "", draftCheck{}, false // no room to write it again
	}
	_, mended, err := t.askModel(ctx, r, c.events)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Str("model", nameOf(r.Model)).Msg("Summary repair failed")
		return "", draftCheck{}, false
	}
	again := t.examineText(by, mended, most)
	return mended, again, again.betterThan(found)
}
