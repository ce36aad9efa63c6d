package console

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"ebb/bot/console/chart"
	"ebb/bot/manage"
	"ebb/compaction"
	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
)

const (
	openRows = 20
)

func sessionFilter(text string) (pages.SessionFilter, error) {
	p, err := parseFilter(text, "group", "state", "model")
	if err != nil {
		return pages.SessionFilter{}, err
	}
	f := pages.SessionFilter{Words: p.words, Groups: p.values["group"]}
	if f.State, err = p.one("state", pages.StateBusy, pages.StateOwed, pages.StateFailed, pages.StateDead); err != nil {
		return f, err
	}
	f.Model, err = p.one("model")
	return f, err
}

func listSessions(w http.ResponseWriter, r *request) error {
	return showList(w, r, "sessions", sessionFilter, func(f pages.SessionFilter, p pages.Page) ([]pages.SessionRow, string, error) {
		return r.lists.Sessions(r.Context(), f, p)
	})
}

type sessionView struct {
	Session   sessions.Session
	Rests     int // size up to which no compaction runs by itself after an undo; 0 for none
	Trigger   int // tokens at which it is compacted
	FlushAt   int
	Talk      []line
	Cuts      []int64 // compactions whose cut is on the page
	Older     string  // address of older events; empty at the start
	Newer     bool    // the page is not the newest one
	Open      []sessions.Event
	Chart     chart.Chart
	Memories  []memory.Memory
	Schedules []scheduleView // active ones
	scheduled []pages.ScheduleRow
	Files     []pages.FileRow             // kept ones
	Approvals []pages.ApprovalRow         // the newest ones
	Request   *sessions.CompactionRequest // waits or runs; nil for none
	Policies  []string
	Undoable  int64 // id of the compaction that an undo takes back; 0 for none
	Private   bool
	Work      workView
	Kept      pages.Counts // from models that refuse it
}

// Generation counts the contexts of the conversation from 1 on: each /new begins one.
func (v sessionView) Generation() int { return v.Session.Gen + 1 }

// Failed reports whether the last compaction failed. An undo leaves a word in the place of a reason.
func (v sessionView) Failed() bool {
	return v.Session.CompactError != "" && v.Session.CompactError != sessions.CompactUndone
}

// line is an event of the conversation, with the cuts of compactions after it.
type line struct {
	Event    sessions.Event
	Cuts     []cutView
	Archived bool
}

type cutView struct {
	pages.Attempt
	Saved int
}

// conversation is the page of one.
type conversation struct {
	policy   func(sessions.Session) compaction.Settings
	requests pages.Requests
	zone     *time.Location
}

// show shows one conversation. Texts of a private chat come only through opened, with a row in the audit; settings, work and
// requests have no texts and are read before.
func (p conversation) show(w http.ResponseWriter, r *request) error {
	s, err := r.session()
	if err != nil {
		return err
	}
	key := s.Key
	work, err := readWork(r, key)
	if err != nil {
		return err
	}
	settings := p.policy(s)
	v := sessionView{Session: s, Trigger: settings.Window.Trigger(), FlushAt: settings.Window.FlushAt(), Private: private(s), Newer: r.FormValue("cursor") != "", Work: work}
	request, ok, err := p.requests.CompactionRequested(r.Context(), key)
	if err != nil {
		return err
	}
	if ok {
		v.Request = &request
	}
	v.Policies = slices.Sorted(maps.Keys(compaction.Policies))
	err = r.opened(v.Private, key, "", func(ctx context.Context, lists pages.Lists) error { return v.read(ctx, r, lists, key) })
	if err != nil {
		return err
	}
	v.Rests = settings.RestsUntil(v.Session, v.Session.TotalTokens)
	v.Schedules = scheduleViews(r, p.zone, v.scheduled)
	return r.show(w, "session", v)
}

