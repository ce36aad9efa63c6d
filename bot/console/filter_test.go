package console_test

import (
	"encoding/base64"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"ebb/memory/pages"
)

// A private chat is found by no word of its title, a fact from it by no word of it, and for a viewer a person by no name. A filter
// would otherwise reveal the masked text.
func TestFiltersRevealNoMaskedText(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`INSERT INTO compaction_log (session_key, trigger, policy, mode, tokens_before, tokens_after, start_seq, end_seq, outcome)
		VALUES ('` + privateKey + `', 'threshold', 'turns', 'summary_only', 4000, 2500, 1, 2, 'committed')`)
	base := w.serve(nil)
	admin, viewer := w.enter(base, adminToken), w.enter(base, viewerToken)
	private, group := url.PathEscape(privateKey), url.PathEscape(groupKey)
	for _, c := range []struct {
		path, row     string
		admin, viewer bool
	}{
		{"/sessions?q=悄悄", private, false, false},
		{"/sessions?q=cidPrivate", private, true, true},
		{"/sessions?q=支付", group, true, true},
		{"/compactions?q=悄悄", "/compactions/" + private, false, false},
		{"/compactions?q=group:悄悄", "/compactions/" + private, false, false},
		{"/compactions?q=cidPrivate", "/compactions/" + private, true, true},
		{"/compactions?q=支付", "/compactions/" + group, true, true},
		{"/memories?q=想换部门", "/people/staff0002", false, false},
		{"/memories?q=person:staff0002", "/people/staff0002", true, true},
		{"/memories?q=发布日期", "/people/staff0001", true, true},
		{"/people?q=secretnick", "/people/staff0002", true, false},
		{"/people?q=RETN", "/people/staff0002", true, false},
		{"/people?q=FF0002", "/people/staff0002", true, true},
		{"/people?q=张", "/people/staff0001", true, false},
		{"/people?q=staff0002", "/people/staff0002", true, true},
	} {
		path, filter, _ := strings.Cut(c.path, "?q=")
		path += "?q=" + url.QueryEscape(filter)
		for who, b := range map[string]*browser{"an administrator": admin, "a viewer": viewer} {
			want := c.admin
			if b == viewer {
				want = c.viewer
			}
			if _, page := b.get(path); strings.Contains(page, c.row) != want {
				t.Errorf("%s: %s finds %s: %v, want %v", who, c.path, c.row, !want, want)
			}
		}
	}
	for _, list := range []string{"sessions", "compactions"} {
		if _, text := viewer.do("GET", "/api/v1/"+list+"?q="+url.QueryEscape("悄悄"), "", "Authorization", "Bearer "+viewerToken); strings.Contains(text, privateKey) {
			t.Errorf("the list %s of the API finds the title: %s", list, text)
		}
	}
}

// The pages of people reveal no name to a viewer. The link to the next one has ids alone, and a cursor with a name finds the same
// people, whatever the name.
func TestPagesOfPeopleRevealNoName(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`INSERT INTO dingtalk_session_events (session_key, seq, role, content, sender_id, sender_nick, msg_id)
		SELECT '` + privateKey + `', 1000 + i, 'user', 'x', 'staff9' || lpad(i::text, 3, '0'), 'hiddennick' || i, 'h' || i FROM generate_series(1, 120) i`)
	viewer := w.enter(w.serve(nil), viewerToken)
	for _, filter := range []string{"", "staff", "hiddennick"} {
		people := map[string]bool{}
		for path := "/people?q=" + filter; path != ""; {
			_, page := viewer.get(path)
			for _, row := range strings.Split(page, `"><a href="/people/`)[1:] {
				id, _, _ := strings.Cut(row, `"`)
				people[id] = true
			}
			next, err := url.Parse(html.UnescapeString(nextPage(page)))
			if err != nil {
				t.Fatal(err)
			}
			place, err := base64.RawURLEncoding.DecodeString(next.Query().Get("cursor"))
			if err != nil || strings.Contains(string(place), "nick") || filter != "hiddennick" && strings.Contains(page, "nick") {
				t.Fatalf("a page of %q has a name, or leads to %s (%v)", filter, place, err)
			}
			path = next.String()
		}
		if want := map[string]int{"": 122, "staff": 122}[filter]; len(people) != want {
			t.Errorf("%q finds %d people, want %d", filter, len(people), want)
		}
	}
	for _, name := range []string{"secretnicj", "secretnicl"} {
		cursor := pages.Place{Key: name}.Cursor(pages.ListPeople)
		if _, page := viewer.get("/people?q=staff0002&cursor=" + cursor); !strings.Contains(page, `href="/people/staff0002"`) {
			t.Errorf("a cursor after the name %s hides the person", name)
		}
	}
}

