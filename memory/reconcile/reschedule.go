package reconcile

import (
	_ "embed"
	"regexp"
	"strings"

	"ebb/memory"
	"ebb/memory/classify"
	"ebb/memory/dates"
	"ebb/memory/text"
	"ebb/sessions/rules"
)

// movesDate reports whether a content moves the date of a stored fact: "联调改到下周一上午十点" after "联调定在后天下午三点". Both begin
// with the same words, with only a time behind. The speaker counts only for events that can be anybody's own, such as
// a day off. It finds moves that [scoreCorrection] misses, by or behind the name of another speaker.
func movesDate(d memory.Draft, m memory.Memory) bool {
	if d.Key != "" && m.Key != "" && text.NormalizeKey(d.Key) != m.Key {
		return false
	}
	now, by := splitSpeaker(d.Content)
	old, was := splitSpeaker(m.Content)
	to, from := matchParts(now, movedRE()), matchParts(old, movedRE())
	if from == nil {
		from = matchParts(old, datedRE())
	}
	if to == nil || from == nil || headOf(to[1]) != headOf(from[1]) || len([]rune(headOf(to[1]))) < 2 || pronounRE().MatchString(headOf(to[1])) {
		return false
	}
	then, _, _ := strings.Cut(to[2], ",") // a reason may follow
	if !dates.IsTime(then) || !dates.IsTime(strings.TrimRight(from[2], ".。!")) {
		return false
	}
	same := by == was && d.SubjectID == m.SubjectID
	return same || !classify.SelfReference(to[1]) && !ownAffairRE().MatchString(to[1])
}

// splitSpeaker returns the form for matching, and the name before it.
func splitSpeaker(content string) (said, by string) {
	said = text.Canonical(content)
	if m := classify.SpeakerLead(content); m != "" {
		by = text.Canonical(m)
		said = strings.TrimSpace(strings.TrimPrefix(said, by))
	}
	said = strings.TrimSpace(reasonRE().ReplaceAllString(said, ""))
	return strings.TrimRight(said, "。.!;； "), by
}

func matchParts(text string, patterns []*regexp.Regexp) []string {
	for _, re := range patterns {
		if m := re.FindStringSubmatch(text); m != nil {
			return m
		}
	}
	return nil
}

// headOf is the dated event, without words that fit any event.
func headOf(words string) string { return text.Normalize(headTrimRE().ReplaceAllString(words, "")) }

//go:embed rules.tsv
var ruleLines string

var (
	ruleFile = rules.Read(ruleLines)

	reasonRE    = ruleFile.Regexp("reason")
	movedRE     = ruleFile.Each("moved")
	datedRE     = ruleFile.Each("dated")
	headTrimRE  = ruleFile.Regexp("headTrim")
	pronounRE   = ruleFile.Regexp("pronoun")
	ownAffairRE = ruleFile.Regexp("ownAffair")
)
