package show

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// Log is the log of sessions. See [memory.Searcher].
type Log interface {
	Range(ctx context.Context, key sessions.Key, from, through int64, limit int) ([]sessions.Event, error)
	History(ctx context.Context, key sessions.Key, q memory.LogQuery) (memory.LogMatches, error)
}

// LogReader reads a session's log for a model, in pages.
type LogReader struct {
	Log Log
	Key sessions.Key
	// Current are the running turn's events, not in the log yet, with their numbers to come.
	Current  []sessions.Event
	Room     int // bytes of a page; 0: the default
	Location *time.Location
	// Shown is called for each event that Whole shows the beginning of; nil: not noted.
	Shown func(e sessions.Event)
}

// readAhead is the number of events that one page reads.
const readAhead = 20

// Whole reads the events from..through. page counts the pages of a long first event. call writes the call that reads a
// range from a page on.
func (r LogReader) Whole(ctx context.Context, from, through int64, page int, call func(span string, page int) string) (string, error) {
	most := readAhead
	if page > 1 {
		most = 1 // a page of the first event
	}
	events, err := r.Log.Range(ctx, r.Key, from-1, through, most)
	if err != nil {
		return "", fmt.Errorf("%w: events: %w", ErrUnreadable, err)
	}
	for _, e := range r.Current {
		if e.Seq >= from && e.Seq <= through && len(events) < most {
			events = append(events, e)
		}
	}
	if len(events) == 0 {
		return fmt.Sprintf("there are no events with the numbers %s", formatSpan(from, through)), nil
	}
	room := roomOf(r.Room)
	first := r.eventLine(events[0])
	if parts := splitPages(first, room); len(parts) > 1 || page > 1 {
		if page <= 1 {
			r.noteShown(events[0])
		}
		return r.longPage(events[0].Seq, through, parts, page, call), nil
	}
	var b strings.Builder
	last := int64(0)
	for _, e := range events {
		line := r.eventLine(e)
		if b.Len() > 0 && b.Len()+len(line) > room {
			break
		}
		b.WriteString(line)
		r.noteShown(e)
		last = e.Seq
	}
	if last < through && (last < events[len(events)-1].Seq || len(events) == readAhead) {
		return fmt.Sprintf("events %s of %s; next: %s\n%s", formatSpan(events[0].Seq, last), formatSpan(from, through), call(formatSpan(last+1, through), 1), b.String()), nil
	}
	return b.String(), nil
}

func (r LogReader) noteShown(e sessions.Event) {
	if r.Shown != nil {
		r.Shown(e)
	}
}

func (r LogReader) longPage(seq, through int64, parts []string, page int, call func(span string, page int) string) string {
	if page = max(1, page); page > len(parts) {
		return fmt.Sprintf("event %d has no page %d; the last is page %d: %s", seq, page, len(parts), call(formatSpan(seq, through), len(parts)))
	}
	next := ", the last"
	switch {
	case page < len(parts):
		next = "; next: " + call(formatSpan(seq, through), page+1)
	case seq < through:
		next = ", the last; next: " + call(formatSpan(seq+1, through), 1)
	}
	return fmt.Sprintf("event %d, page %d of %d%s\n%s", seq, page, len(parts), next, parts[page-1])
}

// Find lists a page of matches, the newest last. whole and before write the calls for one event and for older events.
func (r LogReader) Find(ctx context.Context, q memory.LogQuery, whole func(seq int64) string, before func(seq int64) string) (string, error) {
	room := roomOf(r.Room)
	q.Chars = min(q.Chars, room/4) // a character takes at most four bytes
	found, err := r.Log.History(ctx, r.Key, q)
	if err != nil {
		return "", fmt.Errorf("%w: history: %w", ErrUnreadable, err)
	}
	var lines []string
	next, size := found.From, 0
	for i, e := range found.Events {
		line := r.eventLine(e.Event)
		if e.Cut {
			line = strings.TrimSuffix(line, "\n") + "… [whole: " + whole(e.Seq) + "]\n"
		}
		if size += len(line); i > 0 && size > room {
			next = found.Events[i-1].Seq
			break
		}
		lines = append(lines, line)
		if i+1 == q.Limit && e.Seq > 1 {
			next = e.Seq
		}
	}
	slices.Reverse(lines)
	head := ""
	if len(lines) == 0 {
		head = "no events found"
	}
	// Finds older than the compared part are not all there are.
	if next = max(next, found.From); next > max(1, q.From) {
		head += map[bool]string{true: "; ", false: ""}[head != ""] + "older ones: " + before(next)
	}
	if head != "" {
		head += "\n"
	}
	return head + strings.Join(lines, ""), nil
}

func (r LogReader) eventLine(e sessions.Event) string {
	who := string(e.Role)
	switch {
	case e.Role == sessions.RoleUser:
		who = sessions.Speaker(e.SenderNick, e.SenderID)
	case e.Role == sessions.RoleTool && e.ToolName != "":
		who = "tool " + memory.HeadOf(strings.Join(strings.Fields(e.ToolName), " "))
	}
	text := e.Content
	for _, c := range e.ToolCalls {
		text += fmt.Sprintf(" [called %s %s]", c.Name, c.Arguments)
	}
	// A message can't forge the head of an event.
	text = forgedHead.ReplaceAllString(text, "$1> $2")
	return fmt.Sprintf("#%d %s %s: %s\n", e.Seq, e.CreatedAt.In(r.Location).Format("2006-01-02 15:04"), who, text)
}

var forgedHead = regexp.MustCompile(`([\n\r\v\f\x{85}\x{2028}\x{2029}])([\s\p{Z}]*[#＃][\s\p{Z}]*\p{Nd})`)

var rangePath = regexp.MustCompile(`^#?(\d{1,18})(?:\s*[-–~]\s*#?(\d{1,18}))?$`)

// ParseSpan reads a range of event numbers, as "10-20" or "12".
func ParseSpan(text string) (from, through int64, ok bool) {
	m := rangePath.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, 0, false
	}
	from, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0, 0, false
	}
	if through = from; m[2] != "" {
		if through, err = strconv.ParseInt(m[2], 10, 64); err != nil {
			return 0, 0, false
		}
	}
	return from, through, from > 0 && through >= from
}

func formatSpan(from, through int64) string {
	if from == through {
		return strconv.FormatInt(from, 10)
	}
	return fmt.Sprintf("%d-%d", from, through)
}

// CallOf writes a tool call for a model. Arguments are pairs of names and values; zero values are left out.
func CallOf(tool string, arguments ...any) string {
	var b strings.Builder
	for i := 0; i+1 < len(arguments); i += 2 {
		if v := arguments[i+1]; v == "" || v == 0 || v == int64(0) {
			continue
		}
		value, _ := json.Marshal(arguments[i+1]) // strings and integers can't fail
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", arguments[i], value)
	}
	return tool + " {" + b.String() + "}"
}