// nextPage is the address of the page after one, empty at the end.
func nextPage(page string) string {
	_, rest, _ := strings.Cut(page, `<p class="pager"><a href="`)
	address, _, _ := strings.Cut(rest, `"`)
	return address
}

// The switch of the language keeps the filter and the place of a page.
func TestLanguageKeepsTheFilter(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	_, page := b.get("/sessions?lang=zh&q=" + url.QueryEscape("group:支付 state:owed") + "&cursor=")
	to := link(t, page, `<a href="([^"]*)" lang="en"`)
	if u, err := url.Parse(html.UnescapeString(to)); err != nil || u.Query().Get("q") != "group:支付 state:owed" || u.Query().Get("lang") != "en" || !u.Query().Has("cursor") {
		t.Errorf("the switch leads to %s (%v)", to, err)
	}
}

// The filter state:failed finds the sessions whose last compaction failed, also one that a person asked for, and their pages have the reason.
func TestFailedCompactionsAreFound(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	for reason, found := range map[string]bool{"process died: none of 3 attempts ended": true, "undone": false, "": false} {
		w.execute("UPDATE dingtalk_sessions SET compact_error = '" + reason + "' WHERE session_key = '" + groupKey + "'")
		if _, page := b.get("/sessions?q=state:failed"); strings.Contains(page, "支付网关发布") != found {
			t.Errorf("a session with the reason %q is found: %t", reason, !found)
		}
		if _, page := b.get("/sessions/" + url.PathEscape(groupKey)); found != (strings.Contains(page, "上次压缩没有成功：执行它的进程每次都中途退出<details") && strings.Contains(page, reason)) {
			t.Errorf("the page of a session with %q has the reason: %t", reason, !found)
		}
	}
}

// A refused filter, or a wrong place in the list, is named on the list's own page, and the box keeps the text for its correction.
func TestARefusedFilterStaysInItsBox(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	for _, path := range []string{"/sessions", "/compactions", "/memories", "/schedules"} {
		for query, want := range map[string]string{"nostate:busy": "筛选里没有 nostate:", "支付": "翻页位置无效"} {
			address := path + "?lang=zh&q=" + url.QueryEscape(query)
			if query == "支付" {
				address += "&cursor=broken"
			}
			status, page := b.get(address)
			if status != http.StatusBadRequest || !strings.Contains(page, `role="alert" id="wrong">`+want) || !strings.Contains(page, `type="search" value="`+query+`"`) {
				t.Errorf("%s: %d, the page lacks the box with %q or the reason: %s", address, status, query, around(page, "alert", "search"))
			}
			if strings.Contains(page, "没有符合的内容") || strings.Contains(page, "<table") {
				t.Errorf("%s: the page has rows, or says that none match", address)
			}
		}
	}
}

// The example in an empty filter box is in the page's language.
func TestFilterExamplesAreInThePagesLanguage(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	for path, want := range map[string]map[string]string{
		"/sessions": {"zh": "group:支付", "en": "group:checkout"}, "/memories": {"zh": "上线 ", "en": "release "}, "/schedules": {"zh": "group:支付", "en": "group:checkout"},
	} {
		for lang, example := range want {
			_, page := b.get(path + "?lang=" + lang)
			if hint := link(t, page, `placeholder="([^"]*)"`); !strings.Contains(hint, example) {
				t.Errorf("%s in %s has the example %q, want one with %q", path, lang, hint, example)
			}
		}
	}
}
