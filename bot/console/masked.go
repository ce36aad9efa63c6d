package console

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"ebb/memory"
	"ebb/pages"
	"ebb/sessions"
)

// masked are the lists as a viewer sees them: without the texts of private chats. It wraps the lists as a whole, so that
// no page can forget it.
type masked struct{ pages.Lists }

// mask replaces a text by its length.
func mask(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("••• (%d)", utf8.RuneCountInString(text))
}

// Sessions implements pages.Lists.
func (m masked) Sessions(ctx context.Context, f pages.SessionFilter, p pages.Page) ([]pages.SessionRow, string, error) {
	rows, next, err := m.Lists.Sessions(ctx, f, p)
	for i := range rows {
		rows[i].Session = maskSession(rows[i].Session)
	}
	return rows, next, err
}

// Session implements pages.Lists.
func (m masked) Session(ctx context.Context, key sessions.Key) (sessions.Session, error) {
	s, err := m.Lists.Session(ctx, key)
	return maskSession(s), err
}

func maskSession(s sessions.Session) sessions.Session {
	if private(s) {
		s.Title, s.Pinned, s.CompactError = mask(s.Title), mask(s.Pinned), mask(s.CompactError)
	}
	return s
}

// Compactions implements pages.Lists.
func (m masked) Compactions(ctx context.Context, f pages.CompactionFilter, p pages.Page) ([]pages.CompactionRow, string, error) {
	rows, next, err := m.Lists.Compactions(ctx, f, p)
	for i := range rows {
		rows[i] = maskRow(rows[i])
	}
	return rows, next, err
}

func maskRow(r pages.CompactionRow) pages.CompactionRow {
	if r.Private {
		r.Title, r.LogEntry = mask(r.Title), maskEntry(r.LogEntry)
	}
	return r
}

func maskEntry(e sessions.LogEntry) sessions.LogEntry {
	e.Focus, e.Error, e.Audit = mask(e.Focus), mask(e.Error), ""
	return e
}

// Attempt implements pages.Lists.
func (m masked) Attempt(ctx context.Context, key sessions.Key, id int64) (pages.Attempt, error) {
	a, err := m.Lists.Attempt(ctx, key, id)
	if !a.Private {
		return a, err
	}
	a.CompactionRow, a.Summary = maskRow(a.CompactionRow), mask(a.Summary)
	for _, r := range a.Receipts {
		for _, facts := range [][]pages.Fact{r.Saved, r.Known, r.Corrected} {
			for i := range facts {
				facts[i].Content = mask(facts[i].Content)
			}
		}
	}
	return a, err
}

// Talk implements pages.Lists.
func (m masked) Talk(ctx context.Context, key sessions.Key, p pages.Page) ([]sessions.Event, string, error) {
	events, next, err := m.Lists.Talk(ctx, key, p)
	if err != nil {
		return nil, "", err
	}
	events, err = m.maskEvents(ctx, key, events)
	return events, next, err
}

// Open implements pages.Lists.
func (m masked) Open(ctx context.Context, key sessions.Key, limit int) ([]sessions.Event, error) {
	events, err := m.Lists.Open(ctx, key, limit)
	if err != nil {
		return nil, err
	}
	return m.maskEvents(ctx, key, events)
}

// DeadLetters implements pages.Lists.
func (m masked) DeadLetters(ctx context.Context, limit int) ([]sessions.Event, error) {
	events, err := m.Lists.DeadLetters(ctx, limit)
	for i, e := range events {
		if e.Message == nil || e.Message.ConversationType != sessions.Group {
			events[i] = maskEvent(e)
		}
	}
	return events, err
}

// maskEvents masks the events of a private chat.
func (m masked) maskEvents(ctx context.Context, key sessions.Key, events []sessions.Event) ([]sessions.Event, error) {
	s, err := m.Lists.Session(ctx, key)
	if err != nil {
		return nil, err
	}
	if private(s) {
		for i, e := range events {
			events[i] = maskEvent(e)
		}
	}
	return events, nil
}

func maskEvent(e sessions.Event) sessions.Event {
	e.Content, e.SenderNick, e.Message = mask(e.Content), mask(e.SenderNick), nil
	calls := make([]sessions.ToolCall, len(e.ToolCalls))
	for i, call := range e.ToolCalls {
		calls[i] = sessions.ToolCall{ID: call.ID, Name: call.Name, Arguments: mask(call.Arguments)}
	}
	e.ToolCalls = calls
	return e
}

// Cuts implements pages.Lists.
func (m masked) Cuts(ctx context.Context, key sessions.Key, from, through int64, limit int) ([]sessions.LogEntry, error) {
	cuts, err := m.Lists.Cuts(ctx, key, from, through, limit)
	if err != nil {
		return nil, err
	}
	s, err := m.Lists.Session(ctx, key)
	if err == nil && private(s) {
		for i, e := range cuts {
			cuts[i] = maskEntry(e)
		}
	}
	return cuts, err
}

// Memories implements pages.Lists. A word of the filter would reveal what a masked memory says.
func (m masked) Memories(ctx context.Context, f pages.MemoryFilter, p pages.Page) ([]memory.Memory, string, error) {
	rows, next, err := m.Lists.Memories(ctx, f, p)
	shown := rows[:0]
	for _, r := range rows {
		if r.SourceGroup == "" && len(f.Words) > 0 {
			continue
		}
		shown = append(shown, maskMemory(r))
	}
	return shown, next, err
}

// Memory implements pages.Lists.
func (m masked) Memory(ctx context.Context, id int64) (memory.Memory, []memory.Memory, error) {
	one, values, err := m.Lists.Memory(ctx, id)
	for i := range values {
		values[i] = maskMemory(values[i])
	}
	return maskMemory(one), values, err
}

// maskMemory masks a memory that was said in a private chat.
func maskMemory(m memory.Memory) memory.Memory {
	if m.SourceGroup == "" {
		m.Content, m.Key, m.SaidByNick, m.SubjectNick = mask(m.Content), mask(m.Key), mask(m.SaidByNick), mask(m.SubjectNick)
	}
	return m
}

// Debts implements pages.Lists. A reason may repeat words of a conversation.
func (m masked) Debts(ctx context.Context, limit int) ([]pages.Debt, error) {
	debts, err := m.Lists.Debts(ctx, limit)
	for i := range debts {
		debts[i].Reason = mask(debts[i].Reason)
	}
	return debts, err
}

// private reports whether a session is a private chat. One of an unknown type is taken for one.
func private(s sessions.Session) bool { return s.Key != "" && s.ConversationType != sessions.Group }

// short returns the beginning of a text, in one line.
func short(text string, runes int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > runes {
		return string(r[:runes]) + "…"
	}
	return text
}
