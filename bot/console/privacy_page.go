package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"ebb/bot/console/auth"
	"ebb/memory/pages"
	"ebb/sessions"
)

// Privacy decides which data is kept, for how long, and who gets it.
type Privacy struct {
	Retention sessions.Retention
	TaskTTL   time.Duration // life of the state of work
	Digest    string        // time of day of the digests; empty: none are written
	Providers []string      // hosts that get texts for answers and summaries
	Embedder  string        // host that gets texts for search by meaning; empty: none
	External  bool          // people outside the organization are served
	Admin     bool          // a token for administrators is configured
	Viewer    bool          // a token for viewers is configured
}

type privacyView struct {
	Privacy
	Stored []storedData
	Kept   []string // kinds of data without a period
}

// storedData has a part of keys of the catalog as Name; a Period of 0 means that it has none.
type storedData struct {
	Name   string
	Tables string
	Period time.Duration
}

func (p Privacy) stored() []storedData {
	r := p.Retention
	return []storedData{
		{"events", "dingtalk_session_events, event_terms, event_segments, event_postings, people, tool_runs, blobs, attachments, document_pages", r.Events},
		{"summaries", "session_summaries", r.Events},
		{"memories", "memories, embeddings", r.Memories},
		{"compactions", "compaction_log, compaction_jobs, compaction_requests", r.CompactionLog},
		{"replies", "outbox", r.Replies},
		{"sent_files", "sent_files", r.SentFiles()},
		{"pictures", "pictures", r.Pictures},
		{"files", "files, document_pages", 0},
		{"schedules", "schedules", r.Replies},
		{"approvals", "approvals", r.Replies},
		{"sessions", "dingtalk_sessions, group_scopes", 0},
		{"receipts", "memory_flushes, memory_digests", 0},
		{"ratings", "cards", 0},
		{"ids", "sender_ids", 0},
		{"usage", "model_usage, limit_windows", 0},
		{"audit", "audit", r.Audit},
		{"logins", "console_logins, console_login_states", auth.TTL},
	}
}

// privacy has the pages of the kept data and of the rows that expire.
type privacy struct {
	inForce func() Privacy
	rows    interface {
		Expiring(ctx context.Context, period, soon time.Duration, p pages.Page) (rows []pages.Expiring, next string, err error)
		ExpiringRows(ctx context.Context, r sessions.Retention) (pages.ExpiringRows, error)
	}
}

func (p privacy) show(w http.ResponseWriter, r *request) error {
	v := privacyView{Privacy: p.inForce()}
	v.Stored = v.stored()
	for _, one := range v.Stored[:5] { // the configuration has a key for each
		if one.Period == 0 && one.Name != "summaries" {
			v.Kept = append(v.Kept, one.Name)
		}
	}
	return r.show(w, "privacy", v)
}

const expiryHorizon = 7 * 24 * time.Hour

type retentionView struct {
	Periods sessions.Retention
	Period  time.Duration // period of events, as shown
	Days    string        // as it was asked for; empty: the period in force
	Horizon time.Duration
	Events  listView[expiringRow]
	Due     pages.ExpiringRows // past their periods now
	Soon    pages.ExpiringRows // past them within the horizon
	InForce bool               // the shown period is the one in force
}

type expiringRow struct {
	pages.Expiring
	From time.Time
}

const maxDays = 36500

// retention lists the rows that will go in the coming days, by the periods in force or by one that an administrator considers. Only
// the log is listed by session; the other kinds are counted.
func (p privacy) retention(w http.ResponseWriter, r *request) error {
	v := retentionView{Periods: p.inForce().Retention, Days: strings.TrimSpace(r.FormValue("days")), Horizon: expiryHorizon}
	v.Period, v.InForce = v.Periods.Events, true
	if v.Days != "" {
		days, err := strconv.Atoi(v.Days)
		if err != nil || days < 1 || days > maxDays {
			return badRequest{code: "error.period", args: []any{v.Days, maxDays}}
		}
		v.Period = time.Duration(days) * 24 * time.Hour
		v.InForce = v.Period == v.Periods.Events
	}
	if v.Period > 0 {
		rows, next, err := p.rows.Expiring(r.Context(), v.Period, expiryHorizon, pages.Page{Limit: listRows, Cursor: r.FormValue("cursor")})
		if err != nil {
			return err
		}
		for _, row := range rows {
			v.Events.Rows = append(v.Events.Rows, expiringRow{row, row.Oldest.Add(v.Period)})
		}
		if next != "" {
			v.Events.Next = r.URL.Path + "?" + url.Values{"days": {v.Days}, "cursor": {next}}.Encode()
		}
	}
	var err error
	if v.Due, err = p.rows.ExpiringRows(r.Context(), v.Periods); err != nil {
		return err
	}
	if v.Soon, err = p.rows.ExpiringRows(r.Context(), sooner(v.Periods, expiryHorizon)); err != nil {
		return err
	}
	return r.show(w, "retention", v)
}

func sooner(r sessions.Retention, by time.Duration) sessions.Retention {
	for _, period := range []*time.Duration{&r.Memories, &r.CompactionLog, &r.Replies, &r.Audit} {
		if *period > 0 {
			*period = max(*period-by, time.Second)
		}
	}
	return r
}
