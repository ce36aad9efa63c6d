package console

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ebb/bot/console/render"
	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
)

// restricted are the lists as every role sees them: without the texts of private chats, and for a group's administrator
// limited to some sessions. [request.opened] is the only way to those texts. It embeds no lists, so that a new method
// does not compile before it is restricted.
type restricted struct {
	all  pages.Lists
	only []sessions.Key // nil: all sessions
}

var _ pages.Lists = restricted{}

// shows returns [sessions.ErrNotFound] for a session that is left out.
func (m restricted) shows(key sessions.Key) error {
	if m.only == nil || slices.Contains(m.only, key) {
		return nil
	}
	return fmt.Errorf("session %s: %w", key, sessions.ErrNotFound)
}

// Sessions implements pages.Lists.
func (m restricted) Sessions(ctx context.Context, f pages.SessionFilter, p pages.Page) ([]pages.SessionRow, string, error) {
	f.Only = m.only
	rows, next, err := m.all.Sessions(ctx, f, p)
	for i := range rows {
		rows[i].Session = maskSession(rows[i].Session)
	}
	return rows, next, err
}

// Session implements pages.Lists.
func (m restricted) Session(ctx context.Context, key sessions.Key) (sessions.Session, error) {
	if err := m.shows(key); err != nil {
		return sessions.Session{}, err
	}
	s, err := m.all.Session(ctx, key)
	return maskSession(s), err
}

// Work implements pages.Lists. It has no text.
func (m restricted) Work(ctx context.Context, key sessions.Key) (pages.Work, error) {
	if err := m.shows(key); err != nil {
		return pages.Work{}, err
	}
	return m.all.Work(ctx, key)
}

func maskSession(s sessions.Session) sessions.Session {
	if private(s) {
		s.Title, s.Pinned = "", render.Mask(s.Pinned)
		if s.CompactError != sessions.CompactUndone {
			s.CompactError = render.Mask(s.CompactError)
		}
	}
	return s
}

// Compactions implements pages.Lists.
func (m restricted) Compactions(ctx context.Context, f pages.CompactionFilter, p pages.Page) ([]pages.CompactionRow, string, error) {
	f.Only = m.only
	rows, next, err := m.all.Compactions(ctx, f, p)
	for i := range rows {
		rows[i] = maskRow(rows[i])
	}
	return rows, next, err
}

func maskRow(r pages.CompactionRow) pages.CompactionRow {
	if r.Private {
		r.Title, r.RequesterNick, r.LogEntry = "", "", maskEntry(r.LogEntry)
	}
	return r
}

func maskEntry(e sessions.LogEntry) sessions.LogEntry {
	e.Focus, e.Error, e.Audit = render.Mask(e.Focus), render.Mask(e.Error), ""
	return e
}

// Schedules implements pages.Lists.
func (m restricted) Schedules(ctx context.Context, f pages.ScheduleFilter, p pages.Page) ([]pages.ScheduleRow, string, error) {
	f.Only = m.only
	rows, next, err := m.all.Schedules(ctx, f, p)
	for i, r := range rows {
		if r.Private {
			rows[i].Title, rows[i].Text, rows[i].Creator = "", render.Mask(r.Text), sessions.Message{SenderID: r.Creator.SenderID}
		}
	}
	return rows, next, err
}

// Files implements pages.Lists.
func (m restricted) Files(ctx context.Context, f pages.FileFilter, p pages.Page) ([]pages.FileRow, string, error) {
	f.Only = m.only
	rows, next, err := m.all.Files(ctx, f, p)
	for i, r := range rows {
		if r.Private {
			rows[i].Title, rows[i].Name, rows[i].Keeper = "", render.Mask(r.Name), ""
		}
	}
	return rows, next, err
}

// Approvals implements pages.Lists.
func (m restricted) Approvals(ctx context.Context, f pages.ApprovalFilter, p pages.Page) ([]pages.ApprovalRow, string, error) {
	f.Only = m.only
	rows, next, err := m.all.Approvals(ctx, f, p)
	for i, r := range rows {
		if r.Private {
			rows[i].Title, rows[i].Arguments, rows[i].Asker, rows[i].Decider = "", render.Mask(r.Arguments), "", ""
		}
	}
	return rows, next, err
}

// Attempt implements pages.Lists.
func (m restricted) Attempt(ctx context.Context, key sessions.Key, id int64) (pages.Attempt, error) {
	if err := m.shows(key); err != nil {
		return pages.Attempt{}, err
	}
	a, err := m.all.Attempt(ctx, key, id)
	if a.Private {
		a.CompactionRow, a.Summary = maskRow(a.CompactionRow), render.Mask(a.Summary)
	}
	for _, r := range a.Receipts {
		for _, facts := range [][]pages.Fact{r.Saved, r.Known, r.Corrected} {
			for i, f := range facts {
				if a.Private || f.Private || m.shows(f.Source) != nil {
					facts[i].Content = render.Mask(f.Content)
				}
			}
		}
	}
	return a, err
}

// Talk implements pages.Lists.
func (m restricted) Talk(ctx context.Context, key sessions.Key, p pages.Page) ([]sessions.Event, string, error) {
	if err := m.shows(key); err != nil {
		return nil, "", err
	}
	events, next, err := m.all.Talk(ctx, key, p)
	if err != nil {
		return nil, "", err
	}
	events, err = m.maskEvents(ctx, key, events)
	return events, next, err
}

// Open implements pages.Lists.
func (m restricted) Open(ctx context.Context, key sessions.Key, limit int) ([]sessions.Event, error) {
	if err := m.shows(key); err != nil {
		return nil, err
	}
	events, err := m.all.Open(ctx, key, limit)
	if err != nil {
		return nil, err
	}
	return m.maskEvents(ctx, key, events)
}

