package console_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ebb/bot/console"
)

func number(n int64) string { return strconv.FormatInt(n, 10) }

// Without a login every page leads to the login, and to the page after it. A link to another origin leads to the start.
func TestLogin(t *testing.T) {
	t.Parallel()
	w := open(t)
	first, second := w.serve(nil), w.serve(nil)
	b := w.visit(first)
	for _, path := range w.paths() {
		if status, page := b.get(path); status != http.StatusOK || !strings.Contains(page, `name="token"`) || strings.Contains(page, "PO-1") {
			t.Errorf("%s without a login: %d %.200s", path, status, page)
		}
	}
	for next, want := range map[string]string{
		"/sessions?q=state%3Abusy": "/sessions?q=state%3Abusy", "": "/", "//evil.example/": "/", "https://evil.example/": "/", "/\\evil.example": "/",
	} {
		header := b.redirected("/login", url.Values{"token": {adminToken}, "next": {next}})
		if got := header.Get("Location"); got != want {
			t.Errorf("after %q the login leads to %q, want %q", next, got, want)
		}
		cookie := header.Get("Set-Cookie")
		if !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") || strings.Contains(cookie, adminToken) {
			t.Errorf("cookie %s", cookie)
		}
	}
	b.base = second // another replica knows the login, and its end
	cookies(t, b, first, second)
	if _, page := b.get("/sessions"); !strings.Contains(page, "支付网关发布") {
		t.Errorf("another replica shows %.300s", page)
	}
	b.base = w.serve(func(c *console.Config) { c.Token = "admin-token-0002" }) // the token was changed: its logins are over
	cookies(t, b, first, b.base)
	if _, page := b.get("/sessions"); !strings.Contains(page, `name="token"`) {
		t.Errorf("with another token the page is %.300s", page)
	}
	b.base = second
	b.post("/logout", nil)
	b.base = first
	if _, page := b.get("/sessions"); !strings.Contains(page, `name="token"`) {
		t.Errorf("after the logout the page is %.300s", page)
	}
	if n := scan[int](w, "SELECT count(*) FROM console_logins WHERE position('"+adminToken+"' IN encode(token_hash, 'escape')) > 0"); n > 0 {
		t.Error("a token is stored as it is")
	}
}

// cookies gives the cookies of one address to another one.
func cookies(t *testing.T, b *browser, from, to string) {
	t.Helper()
	f, err := url.Parse(from)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	b.http.Jar.SetCookies(u, b.http.Jar.Cookies(f))
}

// Wrong tokens of an address end in 429, each after a pause. The right one still enters: behind a proxy all people share an address.
func TestWrongTokens(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.visit(w.serve(nil))
	for _, enter := range []func(token string) int{
		func(token string) int {
			status, _ := b.post("/login", url.Values{"token": {token}})
			return status
		},
		func(token string) int {
			status, _ := b.do("GET", "/api/v1/sessions", "", "Authorization", "Bearer "+token)
			return status
		},
	} {
		b.base = w.serve(nil)
		var got []int
		for range 8 {
			got = append(got, enter("wrong"))
		}
		if got[0] != 401 || got[4] != 401 || got[7] != 429 {
			t.Errorf("wrong tokens: %v", got)
		}
		began := time.Now()
		if status := enter(""); status != 429 || time.Since(began) < 500*time.Millisecond {
			t.Errorf("no token after them: %d in %v, want 429 after a pause", status, time.Since(began))
		}
		for _, token := range []string{adminToken, viewerToken} {
			if status := enter(token); status != http.StatusOK && status != http.StatusSeeOther {
				t.Errorf("the right token after them: %d", status)
			}
		}
	}
}

// Wrong tokens that come together are no more tries than those that come one by one.
func TestWrongTokensTogether(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.visit(w.serve(nil))
	var refused atomic.Int64
	var tries sync.WaitGroup
	for range 100 {
		tries.Go(func() {
			if status, _ := b.do("GET", "/api/v1/sessions", "", "Authorization", "Bearer wrong"); status == http.StatusUnauthorized {
				refused.Add(1)
			}
		})
	}
	tries.Wait()
	if n := refused.Load(); n < 5 || n > 7 {
		t.Errorf("%d wrong tokens of 100 were answered with 401, want 5 and those of the seconds that passed", n)
	}
}

