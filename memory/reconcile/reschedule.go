package reconcile

import (
	"regexp"
	"strings"

	"ebb/memory"
	"ebb/memory/classify"
	"ebb/memory/dates"
	"ebb/memory/text"
)

// reschedules reports whether a content moves the date of a stored fact: "联调改到下周一上午十点" after "联调定在后天下午三点". Both begin
// with the same words, followed by a time only. The speaker does not count, unless the event can be anybody's own, such
// as a day off.
//
// It finds moves that [corrects] misses: those by another speaker, and those behind a speaker's name, which corrects
// takes as part of the subject.
func reschedules(d memory.Draft, m memory.Memory) bool {
	if d.Key != "" && m.Key != "" && text.NormalizeKey(d.Key) != m.Key {
		return false
	}
	now, by := splitSpeaker(d.Content)
	old, was := splitSpeaker(m.Content)
	to, from := matchParts(now, movedRE, movedEnglishRE), matchParts(old, movedRE, movedEnglishRE, datedRE, datedEnglishRE)
	if to == nil || from == nil || headOf(to[1]) != headOf(from[1]) || len([]rune(headOf(to[1]))) < 2 || pronounRE.MatchString(headOf(to[1])) {
		return false
	}
	then, _, _ := strings.Cut(to[2], ",") // a reason may follow
	if !dates.IsTime(then) || !dates.IsTime(strings.TrimRight(from[2], ".。!")) {
		return false
	}
	same := by == was && d.SubjectID == m.SubjectID
	return same || !classify.SelfReference(to[1]) && !ownAffairRE.MatchString(to[1])
}

// splitSpeaker is a content as it is matched, and the name of the speaker before it.
func splitSpeaker(content string) (said, by string) {
	said = text.Canonical(content)
	if m := classify.SpeakerLead(content); m != "" {
		by = text.Canonical(m)
		said = strings.TrimSpace(strings.TrimPrefix(said, by))
	}
	said = strings.TrimSpace(reasonRE.ReplaceAllString(said, ""))
	return strings.TrimRight(said, "。.!;； "), by
}

// spaced lets a blank in an expression match any number of them.
func spaced(expr string) string { return strings.ReplaceAll(expr, " ", `\s*`) }

// matchParts returns the groups of the first pattern that matches a text; nil for none.
func matchParts(text string, patterns ...*regexp.Regexp) []string {
	for _, re := range patterns {
		if m := re.FindStringSubmatch(text); m != nil {
			return m
		}
	}
	return nil
}

// headOf is the dated event, without words that stand before or behind any event.
func headOf(words string) string { return text.Normalize(headTrimRE.ReplaceAllString(words, "")) }

var (
	reasonRE = regexp.MustCompile(`^(?:(?:更正|纠正|通知|更新|correction|update)(?:一下)?[:,]? ?|因为?[^,]{1,24}, ?)+`)

	movedRE        = regexp.MustCompile(spaced(`^([^,;。:]{2,40}?)(?:已经?|又|现在|临时|都|统一|再次?|决定|最终|正式|需要?|要|将|被)*(?:改到|改为|改成|改在|改期到|推迟到|推迟至|推到|延期到|延期至|延到|延后到|提前到|提前至|挪到|移到|调到|调整到|调整为|顺延到|顺延至|更改为|变更为)了? ?(.+)$`))
	movedEnglishRE = regexp.MustCompile(`^([^,;:]{2,60}?) (?:(?:is|was|has been|have been|got|gets|will be|now|been) )*(?:moved|postponed|rescheduled|pushed(?: back)?|brought forward|delayed|shifted|changed) (?:to|until|till) (.+)$`)

	datedRE        = regexp.MustCompile(spaced(`^([^,;。:]{2,40}?)(?:已经?|初步|暂时?|先|原|原来|现在|计划|安排|预计|拟|决定|还)*(?:定在|定于|定到|定为|订在|约在|放在|排在|安排在|计划在|是在|是|在|为|于) ?(.+)$`))
	datedEnglishRE = regexp.MustCompile(`^([^,;:]{2,60}?) (?:(?:is|was|are|will be|has been|now) )*(?:set |planned |scheduled |fixed |due )?(?:on|at|in|for|is|was|will be) (.+)$`)

	headTrimRE  = regexp.MustCompile(`^(?:the|our|this|本次|这次|我们的?|咱们的?|那个|这个) ?|(?:的?(?:时间|日期|日子)| (?:time|date))$`)
	pronounRE   = regexp.MustCompile(`^(?:它|它们|这|那|这个|那个|这次|时间|日期|都|it|that|this|they|we)$`)
	ownAffairRE = regexp.MustCompile(`年假|请假|休假|假期|调休|体检|面试|出差|航班|机票|高铁|火车|车票|考试|答辩|婚礼|生日|搬家|值班|轮班|复诊|入职|离职|` +
		`\b(?:leave|vacation|holiday|flight|train|interview|exam|birthday|wedding|appointment|shift|trip|day off)\b`)
)
