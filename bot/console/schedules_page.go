package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"ebb/bot/console/render"
	"ebb/bot/manage"
	"ebb/bot/schedule/when"
	"ebb/memory/pages"
	"ebb/sessions"
)

// lateAfter is the time after which an active schedule is shown as late.
const lateAfter = time.Minute

// scheduleView is a schedule in a list.
type scheduleView struct {
	pages.ScheduleRow
	Times string // all times, in words; empty for a single time
	Zone  string // zone of these words where it is not that of the pages
	Late  bool
	Page  string // address of the page, where the reader is again after an action
}

func scheduleViews(r *request, zone *time.Location, rows []pages.ScheduleRow) []scheduleView {
	views := make([]scheduleView, len(rows))
	for i, row := range rows {
		views[i] = scheduleView{ScheduleRow: row, Page: r.URL.RequestURI(), Late: row.State == sessions.ScheduleActive && time.Since(row.DueAt) > lateAfter}
		if spec, err := when.Read(row.Spec); err == nil && spec.Repeats() {
			views[i].Times, views[i].Zone = spec.Words(r.words.Lang), foreignZone(spec, row.DueAt.In(zone))
		}
	}
	return views
}

// foreignZone names the zone of a repetition unless it is that of at.
func foreignZone(spec when.Spec, at time.Time) string {
	zone, ok := spec.Clock()
	if name := render.ZoneName(at.In(zone)); ok && name != render.ZoneName(at) {
		return name
	}
	return ""
}

// scheduleFilter reads the filter of the list of schedules.
func scheduleFilter(text string) (pages.ScheduleFilter, error) {
	p, err := parseFilter(text, "state", "kind", "group", "session")
	if err != nil {
		return pages.ScheduleFilter{}, err
	}
	f := pages.ScheduleFilter{Words: slices.Concat(p.words, p.values["group"])}
	if f.State, err = p.one("state", string(sessions.ScheduleActive), string(sessions.ScheduleDone), string(sessions.ScheduleCancelled), string(sessions.ScheduleRefused)); err != nil {
		return f, err
	}
	if f.Kind, err = p.one("kind", string(sessions.Remind), string(sessions.AskModel)); err != nil {
		return f, err
	}
	session, err := p.one("session")
	f.Session = sessions.Key(session)
	return f, err
}

type schedules struct {
	zone   *time.Location
	manage interface {
		CancelSchedule(ctx context.Context, by manage.Actor, key sessions.Key, id int64) (sessions.Schedule, error)
	}
}

func (s schedules) list(w http.ResponseWriter, r *request) error {
	return showList(w, r, "schedules", scheduleFilter, func(f pages.ScheduleFilter, p pages.Page) ([]scheduleView, string, error) {
		rows, next, err := r.lists.Schedules(r.Context(), f, p)
		return scheduleViews(r, s.zone, rows), next, err
	})
}

// cancel ends an active schedule of a session that the role sees.
func (s schedules) cancel(w http.ResponseWriter, r *request) error {
	session, err := r.session()
	if err != nil {
		return err
	}
	id, err := parseID(r.PathValue("id"))
	if err != nil {
		return err
	}
	err = r.audited(manage.Unscheduled, session.Key, "schedule "+strconv.FormatInt(id, 10), func(ctx context.Context) error {
		_, err := s.manage.CancelSchedule(ctx, operator, session.Key, id)
		return err
	})
	if err != nil {
		return err
	}
	next := localPath(cmp.Or(r.PostFormValue("next"), "/schedules"))
	http.Redirect(w, r.Request, next, http.StatusSeeOther) //nolint:gosec // localPath leads nowhere else
	return nil
}
