package console_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"ebb/bot/console"
	"ebb/memory/pages"
)

// A list takes its own cursors alone: a page of a wrong place would be taken for a part of the list. All lists of the API and of the
// pages are asked.
func TestEveryListRefusesAForeignCursor(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	chat := url.PathEscape(groupKey)
	own := map[string]string{ // name of the list by address
		"/sessions": pages.ListSessions, "/compactions": pages.ListCompactions, "/memories": pages.ListMemories, "/schedules": pages.ListSchedules, "/approvals": pages.ListApprovals, "/api/v1/approvals": pages.ListApprovals,
		"/audit": pages.ListActions, "/restarts": pages.ListRestarts, "/people": pages.ListPeople, "/people?q=staff": pages.ListPeopleByNick,
		"/retention?days=1": pages.ListExpiring, "/sessions/" + chat: pages.ListTalk,
		"/api/v1/sessions": pages.ListSessionsByKey, "/api/v1/compactions": pages.ListCompactions, "/api/v1/memories": pages.ListMemories,
		"/api/v1/schedules": pages.ListSchedulesByKey, "/api/v1/files": pages.ListFiles, "/api/v1/restarts": pages.ListRestarts, "/api/v1/sessions/" + chat + "/events": pages.ListTalk,
		"/api/v1/usage": pages.ListCosts, "/api/v1/usage?by=session": pages.ListCosts, "/api/v1/usage?by=all": pages.ListUsage, "/api/v1/usage?by=model": pages.ListUsage,
	}
	for _, path := range console.APIPaths() {
		if _, ok := own["/api/v1/"+strings.Replace(path, "{key}", chat, 1)]; !ok {
			t.Errorf("the list %s is not asked", path)
		}
	}
	bad := map[string]string{"no encoding": "%%%", "no cursor": "x", "an empty place": base64.RawURLEncoding.EncodeToString([]byte("{}")), "a long one": strings.Repeat("A", 9000)}
	for _, list := range own {
		bad["no place of "+list] = pages.Place{}.Cursor(list)
		bad["of "+list] = pages.Place{ID: 7, Key: "robot/x"}.Cursor(list)
	}
	for path, list := range own {
		for name, cursor := range bad {
			if name == "of "+list {
				continue
			}
			join := "?"
			if strings.Contains(path, "?") {
				join = "&"
			}
			if status, text := b.do("GET", path+join+"cursor="+url.QueryEscape(cursor), "", "Authorization", "Bearer "+adminToken); status != http.StatusBadRequest {
				t.Errorf("%s with a cursor that is %s: %d %.200s", path, name, status, text)
			}
		}
	}
}

// An export has each reminder once, also one whose time changes or that ends meanwhile. So does an export of accounts of restarts.
func TestPagesOfTheAPIHaveEachRow(t *testing.T) {
	t.Parallel()
	w := open(t)
	for i := range 30 {
		w.addSchedule(groupKey, i+1, "remind", "喝水")
	}
	w.execute(`INSERT INTO restarts (replica, started_at) SELECT 'r' || i, now() - interval '1 minute' * (i / 4) FROM generate_series(1, 30) i`)
	w.execute(`INSERT INTO model_usage (session_key, day, kind, cost) SELECT '` + groupKey + `', current_date - i, 'turn', 1 FROM generate_series(0, 29) i`)
	b := w.visit(w.serve(nil))
	for path, field := range map[string]string{"schedules": "id", "restarts": "replica", "usage?by=day&days=90": "day"} {
		seen := map[string]int{}
		for cursor, page := "", 0; page == 0 || cursor != "" && page < 20; page++ {
			join := map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]
			status, text := b.do("GET", "/api/v1/"+path+join+"limit=7&cursor="+cursor, "", "Authorization", "Bearer "+adminToken)
			var v struct {
				Items []map[string]any
				Next  string
			}
			if err := json.Unmarshal([]byte(text), &v); err != nil || status != http.StatusOK {
				t.Fatalf("%s: %d %s (%v)", path, status, text, err)
			}
			for _, item := range v.Items {
				seen[fmt.Sprint(item[field])]++
			}
			if page == 1 && path == "schedules" {
				w.execute("UPDATE schedules SET due_at = now() - interval '1 day' WHERE id % 3 = 0")
				w.execute("UPDATE schedules SET state = 'done', settled_at = now() WHERE id % 3 = 1")
			}
			cursor = v.Next
		}
		for row, n := range seen {
			if n != 1 {
				t.Errorf("%s has %s %d times", path, row, n)
			}
		}
		if len(seen) != 30 {
			t.Errorf("%s: %d rows of 30", path, len(seen))
		}
	}
}
