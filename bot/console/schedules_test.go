package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"ebb/memory/pages"
)

// addSchedule adds an active schedule in 100 minutes, set by 张伟.
func (w *world) addSchedule(key string, id int, kind, text string) {
	w.t.Helper()
	w.execute(fmt.Sprintf(`INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
		VALUES ('%s', %d, '%s', now() + interval '100 minutes', 'CRON_TZ=Asia/Shanghai 0 9 * * 5', '%s', 'staff0001', '{"sender_id": "staff0001", "sender_nick": "张伟"}', 'o%[2]d')`, key, id, kind, text))
}

// The page lists reminders by its filters, with their times in words. Only an administrator cancels one, which is in the audit.
func TestSchedules(t *testing.T) {
	t.Parallel()
	w := open(t)
	base := w.serve(nil)
	b, viewer := w.enter(base, adminToken), w.enter(base, viewerToken)
	if _, page := b.get("/schedules"); !strings.Contains(page, "还没有提醒") || !strings.Contains(page, `aria-current="page">提醒`) {
		t.Errorf("the empty page is %s", around(page, "empty"))
	}
	w.addSchedule(groupKey, 1, "remind", "喝水")
	w.addSchedule(groupKey, 2, "ask", "总结本周")
	w.addSchedule(privateKey, 1, "remind", "secretword")
	w.execute("UPDATE schedules SET due_at = now() - interval '3 hours' WHERE kind = 'ask'")
	for query, texts := range map[string]string{
		"": "喝水,总结本周,•••", "state:active kind:ask": "总结本周", "group:支付 kind:remind": "喝水", "session:" + privateKey: "•••", "state:done": "没有符合的内容", "secretword": "没有符合的内容",
	} {
		for who, b := range map[string]*browser{"administrator": b, "viewer": viewer} {
			status, page := b.get("/schedules?q=" + url.QueryEscape(query))
			for _, text := range []string{"喝水", "总结本周", "•••", "没有符合的内容"} {
				if want := strings.Contains(texts, text); status != http.StatusOK || strings.Contains(page, text) != want {
					t.Errorf("%s, %q: %d, %q is shown: %t", who, query, status, text, !want)
				}
			}
			if query != "secretword" && strings.Contains(page, "secretword") || (who == "viewer") == strings.Contains(page, "/cancel") && !strings.Contains(page, "没有符合") {
				t.Errorf("%s, %q: a private text, or the button: %s", who, query, around(page, "/cancel", "secretword"))
			}
		}
	}
	_, page := b.get("/schedules")
	for _, words := range []string{"2 小时后", "每周五 09:00", "3 小时前", "已过时间", "张伟"} {
		if !strings.Contains(page, words) {
			t.Errorf("the page lacks %q", words)
		}
	}
	if status, _ := b.get("/schedules?q=state:asleep"); status != http.StatusBadRequest {
		t.Errorf("an unknown state: %d", status)
	}
	if _, page := b.get("/sessions/" + url.PathEscape(groupKey)); !strings.Contains(page, "喝水") || !strings.Contains(page, "/cancel") {
		t.Errorf("the conversation's page lacks its reminders: %s", around(page, "schedules"))
	}
	path := "/schedules/" + url.PathEscape(groupKey) + "/1/cancel"
	if status, _ := viewer.post(path, nil); status != http.StatusForbidden {
		t.Errorf("a viewer cancels: %d", status)
	}
	for _, want := range []int{http.StatusOK, http.StatusNotFound} { // the second time it is not active
		if status, _ := b.post(path, nil); status != want {
			t.Errorf("cancelling is %d, want %d", status, want)
		}
	}
	if n := scan[int](w, "SELECT count(*) FROM schedules WHERE state = 'cancelled'"); n != 1 {
		t.Errorf("%d reminders are cancelled, want 1", n)
	}
	if all := scan[string](w, "SELECT string_agg(action || ' ' || detail || ' ' || outcome, ', ' ORDER BY id) FROM audit WHERE action <> 'view_private'"); all != "cancel_schedule schedule 1 done, cancel_schedule schedule 1 error.not_found" {
		t.Errorf("the audit has %q", all)
	}
}

