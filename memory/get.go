package memory

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"ebb/sessions"
)

// Paths are virtual: they name rows that the reader may see, never files.
//
//	MEMORY.md                        everything in force, newest first
//	memory/<scope>/<2006-01-02>.md   one scope's memories of one day
//	memory/<scope>/<2006-01-02>.md#7 the memory with that number, with its former and later values
//	session_events/<seq>             the session's log from that event on
var (
	dayPath   = regexp.MustCompile(`^memory/(user|group|team|session)/(\d{4}-\d{2}-\d{2})\.md(?:#(\d{1,18}))?$`)
	eventPath = regexp.MustCompile(`^session_events/(\d{1,18})$`)
)

// Limits of one read, in lines.
const (
	MaxLines     = 200
	DefaultLines = 50 // where the reader does not say
	maxRead      = 1000
)

// ErrUnreadable says that the storage could not be read; what it wraps is for the log, not for a model.
var ErrUnreadable = errors.New("memory can't be read at the moment")

// Get reads lines of a virtual path, from the line from, counted from 1. Its errors are written for the model, but for
// those that wrap ErrUnreadable.
func Get(ctx context.Context, s Store, r Reader, path string, from, lines int, loc *time.Location) (string, error) {
	from = max(1, from)
	if lines <= 0 {
		lines = DefaultLines
	}
	lines = min(lines, MaxLines)
	if m := eventPath.FindStringSubmatch(path); m != nil {
		seq, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return "", fmt.Errorf("path %q: the event number is out of range", path)
		}
		first := max(seq, 1) + int64(from) - 1
		events, err := s.Range(ctx, r.Key, first-1, first-1+int64(lines), lines)
		if err != nil {
			return "", fmt.Errorf("%w: events: %w", ErrUnreadable, err)
		}
		return EventLines(events, loc), nil
	}
	day := dayPath.FindStringSubmatch(path)
	if day == nil && path != "MEMORY.md" {
		return "", fmt.Errorf("no such path %q; paths are MEMORY.md, memory/<user|group|team|session>/<YYYY-MM-DD>.md and session_events/<number>, as memory_search gives them", HeadOf(path))
	}
	if day != nil && day[3] != "" {
		id, err := strconv.ParseInt(day[3], 10, 64)
		if err != nil {
			return "", fmt.Errorf("path %q: the number is out of range", path)
		}
		out, err := valueLines(ctx, s, r, id, loc)
		if err != nil {
			return "", err
		}
		return pageOf(path, out, from, lines), nil
	}
	all, err := s.Pinned(ctx, r, maxRead)
	if err != nil {
		return "", fmt.Errorf("%w: memories: %w", ErrUnreadable, err)
	}
	var out []string
	for _, m := range all {
		if day != nil && (string(m.Scope) != day[1] || m.CreatedAt.In(loc).Format(time.DateOnly) != day[2]) {
			continue
		}
		out = append(out, fmt.Sprintf("- [%s %s #%d] %s", m.Scope, m.CreatedAt.In(loc).Format("2006-01-02 15:04"), m.ID, m.Content))
	}
	if day != nil {
		digests, err := digestLines(ctx, s, r, day[1], day[2], loc)
		if err != nil {
			return "", err
		}
		out = append(digests, out...)
	}
	return pageOf(path, out, from, lines), nil
}

// pageOf is so many lines of a path, from the line from on.
func pageOf(path string, all []string, from, lines int) string {
	if from > len(all) {
		return fmt.Sprintf("%s has %d lines; nothing from line %d on.", path, len(all), from)
	}
	return strings.Join(all[from-1:min(len(all), from-1+lines)], "\n")
}

// HeadOf shortens what a model wrote before it is said back.
func HeadOf(s string) string {
	if rs := []rune(s); len(rs) > 80 {
		return string(rs[:80]) + "…"
	}
	return s
}

// maxEventText bounds what one event shows in a result, in characters.
const maxEventText = 600

// EventLines shows events one a line: number, time, speaker, words.
func EventLines(events []sessions.Event, loc *time.Location) string {
	if len(events) == 0 {
		return "no events there"
	}
	var b strings.Builder
	for _, e := range events {
		who := string(e.Role)
		if e.Role == sessions.RoleUser {
			who = sessions.Speaker(e.SenderNick, e.SenderID)
		}
		text := strings.Join(strings.Fields(e.Content), " ")
		if rs := []rune(text); len(rs) > maxEventText {
			text = string(rs[:maxEventText]) + "…"
		}
		fmt.Fprintf(&b, "#%d %s %s: %s\n", e.Seq, e.CreatedAt.In(loc).Format("2006-01-02 15:04"), who, text)
	}
	return b.String()
}
