package show

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// Paths are virtual: they name rows that the reader may see, never files.
//
//	MEMORY.md                        everything in force, newest first
//	memory/<scope>/<2006-01-02>.md   one scope's memories of one day
//	memory/<scope>/<2006-01-02>.md#7 the memory with that number, with its former and later values
//	session_events/<seq>             an event of the session's log, whole
//	session_events/<seq>-<seq>       a range of them
var (
	dayPath   = regexp.MustCompile(`^memory/(user|group|team|session)/(\d{4}-\d{2}-\d{2})\.md(?:#(\d{1,18}))?$`)
	eventPath = regexp.MustCompile(`^session_events/(\d{1,18}(?:-\d{1,18})?)$`)
)

// maxRead bounds the memories of one path.
const maxRead = 1000

// Library is memory as a reader may see it. See [memory.Facts] and [memory.Digests].
type Library interface {
	Pinned(ctx context.Context, r memory.Reader, limit int) ([]memory.Memory, error)
	Values(ctx context.Context, r memory.Reader, id int64) ([]memory.Memory, error)
	DigestsOf(ctx context.Context, r memory.Reader, from, to time.Time) ([]memory.Memory, error)
}

// Get reads a page of a virtual path, from 1. Its errors are for the model, except those that wrap [ErrUnreadable].
func Get(ctx context.Context, s Library, r memory.Reader, path string, page int, log LogReader) (string, error) {
	if m := eventPath.FindStringSubmatch(path); m != nil {
		from, through, ok := ParseSpan(m[1])
		if !ok {
			return "", fmt.Errorf("path %q: no such range of event numbers; MEMORY.md and session_events/12-20 are paths", memory.HeadOf(path))
		}
		return log.Whole(ctx, from, through, page, func(span string, page int) string { return callGet("session_events/"+span, page) })
	}
	loc := log.Location
	day := dayPath.FindStringSubmatch(path)
	if day == nil && path != "MEMORY.md" {
		return "", fmt.Errorf("no such path %q; paths are MEMORY.md, memory/<user|group|team|session>/<YYYY-MM-DD>.md and session_events/<number or range>, as memory_search gives them", memory.HeadOf(path))
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
		return pageOf(path, out, page, log.Room), nil
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
		out = append(out, fmt.Sprintf("- [%s %s #%d] (%s) %s", m.Scope, m.Time().In(loc).Format("2006-01-02 15:04"), m.ID, m.Source(), memory.InLine(m.Content)))
	}
	if day != nil {
		digests, err := digestLines(ctx, s, r, day[1], day[2], loc)
		if err != nil {
			return "", err
		}
		out = append(digests, out...)
	}
	return pageOf(path, out, page, log.Room), nil
}

func pageOf(path string, lines []string, page, room int) string {
	if len(lines) == 0 {
		return path + " has 0 lines."
	}
	return Page(strings.Join(lines, "\n"), page, room, func(page int) string { return callGet(path, page) })
}

func callGet(path string, page int) string {
	if page == 1 {
		page = 0
	}
	return CallOf(sessions.GetTool, "path", path, "page", page)
}

func digestLines(ctx context.Context, s Library, r memory.Reader, scope, date string, loc *time.Location) ([]string, error) {
	day, err := time.ParseInLocation(time.DateOnly, date, loc)
	if err != nil {
		return nil, nil //nolint:nilerr // no day has that date, and no digest
	}
	digests, err := s.DigestsOf(ctx, r, day, day.AddDate(0, 0, 1))
	if err != nil {
		return nil, fmt.Errorf("%w: digests: %w", ErrUnreadable, err)
	}
	var out []string
	for _, m := range digests {
		if string(m.Scope) == scope {
			out = append(out, fmt.Sprintf("[%s %s #%d]", m.Scope, date, m.ID))
			out = append(out, strings.Split(m.Content, "\n")...)
		}
	}
	return out, nil
}