// Active reminders come first, by their next time; ended ones follow, the last ended first. Pages show each once, with its number.
func TestSchedulesAreInTheOrderOfTheirTimes(t *testing.T) {
	t.Parallel()
	w := open(t)
	for id := range 7 {
		w.addSchedule(groupKey, id+1, "remind", "喝水")
	}
	w.execute(`UPDATE schedules SET due_at = now() + interval '1 hour' * (ARRAY[5, 1, 3, 1, 9, 9, 9])[id], state = CASE WHEN id > 4 THEN 'done' ELSE 'active' END,
		settled_at = CASE WHEN id > 4 THEN now() - interval '1 hour' * (ARRAY[2, 1, 3])[id - 4] END`)
	b := w.enter(w.serve(nil), adminToken)
	inPages := func(state string) (ids []int64) {
		for p := (pages.Page{Limit: 2}); ; {
			rows, next, err := w.store.Pages().Schedules(t.Context(), pages.ScheduleFilter{State: state}, p)
			if err != nil || len(ids) > 7 {
				t.Fatalf("after %v: %v", ids, err)
			}
			for _, one := range rows {
				ids = append(ids, one.ID)
			}
			if p.Cursor = next; next == "" {
				return ids
			}
		}
	}
	for state, want := range map[string][]int64{"": {2, 4, 3, 1, 6, 5, 7}, "active": {2, 4, 3, 1}, "done": {6, 5, 7}, "cancelled": nil} {
		if got := inPages(state); !slices.Equal(got, want) {
			t.Errorf("%q lists %v, want %v", state, got, want)
		}
	}
	_, page := b.get("/schedules")
	last := -1
	for _, id := range []string{"2", "4", "3", "1", "6", "5", "7"} {
		at := strings.Index(page, `data-label="编号">`+id+"</td>")
		if at <= last {
			t.Errorf("the page lacks number %s in its place: %d after %d", id, at, last)
		}
		last = at
	}
	if _, page := b.get("/sessions/" + url.PathEscape(groupKey)); !strings.Contains(page, "#3 喝水") {
		t.Errorf("the conversation's page lacks the number: %s", around(page, "喝水"))
	}
	w.execute(`INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
		SELECT session_key, 100 + i, kind, now() + interval '1 day' * i, spec, text, created_by, creator, 'many' || i FROM schedules, generate_series(1, 60) i WHERE id = 1`)
	for lang, want := range map[string]string{"zh": `rel="next">下一页 →</a>`, "en": `rel="next">Next page →</a>`} {
		if _, page := b.get("/schedules?lang=" + lang); !strings.Contains(page, want) {
			t.Errorf("the link to later reminders is not %s: %s", want, around(page, "pager"))
		}
	}
}

// After a reminder is cancelled its administrator is on the page of the button again, with its filter and place. An address elsewhere
// is not followed.
func TestCancellingKeepsThePage(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin)
		SELECT '` + groupKey + `', i, 'remind', now() + interval '1 hour' * i, '2030-05-20T09:00:00+08:00', '喝水', 'staff0001', '{"sender_id": "staff0001"}', 'o' || i FROM generate_series(1, 120) i`)
	b := w.enter(w.serve(nil), adminToken)
	cancel := func(id int64, next string) string {
		t.Helper()
		return b.redirected("/schedules/"+url.PathEscape(groupKey)+"/"+number(id)+"/cancel", url.Values{"next": {next}}).Get("Location")
	}
	filtered := "/schedules?q=" + url.QueryEscape("kind:remind group:支付")
	_, page := b.get(filtered)
	paths := []string{filtered, html.UnescapeString(nextPage(page)), "/sessions/" + url.PathEscape(groupKey)}
	for i, path := range paths {
		_, page := b.get(path)
		_, field, _ := strings.Cut(page, `<input type="hidden" name="next" value="`)
		field, _, _ = strings.Cut(field, `"`)
		if got := cancel(int64(60+i), html.UnescapeString(field)); got != path {
			t.Errorf("cancelling on %s leads to %s", path, got)
		}
	}
	for i, next := range []string{"", "https://elsewhere.example", "//elsewhere.example"} {
		if got := cancel(int64(70+i), next); got != "/schedules" && got != "/" {
			t.Errorf("cancelling with the next page %q leads to %s", next, got)
		}
	}
}