// A viewer sees no word of a private chat, on no page and in no answer of the API, and changes nothing.
func TestViewer(t *testing.T) {
	t.Parallel()
	w := open(t)
	base := w.serve(nil)
	b := w.enter(base, viewerToken)
	for _, path := range append(w.paths(), "/memories?q=secretword", "/sessions?q=悄悄话") {
		status, page := b.get(path)
		if status != http.StatusOK || strings.Contains(page, "secret") && !strings.Contains(path, "secretword") || strings.Contains(page, "薪资") || strings.Contains(page, "悄悄话") && !strings.Contains(path, "悄悄话") {
			t.Errorf("%s: %d, %s", path, status, around(page, "secret", "薪资", "悄悄话"))
		}
		if strings.Contains(page, "<button class=\"danger\"") {
			t.Errorf("%s offers an action", path)
		}
	}
	for _, path := range []string{"sessions", "sessions/" + url.PathEscape(privateKey) + "/events", "memories", "compactions"} {
		if status, text := b.do("GET", "/api/v1/"+path, "", "Authorization", "Bearer "+viewerToken); status != 200 || strings.Contains(text, "secret") || strings.Contains(text, "悄悄话") {
			t.Errorf("%s: %d, %s", path, status, around(text, "secret", "悄悄话"))
		}
	}
	before := scan[string](w, "SELECT md5(string_agg(e::text, '' ORDER BY e.id)) FROM dingtalk_session_events e")
	for _, path := range []string{"/sessions/" + url.PathEscape(groupKey) + "/undo", "/memories/1/forget", "/people/staff0001/forget", "/messages/1/retry"} {
		if status, _ := b.post(path, nil); status != http.StatusForbidden {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status, _ := b.get("/people/staff0002/export"); status != http.StatusForbidden {
		t.Errorf("export: %d", status)
	}
	if after := scan[string](w, "SELECT md5(string_agg(e::text, '' ORDER BY e.id)) FROM dingtalk_session_events e"); after != before || scan[int](w, "SELECT count(*) FROM audit") != 0 {
		t.Error("a viewer changed something")
	}
}

// around returns the first of the words with its surroundings.
func around(text string, words ...string) string {
	for _, word := range words {
		if i := strings.Index(text, word); i >= 0 {
			return text[max(i-80, 0):min(i+80, len(text))]
		}
	}
	return ""
}

// An administrator who opens a private chat is recorded, once for each opening.
func TestOpeningAPrivateChatIsAudited(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	if _, page := b.get("/sessions/" + url.PathEscape(privateKey)); !strings.Contains(page, "薪资问题") {
		t.Errorf("the administrator sees %.300s", page)
	}
	b.get("/sessions/" + url.PathEscape(groupKey))
	if got := scan[string](w, "SELECT string_agg(actor || ' ' || action || ' ' || session_key || ' ' || outcome, ', ') FROM audit"); got != "admin.token view_private "+privateKey+" done" {
		t.Errorf("audit: %s", got)
	}
	if _, page := b.get("/audit?lang=zh"); !strings.Contains(page, `<span title="view_private">打开私聊</span></td>`) || !strings.Contains(page, `<span title="done">完成</span></td>`) {
		t.Error("the page of the audit does not show it in Chinese")
	}
	w.execute("UPDATE compaction_log SET session_key = '" + privateKey + "', end_seq = 4")
	for path, shown := range map[string]bool{
		"/compactions/" + url.PathEscape(privateKey) + "/" + number(scan[int64](w, "SELECT id FROM compaction_log")): true, "/sessions": false, "/compactions": false,
	} {
		w.execute("DELETE FROM audit")
		if _, page := b.get(path); strings.Contains(page, "薪资问题") != shown || scan[bool](w, "SELECT count(*) > 0 FROM audit WHERE action = 'view_private'") != shown {
			t.Errorf("%s shows the chat, or is in the audit: want %v", path, shown)
		}
	}
	for token, want := range map[string]int{adminToken: 1, viewerToken: 0} {
		w.execute("DELETE FROM audit")
		b.do("GET", "/api/v1/sessions/"+url.PathEscape(privateKey)+"/events", "", "Authorization", "Bearer "+token)
		if n := scan[int](w, "SELECT count(*) FROM audit WHERE action = 'view_private' AND outcome = 'done'"); n != want {
			t.Errorf("the API with %s has %d rows in the audit", token, n)
		}
	}
}

// Four clicks lead from the list to the events that a compaction replaced, what was saved before it, and the undo.
func TestWhatACompactionKept(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	_, page := b.get("/sessions?q=" + url.QueryEscape("group:支付 model:qwen"))
	session := link(t, page, `href="(/sessions/[^"?]+)"`)
	_, page = b.get(session)
	for _, want := range []string{"订单号 PO-40", "摘要：订单号 PO-1 到 PO-20", "4,100 →", "发布日期定在 5 月 20 日", "没有删除任何东西", "<svg"} {
		if !strings.Contains(page, want) {
			t.Errorf("the session's page lacks %q", want)
		}
	}
	attempt := link(t, page, `href="(/compactions/[^"]+/\d+)"`)
	_, page = b.get(attempt)
	for _, want := range []string{"订单号 PO-1 ", "订单号 PO-20", "摘要：订单号 PO-1 到 PO-20", "发布日期定在 5 月 20 日", "PO-1, PO-20", "balanced"} {
		if !strings.Contains(page, want) {
			t.Errorf("the attempt's page lacks %q", want)
		}
	}
	if strings.Contains(page, "订单号 PO-21") {
		t.Error("the attempt's page shows an event that it did not cover")
	}
	w.execute("UPDATE compaction_log SET error = 'model error: busy: 429 of the provider'")
	if _, page := b.get(attempt); !strings.Contains(page, `模型服务繁忙<details class="technical"><summary>技术细节</summary><code lang="en">model error: busy: 429 of the provider</code></details>`) {
		t.Errorf("the attempt's page lacks the reason or the error: %s", around(page, "技术细节"))
	}
	if _, page := b.get("/compactions"); !strings.Contains(page, `模型服务繁忙<details class="technical">`) {
		t.Errorf("the list lacks the reason: %s", around(page, "why"))
	}
	undo := session + "/undo?id=" + number(scan[int64](w, "SELECT id FROM compaction_log"))
	if status, _ := b.post(undo, nil); status != http.StatusOK {
		t.Errorf("undo: %d", status)
	}
	if seq := scan[int64](w, "SELECT compacted_seq FROM dingtalk_sessions WHERE session_key = '"+groupKey+"'"); seq != 0 {
		t.Errorf("compacted through %d after the undo", seq)
	}
	if _, page := b.get(session); !strings.Contains(page, "之前不会自动压缩") {
		t.Errorf("the page does not say that the conversation rests: %s", around(page, "alert"))
	}
	w.execute(`UPDATE dingtalk_sessions SET settings = '{"enabled":false}'`)
	if _, page := b.get(session); strings.Contains(page, "之前不会自动压缩") {
		t.Errorf("the page names a size where nothing is compacted by itself: %s", around(page, "alert"))
	}
	if got := scan[string](w, "SELECT action || ' ' || outcome FROM audit"); got != "undo done" {
		t.Errorf("audit: %s", got)
	}
	status, page := b.post(undo, nil)
	if status != http.StatusBadRequest || !strings.Contains(page, "没有可以撤销的压缩") {
		t.Errorf("a second undo: %d %.300s", status, page)
	}
	if _, page := b.get("/audit"); !strings.Contains(page, `>撤销压缩</span>`) || !strings.Contains(page, `>没有可以撤销的压缩。</span>`) {
		t.Errorf("the audit of both: %s", around(page, "undo"))
	}
}

func link(t *testing.T, page, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no link %s in %.2000s", pattern, page)
	}
	return m[1]
}

// A form of another origin does nothing, whatever its browser sends along.
func TestOtherOrigins(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "same-site"}} {
		if status, _ := b.do("POST", "/people/staff0001/forget", "", header...); status != http.StatusForbidden {
			t.Errorf("%v: %d", header, status)
		}
	}
	if n := scan[int](w, "SELECT count(*) FROM audit"); n != 0 {
		t.Error("an action began")
	}
}

