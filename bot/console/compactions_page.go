package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebb/bot/console/render"
	"ebb/memory/pages"
	"ebb/sessions"
)

// compactions is the list of compactions; days of its filter are those of the zone.
type compactions struct{ zone *time.Location }

func (p compactions) list(w http.ResponseWriter, r *request) error {
	parse := func(text string) (pages.CompactionFilter, error) { return compactionFilter(text, p.zone) }
	return showList(w, r, "compactions", parse, func(f pages.CompactionFilter, page pages.Page) ([]pages.CompactionRow, string, error) {
		return r.lists.Compactions(r.Context(), f, page)
	})
}

// compactionFilter reads days of the zone.
func compactionFilter(text string, zone *time.Location) (pages.CompactionFilter, error) {
	p, err := parseFilter(text, "group", "outcome", "policy", "trigger", "since", "session")
	if err != nil {
		return pages.CompactionFilter{}, err
	}
	f := pages.CompactionFilter{Words: slices.Concat(p.words, p.values["group"])}
	for key, field := range map[string]*string{"policy": &f.Policy, "trigger": &f.Trigger} {
		if *field, err = p.one(key); err != nil {
			return f, err
		}
	}
	if f.Outcome, err = p.one("outcome", "committed", "failed", "rejected", "nothing"); err != nil {
		return f, err
	}
	session, err := p.one("session")
	if err != nil {
		return f, err
	}
	f.Session = sessions.Key(session)
	day, err := p.one("since")
	if err != nil || day == "" {
		return f, err
	}
	if f.Since, err = time.ParseInLocation(time.DateOnly, day, zone); err != nil {
		return f, badRequest{code: "error.filter_day", args: []any{day}}
	}
	return f, nil
}

type attemptView struct {
	pages.Attempt
	Source   []sessions.Event
	Older    string // cursor of earlier events of the range; empty for none
	Audit    []auditRow
	Undoable bool // it is the newest compaction in force
}

type auditRow struct{ Name, Value string }

func showAttempt(w http.ResponseWriter, r *request) error {
	key, err := r.key("session")
	if err != nil {
		return err
	}
	id, err := parseID(r.PathValue("id"))
	if err != nil {
		return err
	}
	var v attemptView
	if v.Attempt, err = r.lists.Attempt(r.Context(), key, id); err != nil {
		return err
	}
	err = r.opened(v.Private, key, "", func(ctx context.Context, lists pages.Lists) error { return v.read(ctx, r, lists, key, id) })
	if err != nil {
		return err
	}
	return r.show(w, "attempt", v)
}

// read shows the events that the attempt took, from its end backwards. Older pages are offered only while they are within the range.
// Events of a deleted conversation are missing, which is no error of the page.
func (v *attemptView) read(ctx context.Context, r *request, lists pages.Lists, key sessions.Key, id int64) (err error) {
	if v.Attempt, err = lists.Attempt(ctx, key, id); err != nil {
		return err
	}
	if v.EndSeq >= v.StartSeq && v.EndSeq > 0 {
		cursor := r.FormValue("cursor")
		if cursor == "" {
			cursor = pages.Place{ID: v.EndSeq + 1}.Cursor(pages.ListTalk)
		}
		events, next, err := lists.Talk(ctx, key, pages.Page{Limit: talkRows, Cursor: cursor})
		if err != nil && !isNotFound(err) {
			return err
		}
		v.Source = slices.DeleteFunc(events, func(e sessions.Event) bool { return e.Seq < v.StartSeq })
		if len(v.Source) == len(events) {
			v.Older = next
		}
	}
	newest, err := lists.Undoable(ctx, key)
	if err != nil {
		return err
	}
	v.Undoable = newest == v.ID
	v.Audit = auditRows(v.LogEntry.Audit, r.words)
	return nil
}

// auditFields are in their order on the page, see upkeep.AuditRecord. The storage adds the last two.
var auditFields = []string{
	"recall", "missing", "added", "healed", "repaired", "invented", "precision", "source_tokens", "summary_tokens", "trimmed", "rolled_up",
	"roll_up_failed", "calls", "fallback", "unavailable", "preserved_count", "pinned_growth", "memories",
	"offloads_deleted", "deleted_files",
}

// auditRows lists values with a name in the catalog first. Numbers keep their digits.
func auditRows(audit string, words render.Words) []auditRow {
	dec := json.NewDecoder(strings.NewReader(audit))
	dec.UseNumber()
	var fields map[string]any
	if err := dec.Decode(&fields); err != nil {
		return nil
	}
	var rows []auditRow
	for _, name := range auditFields {
		text := auditText(fields[name])
		if share, err := strconv.ParseFloat(text, 64); err == nil && (name == "recall" || name == "precision") {
			text = fmt.Sprintf("%.0f %%", 100*share)
		}
		if fields[name] == true {
			text = words.T("check.yes")
		}
		if text != "" {
			rows = append(rows, auditRow{words.T("check." + name), text})
		}
		delete(fields, name)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if text := auditText(fields[name]); text != "" {
			rows = append(rows, auditRow{name, text})
		}
	}
	return rows
}

func auditText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	case []any:
		texts := make([]string, len(v))
		for i, x := range v {
			texts[i] = auditText(x)
		}
		return strings.Join(texts, ", ")
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(value); err != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}
