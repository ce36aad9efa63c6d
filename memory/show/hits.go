package show

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ebb/memory"
)

// HitLine shows one find in a line: path, time, speaker, reasons, words.
func HitLine(h memory.Hit, loc *time.Location) string {
	about := h.At.In(loc).Format("2006-01-02 15:04")
	if h.Who != "" {
		about += " " + h.Who
	}
	if len(h.Why) > 0 {
		about += "; matched: " + strings.Join(h.Why, ", ")
	}
	if h.Outdated {
		about += "; OUTDATED, corrected later 已被更正"
	}
	return fmt.Sprintf("- %s (%s): %s\n", h.Path, about, strings.Join(strings.Fields(h.Content), " "))
}

func valueLines(ctx context.Context, s Library, r memory.Reader, id int64, loc *time.Location) ([]string, error) {
	values, err := s.Values(ctx, r, id)
	if err != nil {
		return nil, fmt.Errorf("%w: memory %d: %w", ErrUnreadable, id, err)
	}
	if !slices.ContainsFunc(values, func(m memory.Memory) bool { return m.ID == id }) {
		return nil, fmt.Errorf("there is no memory #%d to read here; memory_search finds those there are", id)
	}
	out := make([]string, 0, len(values))
	for _, m := range values {
		about := m.Source()
		if m.StartSeq > 0 && m.SourceSession == r.Key {
			about += fmt.Sprintf("; from session_events/%d", m.StartSeq)
		}
		if m.SupersededBy != 0 {
			about += fmt.Sprintf("; OUTDATED 已被更正: see #%d", m.SupersededBy)
		}
		out = append(out, fmt.Sprintf("- [%s %s #%d] (%s) %s", m.Scope, m.Time().In(loc).Format("2006-01-02 15:04"), m.ID, about, memory.InLine(m.Content)))
	}
	return out, nil
}

// ErrUnreadable says that the storage could not be read. The wrapped error is for the log, not for a model.
var ErrUnreadable = errors.New("memory can't be read at the moment")