// Words of people and models are text on every page, never markup.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	w := open(t)
	const evil = `<script>alert(1)</script><img src=x onerror=alert(2)>"'{{.Data}}` + "`${7*7}"
	w.execute(`UPDATE dingtalk_session_events SET content = $$` + evil + `$$, sender_nick = $$` + evil + `$$ WHERE role = 'user'`)
	w.execute(`UPDATE dingtalk_sessions SET title = $$` + evil + `$$, compact_error = $$` + evil + `$$`)
	w.execute(`UPDATE memories SET content = $$` + evil + `$$`)
	w.execute(`UPDATE session_summaries SET summary = $$` + evil + `$$`)
	w.execute(`UPDATE compaction_log SET focus = $$` + evil + `$$, error = $$` + evil + `$$, model = $$` + evil + `$$`)
	b := w.enter(w.serve(nil), adminToken)
	for _, path := range append(w.paths(), "/sessions?q="+url.QueryEscape(evil), "/sessions?q="+url.QueryEscape(`state:`+evil), "/login?next="+url.QueryEscape(evil)) {
		_, page := b.get(path)
		if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img") || strings.Contains(page, `onerror=alert(2)>"`) {
			t.Errorf("%s has the markup of a person: %s", path, around(page, "alert("))
		}
	}
}

// Pages load nothing from another origin, and have neither style nor script of their own: the policy would refuse both.
func TestPagesNeedNothingElse(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	remote := regexp.MustCompile(`(?i)(src|href|action)="(https?:)?//|<style|\sstyle=|\son[a-z]+=|<script>|javascript:|<div class="wide">`) // a wide table has a place in the order of focus: it is scrolled by keyboard
	for _, lang := range []string{"zh", "en"} {
		b.get("/?lang=" + lang)
		for _, path := range w.paths() {
			status, page := b.get(path)
			if status != http.StatusOK || remote.MatchString(page) {
				t.Errorf("%s: %d %q", path, status, remote.FindString(page))
			}
			page = strings.ReplaceAll(page, "admin.token", "")
			if key := regexp.MustCompile(`>\s*[a-z]+\.[a-z_]+\s*<|%!`).FindString(page); key != "" {
				t.Errorf("%s in %s shows the key of a text: %q", path, lang, key)
			}
		}
	}
}

