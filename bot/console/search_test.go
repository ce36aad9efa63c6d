package console_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A search finds what the bot would find for the question in that session, with its reasons, and nothing of other places.
func TestSearchAsTheBotDoes(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	path := "/sessions/" + url.PathEscape(groupKey) + "/search?lang=en&q="
	status, page := b.get(path + url.QueryEscape("发布日期是哪天"))
	if status != http.StatusOK || !strings.Contains(page, "发布日期定在 5 月 20 日") || strings.Contains(page, "secretword") {
		t.Errorf("the search: %d %.2000s", status, page)
	}
	why := page[strings.Index(page, "发布日期定在 5 月 20 日"):]
	if why = why[:strings.Index(why, "</tr>")]; !strings.Contains(why, "发布") && !strings.Contains(why, "日期") {
		t.Errorf("the hit has no reason: %s", why)
	}
	if _, page := b.get(path + "secretword"); strings.Contains(page, "想换部门") {
		t.Error("a search in a group finds the memory of a private chat")
	}
	if n := scan[int](w, "SELECT count(*) FROM audit"); n != 0 {
		t.Errorf("a search in a group left %d rows in the audit", n)
	}
	b.get("/sessions/" + url.PathEscape(privateKey) + "/search?q=secretword")
	if n := scan[int](w, "SELECT count(*) FROM audit WHERE action = 'view_private' AND outcome = 'done'"); n != 1 {
		t.Errorf("a search in a private chat left %d rows in the audit, want 1", n)
	}
	long := strings.Repeat("x", 501)
	if status, page := b.get(path + long); status != http.StatusBadRequest || !strings.Contains(page, `value="`+long+`"`) || !strings.Contains(page, "The question is longer than 500 characters.") || strings.Contains(page, "Nothing matches") {
		t.Errorf("a question of 501 characters is not in its box with the reason: %d %s", status, around(page, "<form", "alert"))
	}
}

func TestPeople(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`INSERT INTO dingtalk_session_events (session_key, seq, role, content, sender_id, sender_nick, msg_id)
		SELECT '` + groupKey + `', 1000 + i, 'user', 'x', 'person' || lpad(i::text, 3, '0'), 'Nick ' || i, 'x' || i FROM generate_series(1, 120) i`)
	w.execute(`UPDATE dingtalk_sessions SET last_seq = 2000 WHERE session_key = '` + groupKey + `'`)
	b := w.enter(w.serve(nil), adminToken)
	seen, path := 0, "/people"
	for path != "" {
		_, page := b.get(path)
		seen += strings.Count(page, `"><a href="/people/`)
		path = html.UnescapeString(nextPage(page))
	}
	if seen != 122 {
		t.Errorf("all pages have %d people, want 122", seen)
	}
	for name, want := range map[string]int{"Nick 7": 11, "person007": 1, "rson00": 9, "nick 99": 1, "absent": 0} { // the exact name comes first
		_, page := b.get("/people?q=" + url.QueryEscape(name))
		if first := strings.Index(page, `href="/people/person007"`); strings.Count(page, `"><a href="/people/`) != want || name == "Nick 7" && first > strings.Index(page, `href="/people/person070"`) {
			t.Errorf("%q does not find %d people: %s", name, want, around(page, "/people/person"))
		}
	}
	viewer := w.enter(w.serve(nil), viewerToken)
	if _, page := b.get("/people"); !strings.Contains(page, "名字或编号") {
		t.Errorf("an administrator's search has the label %s", around(page, `for="q"`))
	}
	if _, page := viewer.get("/people"); !strings.Contains(page, "编号，或其中一部分") || strings.Contains(page, "名字或编号") {
		t.Errorf("a viewer, who finds people by id alone, sees the label %s", around(page, `for="q"`))
	}
}

// A group's memory becomes the team's, with the actor of the login as the one who decided it, whatever the form says. One of a person does not.
func TestPromote(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	group, user := scan[int64](w, "SELECT id FROM memories WHERE scope = 'group'"), scan[int64](w, "SELECT id FROM memories WHERE scope = 'user'")
	if status, _ := b.post("/memories/"+number(user)+"/promote", url.Values{"by": {"boss"}}); status != http.StatusBadRequest {
		t.Errorf("a person's memory: %d", status)
	}
	if status, page := b.post("/memories/"+number(group)+"/promote", url.Values{"by": {"boss"}}); status != http.StatusOK || !strings.Contains(page, "发布日期定在 5 月 20 日") {
		t.Errorf("the promotion: %d %.300s", status, page)
	}
	if n := scan[int](w, "SELECT count(*) FROM memories WHERE scope = 'team' AND promoted_by = 'admin.token' AND superseded_by IS NULL"); n != 1 {
		t.Errorf("%d memories of the team, want 1", n)
	}
	if n := scan[int](w, "SELECT count(*) FROM audit WHERE action = 'promote' AND outcome = 'done'"); n != 1 {
		t.Errorf("%d promotions in the audit, want 1", n)
	}
}