// DeadLetters implements pages.Lists.
func (m restricted) DeadLetters(ctx context.Context, only []sessions.Key, limit int) ([]sessions.Event, error) {
	events, err := m.all.DeadLetters(ctx, m.within(only), limit)
	for i, e := range events {
		if m.only == nil && (e.Message == nil || e.Message.ConversationType != sessions.Group) {
			events[i] = maskEvent(e)
		}
	}
	return events, err
}

func (m restricted) maskEvents(ctx context.Context, key sessions.Key, events []sessions.Event) ([]sessions.Event, error) {
	s, err := m.all.Session(ctx, key)
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
	e.Content, e.SenderNick, e.Message = render.Mask(e.Content), "", nil
	calls := make([]sessions.ToolCall, len(e.ToolCalls))
	for i, call := range e.ToolCalls {
		calls[i] = sessions.ToolCall{ID: call.ID, Name: call.Name, Arguments: render.Mask(call.Arguments)}
	}
	e.ToolCalls = calls
	return e
}

// Cuts implements pages.Lists.
func (m restricted) Cuts(ctx context.Context, key sessions.Key, from, through int64, limit int) ([]sessions.LogEntry, error) {
	if err := m.shows(key); err != nil {
		return nil, err
	}
	cuts, err := m.all.Cuts(ctx, key, from, through, limit)
	if err != nil {
		return nil, err
	}
	s, err := m.all.Session(ctx, key)
	if err == nil && private(s) {
		for i, e := range cuts {
			cuts[i] = maskEntry(e)
		}
	}
	return cuts, err
}

// Flushes implements pages.Lists. It has no text.
func (m restricted) Flushes(ctx context.Context, key sessions.Key, limit int) ([]pages.Flush, error) {
	if err := m.shows(key); err != nil {
		return nil, err
	}
	return m.all.Flushes(ctx, key, limit)
}

// Reached implements pages.Lists. It has no text.
func (m restricted) Reached(ctx context.Context, key sessions.Key, times []time.Time) ([]int64, error) {
	if err := m.shows(key); err != nil {
		return nil, err
	}
	return m.all.Reached(ctx, key, times)
}

// Undoable implements pages.Lists. It has no text.
func (m restricted) Undoable(ctx context.Context, key sessions.Key) (int64, error) {
	if err := m.shows(key); err != nil {
		return 0, err
	}
	return m.all.Undoable(ctx, key)
}

// Memories implements pages.Lists.
func (m restricted) Memories(ctx context.Context, f pages.MemoryFilter, p pages.Page) ([]memory.Memory, string, error) {
	f.Only = m.only
	rows, next, err := m.all.Memories(ctx, f, p)
	for i := range rows {
		rows[i] = maskMemory(rows[i])
	}
	return rows, next, err
}

// Memory implements pages.Lists.
func (m restricted) Memory(ctx context.Context, id int64) (memory.Memory, []memory.Memory, error) {
	one, values, err := m.all.Memory(ctx, id)
	if err == nil {
		err = m.shows(one.SourceSession)
	}
	if err != nil {
		return memory.Memory{}, nil, err
	}
	values = slices.DeleteFunc(values, func(v memory.Memory) bool { return m.shows(v.SourceSession) != nil })
	for i := range values {
		values[i] = maskMemory(values[i])
	}
	return maskMemory(one), values, nil
}

func maskMemory(m memory.Memory) memory.Memory {
	if m.Private() {
		m.Content, m.Key, m.SaidByNick, m.SubjectNick = render.Mask(m.Content), render.Mask(m.Key), "", ""
	}
	return m
}

// Debts implements pages.Lists. A reason is one of a fixed set.
func (m restricted) Debts(ctx context.Context, only []sessions.Key, limit int) ([]pages.Debt, error) {
	return m.all.Debts(ctx, m.within(only), limit)
}

// Costs implements pages.Lists.
func (m restricted) Costs(ctx context.Context, only []sessions.Key, since time.Time, bySession bool) ([]pages.Usage, error) {
	return m.all.Costs(ctx, m.within(only), since, bySession)
}

// Counts implements pages.Lists.
func (m restricted) Counts(ctx context.Context, only []sessions.Key) (pages.Counts, error) {
	return m.all.Counts(ctx, m.within(only))
}

// Actions implements pages.Lists.
func (m restricted) Actions(ctx context.Context, only []sessions.Key, p pages.Page) ([]pages.Action, string, error) {
	return m.all.Actions(ctx, m.within(only), p)
}

// Restarts implements pages.Lists. A restart concerns all groups.
func (m restricted) Restarts(ctx context.Context, p pages.Page) ([]sessions.Restart, string, error) {
	if m.only != nil {
		return nil, "", nil
	}
	return m.all.Restarts(ctx, p)
}

// Replicas implements pages.Lists. A replica serves all groups.
func (m restricted) Replicas(ctx context.Context) ([]pages.Replica, error) {
	if m.only != nil {
		return nil, nil
	}
	return m.all.Replicas(ctx)
}

// GroupSessions implements pages.Lists.
func (m restricted) GroupSessions(ctx context.Context, groups []sessions.ConversationID) ([]sessions.Key, error) {
	keys, err := m.all.GroupSessions(ctx, groups)
	return m.within(keys), err
}

// within returns the sessions of a list that are not left out; nil for all.
func (m restricted) within(only []sessions.Key) []sessions.Key {
	switch {
	case only == nil:
		return m.only
	case m.only == nil:
		return only
	}
	return slices.DeleteFunc(slices.Clone(only), func(key sessions.Key) bool { return m.shows(key) != nil })
}

// private takes a session of an unknown type for a private chat.
func private(s sessions.Session) bool { return s.Key != "" && s.ConversationType != sessions.Group }
