package summarize

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebb/compaction"
	"ebb/compaction/audit"
	"ebb/compaction/identify"
	"ebb/sessions"
	"ebb/sessions/redact"
)

const maxSpeakers = 8

// GapNote stands in a view for hidden events: range, number, times, speakers, up to most identifiers, and the call
// that reads them. It is equal for equal events. loc is UTC when nil; lang is zh or en.
func GapNote(events []sessions.Event, loc *time.Location, lang string, most int) string {
	if len(events) == 0 {
		return ""
	}
	var values []string
	for _, id := range (audit.Source{Events: events, Location: loc}).Read().Must {
		if id.Type != identify.TypeName && len(values) < most { // speakers are listed
			values = append(values, id.Text)
		}
	}
	p := gapPhrases[compaction.Language(lang)]
	s := fmt.Sprintf(p.where, seqRange(events), len(events))
	if when := timeSpan(events, loc, p.to); when != "" {
		s += p.comma + when
	}
	s += p.stop + fmt.Sprintf(p.who, strings.Join(listSpeakers(events, p), p.list))
	if len(values) > 0 {
		s += p.stop + fmt.Sprintf(p.named, strings.Join(values, p.list))
	}
	return "[" + s + p.stop + p.read + readCall(events) + strings.TrimSpace(p.stop) + "]"
}

type gapTexts struct {
	where, to, who, count, others, model, tool, named, read string
	comma, list, stop                                       string
}

var gapPhrases = map[string]gapTexts{
	"zh": {
		where: "此处略去序号 %s，共 %d 条", to: " 至 ", who: "发言：%s", count: "%s %d 条", others: "另外 %d 人", model: "助手", tool: "工具",
		named: "其中提到：%s", read: "看原文：", comma: "，", list: "、", stop: "。",
	},
	"en": {
		where: "Left out here: numbers %s, %d in all", to: " to ", who: "Spoken by: %s", count: "%s (%d)", others: "%d others", model: "assistant",
		tool: "tools", named: "Named there: %s", read: "To read them: ", comma: ", ", list: ", ", stop: ". ",
	},
}

func seqRange(events []sessions.Event) string {
	low, high := seqEnds(events)
	if low == high {
		return strconv.FormatInt(low, 10)
	}
	return fmt.Sprintf("%d-%d", low, high)
}

func readCall(events []sessions.Event) string { return sessions.ReadCallOf(seqEnds(events)) }

// seqEnds ignores pending events.
func seqEnds(events []sessions.Event) (low, high int64) {
	for _, e := range events {
		if e.Seq > 0 && (low == 0 || e.Seq < low) {
			low = e.Seq
		}
		high = max(high, e.Seq)
	}
	return low, high
}

// timeSpan is empty without times.
func timeSpan(events []sessions.Event, loc *time.Location, to string) string {
	if loc == nil {
		loc = time.UTC
	}
	var first, last time.Time
	for _, e := range events {
		if e.CreatedAt.IsZero() {
			continue
		}
		if first.IsZero() || e.CreatedAt.Before(first) {
			first = e.CreatedAt
		}
		if e.CreatedAt.After(last) {
			last = e.CreatedAt
		}
	}
	if first.IsZero() {
		return ""
	}
	const layout = "2006-01-02 15:04"
	return first.In(loc).Format(layout) + to + last.In(loc).Format(layout)
}

// People come by frequency, then model and tools.
func listSpeakers(events []sessions.Event, p gapTexts) []string {
	count := map[string]int{}
	var people []string
	model, tools := 0, 0
	for _, e := range events {
		switch e.Role {
		case sessions.RoleUser:
			who := redact.Secrets(sessions.Speaker(e.SenderNick, e.SenderID))
			if count[who] == 0 {
				people = append(people, who)
			}
			count[who]++
		case sessions.RoleTool:
			tools++
		case sessions.RoleAssistant:
			model++
		}
	}
	slices.SortFunc(people, func(a, b string) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(a, b)
	})
	var out []string
	for _, who := range people[:min(len(people), maxSpeakers)] {
		out = append(out, fmt.Sprintf(p.count, who, count[who]))
	}
	if n := len(people) - maxSpeakers; n > 0 {
		out = append(out, fmt.Sprintf(p.others, n))
	}
	if model > 0 {
		out = append(out, fmt.Sprintf(p.count, p.model, model))
	}
	if tools > 0 {
		out = append(out, fmt.Sprintf(p.count, p.tool, tools))
	}
	return out
}