// Broken input is named to the person, and is no fault of the server.
func TestBadInput(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	b.get("/?lang=en")
	for path, want := range map[string]struct {
		status int
		words  string
	}{
		"/sessions?q=states:busy":                           {400, "states:"},
		"/sessions?q=state:asleep":                          {400, "busy, owed, failed, dead"},
		"/sessions?q=state:busy+state:dead":                 {400, "more than once"},
		"/sessions?q=state:":                                {400, "no value"},
		"/sessions?cursor=%21%21":                           {400, "cursor"},
		"/sessions?cursor=e30":                              {400, "cursor"},
		"/compactions?q=since:yesterday":                    {400, "2026-01-31"},
		"/usage?days=12":                                    {400, "days is 12"},
		"/sessions/" + url.PathEscape("robot/none"):         {404, "no such page"},
		"/sessions/%00":                                     {404, "no such page"},
		"/memories/abc":                                     {404, "no such page"},
		"/memories/99999999999999999999":                    {404, "no such page"},
		"/compactions/" + url.PathEscape(privateKey) + "/1": {404, "no such page"},
		"/people/%00":                                       {404, "no such page"},
		"/people/nobody":                                    {404, "no such page"},
		"/nowhere":                                          {404, "no such page"},
		"/sessions?q=" + url.QueryEscape(`"unfinished group 支付`): {200, ""},
	} {
		if status, page := b.get(path); status != want.status || !strings.Contains(page, want.words) {
			t.Errorf("%s: %d %s, want %d with %q", path, status, around(page, "alert"), want.status, want.words)
		}
	}
	for path, want := range map[string]string{
		"sessions?limit=0": "want 1 to 500", "sessions?limit=many": "want 1 to 500", "sessions?cursor=x": "cursor", "sessions/none/events": "no such", "none": "no such",
	} {
		status, text := b.do("GET", "/api/v1/"+path, "", "Authorization", "Bearer "+adminToken)
		var v struct{ Error string }
		if err := json.Unmarshal([]byte(text), &v); err != nil || status < 400 || status > 404 || !strings.Contains(v.Error, want) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, _ := b.post("/login", url.Values{"token": {strings.Repeat("x", 1<<20)}}); status < 400 {
		t.Errorf("a form of 1 MB: %d", status)
	}
}

// Each row is on exactly one page, also while other sessions become active.
func TestCursorsCoverAll(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, title, last_active_at)
		SELECT 'robot/many' || i, 'robot', 'many' || i, '2', 'many', now() - interval '1 minute' * (i / 3) FROM generate_series(1, 100) i`)
	b := w.visit(w.serve(nil))
	seen := map[string]int{}
	for cursor, pages := "", 0; ; pages++ { // the order of activity would leave out those that overtake the cursor
		_, text := b.do("GET", "/api/v1/sessions?q=many&limit=7&cursor="+cursor, "", "Authorization", "Bearer "+adminToken)
		var v struct {
			Items []struct {
				Key string `json:"session_key"`
			}
			Next string
		}
		if err := json.Unmarshal([]byte(text), &v); err != nil || pages > 20 {
			t.Fatalf("page %d: %s, %v", pages, text, err)
		}
		for _, one := range v.Items {
			seen[one.Key]++
		}
		if pages == 3 { // seen ones and others become active
			w.execute("UPDATE dingtalk_sessions SET last_active_at = now() WHERE right(session_key, 1) = '5'")
		}
		if cursor = v.Next; cursor == "" {
			break
		}
	}
	if len(seen) != 100 || slices.Max(slices.Collect(maps.Values(seen))) != 1 {
		t.Errorf("%d sessions are seen, one %d times", len(seen), slices.Max(slices.Collect(maps.Values(seen))))
	}
}

// Both catalogs have the same texts, with the same arguments, and every text that a template or the code names.
func TestCatalogsAreWhole(t *testing.T) {
	t.Parallel()
	read := func(lang string) map[string]string {
		b, err := os.ReadFile("render/catalog/" + lang + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]string
		if err := json.Unmarshal(b, &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	zh, en := read("zh"), read("en")
	verbs := regexp.MustCompile(`%[a-z]`)
	for key := range maps.Keys(zh) {
		if !slices.Equal(verbs.FindAllString(zh[key], -1), verbs.FindAllString(en[key], -1)) || en[key] == "" || zh[key] == "" {
			t.Errorf("%s: %q and %q", key, zh[key], en[key])
		}
	}
	if len(zh) != len(en) {
		t.Errorf("%d texts in Chinese, %d in English", len(zh), len(en))
	}
	named := regexp.MustCompile(`(?:\{\{t |\(t |\bT\(|code: |sums )"([a-z]+\.[a-z_]+)"`)
	var files []string
	for _, pattern := range []string{"render/templates/*.html", "render/*.go", "*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	n := 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(b), -1) {
			if n++; zh[m[1]] == "" {
				t.Errorf("%s names %s, which no catalog has", name, m[1])
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d texts are named", n)
	}
}