// read fills the parts with texts, all from the lists it was given: they mask texts. A place in the conversation (at) becomes a
// cursor half a page behind it, so that the place is in the middle.
func (v *sessionView) read(ctx context.Context, r *request, lists pages.Lists, key sessions.Key) (err error) {
	if v.Session, err = lists.Session(ctx, key); err != nil {
		return err
	}
	cursor := r.FormValue("cursor")
	if at, err := strconv.ParseInt(r.FormValue("at"), 10, 64); err == nil && cursor == "" {
		cursor, v.Newer = pages.Place{ID: at + talkRows/2}.Cursor(pages.ListTalk), true
	}
	events, next, err := lists.Talk(ctx, key, pages.Page{Limit: talkRows, Cursor: cursor})
	if err != nil {
		return err
	}
	if next != "" {
		v.Older = r.URL.EscapedPath() + "?" + url.Values{"cursor": {next}}.Encode()
	}
	if v.Open, err = lists.Open(ctx, key, openRows); err != nil {
		return err
	}
	if v.Talk, err = withCuts(ctx, lists, v.Session, events); err != nil {
		return err
	}
	for _, l := range v.Talk {
		for _, one := range l.Cuts {
			v.Cuts = append(v.Cuts, one.ID)
		}
	}
	if v.Kept, err = lists.Counts(ctx, []sessions.Key{key}); err != nil {
		return err
	}
	if v.Undoable, err = lists.Undoable(ctx, key); err != nil {
		return err
	}
	if v.Chart, err = chart.Read(ctx, lists, v.Session, v.Trigger, v.FlushAt); err != nil {
		return err
	}
	if v.Memories, _, err = lists.Memories(ctx, pages.MemoryFilter{Session: key}, pages.Page{Limit: openRows}); err != nil {
		return err
	}
	if v.Approvals, _, err = lists.Approvals(ctx, pages.ApprovalFilter{Session: key}, pages.Page{Limit: sessions.MaxApprovals}); err != nil {
		return err
	}
	v.scheduled, _, err = lists.Schedules(ctx, pages.ScheduleFilter{Session: key, State: string(sessions.ScheduleActive)}, pages.Page{Limit: openRows})
	if err != nil {
		return err
	}
	v.Files, _, err = lists.Files(ctx, pages.FileFilter{Session: key}, pages.Page{Limit: sessions.MaxFiles})
	return err
}

// withCuts puts each compaction behind the last event that it took. An undo has the same range and took nothing, so it has no mark.
// One attempt is read for each mark: a page has few.
func withCuts(ctx context.Context, lists pages.Lists, s sessions.Session, events []sessions.Event) ([]line, error) {
	if len(events) == 0 {
		return nil, nil
	}
	cuts, err := lists.Cuts(ctx, s.Key, events[0].Seq, events[len(events)-1].Seq, chart.MaxCuts)
	if err != nil {
		return nil, err
	}
	lines := make([]line, len(events))
	for i, e := range events {
		lines[i] = line{Event: e, Archived: e.Seq <= s.CompactedSeq}
		for _, cut := range cuts {
			if cut.EndSeq != e.Seq || cut.Trigger == chart.UndoTrigger {
				continue
			}
			a, err := lists.Attempt(ctx, s.Key, cut.ID)
			if err != nil {
				return nil, err
			}
			one := cutView{Attempt: a}
			for _, receipt := range a.Receipts {
				one.Saved += len(receipt.Saved)
			}
			lines[i].Cuts = append(lines[i].Cuts, one)
		}
	}
	return lines, nil
}

type undo struct {
	compactions interface {
		UndoCompaction(ctx context.Context, by manage.Actor, s sessions.Session, id int64) (sessions.LogEntry, error)
	}
}

// do refuses a compaction that is not the newest any more.
func (u undo) do(w http.ResponseWriter, r *request) error {
	s, err := r.session()
	if err != nil {
		return err
	}
	key := s.Key
	changed := badRequest{code: "error.undo_changed"}
	id, err := parseID(r.FormValue("id"))
	if err != nil {
		return changed
	}
	err = r.audited("undo", key, "compaction "+strconv.FormatInt(id, 10), func(ctx context.Context) error {
		_, err := u.compactions.UndoCompaction(ctx, r.operator(), s, id)
		switch {
		case errors.Is(err, sessions.ErrConflict):
			return changed
		case isNotFound(err):
			return badRequest{code: "error.nothing_to_undo"}
		case errors.Is(err, sessions.ErrUndoExpired):
			return badRequest{code: "error.undo_expired"}
		}
		return err
	})
	if err != nil {
		return err
	}
	http.Redirect(w, r.Request, "/sessions/"+url.PathEscape(string(key)), http.StatusSeeOther)
	return nil
}
