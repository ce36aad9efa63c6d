package compaction

import (
	"context"
	"strings"

	"github.com/rs/zerolog"
)

// audited returns a text that tells the chunk after the audit. A text that passes costs no call. For another the model
// is asked once to mend it, the better of the two texts is taken, and what it still lacks is added by hand. Whatever
// comes of that, there is a summary: the audit improves one and never stands in its way.
func (t *telling) audited(ctx context.Context, c chunk, text string) string {
	src := AuditSource{
		Events: c.events, Previous: t.res.Text, Location: t.Location, Budget: t.Target, Count: t.Counter.Count, cleaned: t.cleaned,
	}
	by := src.read()
	found := t.examine(by, text)
	if found.worthAsking() {
		if mended, again, ok := t.repair(ctx, c, by, text, found); ok {
			text, found, t.res.Repaired = mended, again, true
		}
	}
	// A model that never minds the length must not fill the window, nor stop compactions for good: what its text loses
	// here is in the log.
	if t.Most > 0 && t.Counter.Count(text) > t.Most {
		text, _ = t.Counter.shorten(text, t.Most, func(s string) string { return s })
		found.Audit, t.res.Trimmed = by.audit(text), true
	}
	t.res.note(found.Audit)
	if found.Passed() {
		return text
	}
	healed, changed := Heal(text, found.Audit, t.Target/mustShare, t.Counter.Count, t.Language)
	t.res.Healed = t.res.Healed || changed
	return healed
}

// examined is what checking a text against its source found.
type examined struct {
	Audit
	lacks []string // headings
}

func (t *telling) examine(by auditor, text string) examined {
	return examined{Audit: by.audit(text), lacks: t.layout.lacking(text, t.Language)}
}

// goodRecall is the share of identifiers from which on a text is not written again for the rest: they are cheaper to
// append than to ask for.
const goodRecall = 0.9

// worthAsking reports whether the model should mend the text. What it made up, or a section that it left out, is nothing
// that an addition mends.
func (e examined) worthAsking() bool {
	return len(e.Invented)+len(e.lacks) > 0 || e.Recall < goodRecall
}

func (e examined) faults() int { return len(e.Missing) + len(e.Invented) + len(e.lacks) }

// repair asks once for a better text, and reports whether one came. No trouble is worth a second try.
func (t *telling) repair(ctx context.Context, c chunk, by auditor, text string, found examined) (string, examined, bool) {
	user := t.focus
	if len(found.lacks) > 0 {
		user += Fence("sections", strings.Join(found.lacks, "\n")) + "\n\n"
	}
	user += RepairPrompt(text, found.Audit, t.Language)
	system := t.instruction(true)
	used := t.Counter.Count(system) + int(float64(t.Counter.Count(user))*estimateMargin) + requestFrame
	r := CompleteRequest{Model: t.model, System: system, User: user, MaxOutput: min(t.mostOutput(), t.Context-used)}
	if r.MaxOutput < t.Counter.Count(text) {
		return "", examined{}, false // there is no room to write it again
	}
	_, mended, err := t.ask(ctx, r, c.events)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Str("model", r.Model).Msg("Summary not repaired by its model")
		return "", examined{}, false
	}
	again := t.examine(by, mended)
	return mended, again, again.faults() < found.faults()
}

// maxNoted bounds the lists of a report, and noted one entry of them in characters.
const (
	maxNoted = 8
	noted    = 80
)

// note keeps what an audit found, and of several chunks the worst.
func (r *Report) note(a Audit) {
	r.merge(Report{Recall: a.Recall, Precision: a.Precision, Missing: a.Missing, Invented: a.Invented})
}

// merge adds what another summary's audit found to a report.
func (r *Report) merge(other Report) {
	r.Recall, r.Precision = min(r.Recall, other.Recall), min(r.Precision, other.Precision)
	r.Missing, r.Invented = few(r.Missing, other.Missing), few(r.Invented, other.Invented)
	r.Repaired, r.Healed = r.Repaired || other.Repaired, r.Healed || other.Healed
}

// few adds to a list as far as a report's goes.
func few(list, more []string) []string {
	for _, s := range more {
		if len(list) == maxNoted {
			break
		}
		list = append(list, clip(s, noted))
	}
	return list
}
