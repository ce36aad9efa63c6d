package console_test

import (
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ebb/bot/console"
	"ebb/bot/console/auth"
	"ebb/bot/dingtalk"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/dingtalk/login"
	"ebb/sessions"
)

const (
	public   = "https://console.example" // the address that browsers know
	otherKey = "robot/cidOther"
)

// people are a DingTalk with people who log in, and their rights.
type people struct {
	*world
	sim    *dingtalktest.Server
	client *http.Client
	rights atomic.Pointer[map[sessions.UserID]auth.Rights]
}

// invite adds a DingTalk to a world: an administrator, one of the group alone, and a person without rights.
func (w *world) invite() *people {
	w.t.Helper()
	o := dingtalktest.Fast()
	o.APIQPS = dingtalktest.Unlimited
	o.Apps = []dingtalktest.App{
		{ClientID: "app1", ClientSecret: "secret-of-app1", RedirectURIs: []string{public + console.CallbackPath}},
		{ClientID: "app2", ClientSecret: "secret-of-app2", RedirectURIs: []string{public + console.CallbackPath}},
	}
	o.Users = []dingtalktest.User{
		{StaffID: "boss"}, {StaffID: "lead", Nick: `<script>alert(1)</script>"'><img src=x>`}, {StaffID: "stranger"}, {StaffID: "guest", External: true},
	}
	transport := &http.Transport{DisableKeepAlives: true}
	p := &people{world: w, sim: dingtalktest.NewServer(w.t, o), client: &http.Client{Transport: transport, CheckRedirect: stay}}
	p.may(map[sessions.UserID]auth.Rights{"boss": {Admin: true}, "lead": {Groups: []sessions.ConversationID{"cidGroup"}}})
	return p
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// may puts rights in force.
func (p *people) may(rights map[sessions.UserID]auth.Rights) { p.rights.Store(&rights) }

// serve starts a console that people log in to, behind a proxy that ends TLS.
func (p *people) serve() string {
	p.t.Helper()
	tokens, err := dingtalk.New(dingtalk.Config{ClientID: "app1", ClientSecret: "secret-of-app1", APIBase: p.sim.URL, OAPIBase: p.sim.URL, HTTP: p.client})
	if err != nil {
		p.t.Fatal(err)
	}
	base := p.world.serve(func(c *console.Config) {
		c.Identity = login.New(login.Config{
			ClientID: "app1", ClientSecret: "secret-of-app1", APIBase: p.sim.URL, OAPIBase: p.sim.URL, AuthorizeURL: p.sim.URL + "/oauth2/auth",
			RedirectURI: public + console.CallbackPath, Tokens: tokens, HTTP: p.client,
		})
		c.Rights = func(id sessions.UserID) auth.Rights { return (*p.rights.Load())[id] }
	})
	return strings.Replace(base, "http://", "https://", 1)
}

// agree begins a login in a browser, and agrees to it as a person. It returns the path of the way back.
func (p *people) agree(b *browser, person, next string) string {
	p.t.Helper()
	to := b.leads("/login/dingtalk?next=" + url.QueryEscape(next))
	if to == nil || !strings.HasPrefix(to.String(), p.sim.URL+"/oauth2/auth?") {
		p.t.Fatalf("the login leads to %v", to)
	}
	back := (&browser{p.t, "", p.client}).leads(to.String() + "&person=" + person)
	if back == nil || !strings.HasPrefix(back.String(), public+console.CallbackPath+"?") {
		p.t.Fatalf("DingTalk leads to %v", back)
	}
	return back.RequestURI()
}

// leads returns where a page leads to, nil if it stays.
func (b *browser) leads(path string) *url.URL {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.base+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	client := *b.http
	client.CheckRedirect = stay
	resp, err := client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = resp.Body.Close()
	to, err := resp.Location()
	if err != nil {
		return nil
	}
	return to
}

// enterAs opens a browser with the login of a person.
func (p *people) enterAs(base, person string) *browser {
	p.t.Helper()
	b := p.visit(base)
	if status, page := b.get(p.agree(b, person, "/")); status != http.StatusOK {
		p.t.Fatalf("login of %s: %d %s", person, status, page)
	}
	return b
}

// A person who administers something logs in by DingTalk, on one replica, and is known to all. Rights that end, end at once.
func TestLoginByDingTalk(t *testing.T) {
	t.Parallel()
	p := open(t).invite()
	first, second := p.serve(), p.serve()
	for person, role := range map[string]string{"boss": "管理员", "lead": "群管理员"} {
		b := p.visit(first)
		if _, page := b.get("/sessions?q=group:支付"); !strings.Contains(page, `href="/login/dingtalk?next=%2fsessions`) {
			t.Errorf("the login lacks the link: %s", around(page, "dingtalk"))
		}
		back := p.agree(b, person, "/sessions?q=group:支付")
		b.base = second
		cookies(t, b, first, second)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, second+back, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := b.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if to := resp.Header.Get("Refresh"); resp.StatusCode != http.StatusOK || to != "0; url=/sessions?q=group:支付" {
			t.Errorf("%s: %d leads to %q", person, resp.StatusCode, to)
		}
		if cookie := strings.Join(resp.Header.Values("Set-Cookie"), "\n"); !strings.Contains(cookie, "ebb_console=") || !strings.Contains(cookie, "SameSite=Strict") || !strings.Contains(cookie, "ebb_login=;") {
			t.Errorf("cookies: %s", cookie)
		}
		b.base = first
		cookies(t, b, second, first)
		if _, page := b.get("/sessions"); !strings.Contains(page, role) || !strings.Contains(page, "支付网关发布") || strings.Contains(page, "<script>alert") || strings.Contains(page, "<img") {
			t.Errorf("%s sees %s", person, around(page, "role", "alert"))
		}
		p.may(map[sessions.UserID]auth.Rights{})
		if _, page := b.get("/sessions"); strings.Contains(page, "支付网关发布") || !strings.Contains(page, "/login/dingtalk") {
			t.Errorf("without rights %s sees %.300s", person, page)
		}
		p.may(map[sessions.UserID]auth.Rights{"boss": {Admin: true}, "lead": {Groups: []sessions.ConversationID{"cidGroup"}}})
		b.post("/logout", nil)
		for _, b.base = range []string{first, second} {
			if _, page := b.get("/sessions"); strings.Contains(page, "支付网关发布") {
				t.Errorf("after the logout %s sees %.300s", person, page)
			}
		}
	}
	if v := p.sim.Violations(); len(v) > 0 {
		t.Errorf("violations: %v", v)
	}
}

// A login needs the browser that began it, a state and a code that are fresh, and a person with rights. Every other one is
// refused with the reason, and leaves no login behind.
func TestRefusedLogins(t *testing.T) {
	t.Parallel()
	p := open(t).invite()
	base := p.serve()
	refused := func(name string, b *browser, path string, status int, words string) {
		t.Helper()
		b.get("/login?lang=en")
		got, page := b.get(path)
		if got != status || !strings.Contains(page, words) {
			t.Errorf("%s: %d %s, want %d with %q", name, got, around(page, "alert", "<body>"), status, words)
		}
		if _, page := b.get("/sessions"); strings.Contains(page, "支付网关发布") {
			t.Errorf("%s: the browser is logged in", name)
		}
	}
	state, code := "did not begin in this browser", "does not accept the code"
	b := p.visit(base)
	back := p.agree(b, "boss", "/")
	refused("another browser", p.visit(base), back, 400, state)
	refused("a forged state", b, console.CallbackPath+"?authCode=x&state=forged", 400, state)
	b = p.visit(base)
	back = p.agree(b, "boss", "/")
	if status, _ := b.get(back); status != 200 {
		t.Fatalf("login: %d", status)
	}
	b.post("/logout", nil)
	refused("the same way back again", b, back, 400, state)
	refused("no state", p.visit(base), console.CallbackPath+"?authCode=x", 400, state)
	// The browser keeps the cookie of a state that was used: the state is over for every replica.
	b = p.visit(base)
	back = p.agree(b, "stranger", "/")
	kept := b.http.Jar.Cookies(parse(t, base+console.CallbackPath))
	refused("a person without rights", b, back, 403, "Your id is stranger")
	b.http.Jar.SetCookies(parse(t, base+console.CallbackPath), kept)
	refused("a used state with its cookie", b, back, 400, state)
	for name, made := range map[string]string{"a state that is over": "1-x", "a state without an end": "x", "a state that lasts": "zzzzzzzz-x"} {
		b = p.visit(base)
		b.http.Jar.SetCookies(parse(t, base+console.CallbackPath), []*http.Cookie{{Name: "ebb_login", Value: made + ".Lw"}})
		refused(name, b, console.CallbackPath+"?authCode=x&state="+made, 400, state)
	}

	with := func(code string) (*browser, string) {
		b := p.visit(base)
		u := parse(t, p.agree(b, "boss", "/"))
		q := u.Query()
		if code == "" {
			q.Del("authCode")
		} else {
			q.Set("authCode", code)
		}
		return b, u.Path + "?" + q.Encode()
	}
	b, path := with("")
	refused("no code", b, path, 401, code)
	b, path = with("guess")
	refused("a code of nothing", b, path, 401, code)
	b, path = with(strings.Repeat("x", 100_000))
	refused("a long code", b, path, 401, code)
	used := p.visit(base)
	back = p.agree(used, "boss", "/")
	used.get(back)
	b, path = with(parse(t, back).Query().Get("authCode"))
	refused("a used code", b, path, 401, code)
	b = p.visit(base)
	to := b.leads("/login/dingtalk")
	q := to.Query()
	q.Set("client_id", "app2")
	foreign := (&browser{t, "", p.client}).leads(p.sim.URL + to.Path + "?" + q.Encode() + "&person=boss")
	refused("a code of another application", b, foreign.RequestURI(), 401, code)
	if n := scan[int](p.world, "SELECT count(*) FROM console_logins"); n != 1 {
		t.Errorf("%d logins are kept, want that of the used code alone", n)
	}
	if n := scan[int](p.world, "SELECT count(*) FROM console_login_states WHERE octet_length(state_hash) <> 32"); n != 0 {
		t.Error("a state is stored as it is")
	}
}

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// A platform that fails or refuses the application is named as the reason.
func TestLoginWhileDingTalkFails(t *testing.T) {
	t.Parallel()
	p := open(t).invite()
	base := p.serve()
	for route, want := range map[string]string{dingtalktest.RouteUserToken: "did not answer as expected", dingtalktest.RouteMe: "refuses the application", dingtalktest.RouteUserByUnionID: "Only members"} {
		fault := map[string]dingtalktest.Action{
			dingtalktest.RouteUserToken: {Status: 503, Body: "{}"}, dingtalktest.RouteMe: {Status: 403, Body: `{"code":"Forbidden"}`},
			dingtalktest.RouteUserByUnionID: {Status: 200, Body: `{"errcode":60121}`},
		}[route]
		b := p.visit(base)
		b.get("/login?lang=en")
		back := p.agree(b, "boss", "/")
		p.sim.AddFault(dingtalktest.Fault{Route: route, Action: fault, Count: 1})
		if status, page := b.get(back); status < 400 || !strings.Contains(page, want) {
			t.Errorf("%s: %d %s", route, status, around(page, "alert"))
		}
	}
}

// A login leads to a path of the console, whatever its link names.
func TestLoginLeadsToTheConsole(t *testing.T) {
	t.Parallel()
	p := open(t).invite()
	base := p.serve()
	for next, want := range map[string]string{
		"/usage?days=7": "/usage?days=7", "": "/", "//evil.example/": "/", "https://evil.example/": "/", "/\\evil.example": "/", "/\t/evil.example": "/", "javascript:alert(1)": "/",
		"/\r\nSet-Cookie: x=y": "/", "/" + strings.Repeat("x", 5000): "/", "/;url=https://evil.example": "/;url=https://evil.example", `"https://evil.example`: "/",
	} {
		b := p.visit(base)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+p.agree(b, "boss", next), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := b.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get("Refresh"); got != "0; url="+want {
			t.Errorf("after %q the login leads to %q", next, got)
		}
	}
}

// Anonymous requests that begin logins lock out no one behind the same address, as that of a proxy, and leave nothing on the server. The same holds for
// forged ends of logins.
func TestAnonymousLoginsLockNoneOut(t *testing.T) {
	t.Parallel()
	p := open(t).invite()
	base := p.serve()
	others := p.visit(base)
	others.http.CheckRedirect = stay
	for range 200 {
		if status, _ := others.get("/login/dingtalk"); status != http.StatusSeeOther {
			t.Fatalf("a login that begins: %d", status)
		}
	}
	if n := scan[int](p.world, "SELECT count(*) FROM console_login_states"); n != 0 {
		t.Errorf("%d rows of logins that began", n)
	}
	for range 200 {
		if status, _ := others.get(console.CallbackPath + "?authCode=x&state=x"); status != http.StatusBadRequest {
			t.Fatalf("a forged end: %d", status)
		}
	}
	b := p.visit(base)
	if status, page := b.get(p.agree(b, "boss", "/")); status != http.StatusOK {
		t.Errorf("a login after the others: %d %s", status, around(page, "alert"))
	}
	if _, page := b.get("/sessions"); !strings.Contains(page, "支付网关发布") {
		t.Errorf("after the login the page is %.300s", page)
	}
}

// codesAsked counts the codes that DingTalk was asked for.
func (p *people) codesAsked() (n int) {
	for _, e := range p.sim.Transcript() {
		if e.Route == dingtalktest.RouteUserToken {
			n++
		}
	}
	return n
}

// A login that did not begin here asks DingTalk nothing, whatever state and cookie it brings. Logins that began here with codes of nothing,
// all from one address, leave those of other addresses their turn.
func TestForgedLoginsTakeNothing(t *testing.T) {
	t.Parallel()
	p := open(t).invite()
	base := p.serve()
	soon := strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 36)
	for i := range 30 {
		b := p.visit(base)
		made := soon + "-" + strconv.Itoa(i)
		value := made + "." + base64.RawURLEncoding.EncodeToString([]byte("/"))
		if i%2 == 0 {
			value += "." + base64.RawURLEncoding.EncodeToString(make([]byte, 32))
		}
		b.http.Jar.SetCookies(parse(t, base+console.CallbackPath), []*http.Cookie{{Name: "ebb_login", Value: value}})
		if status, _ := b.get(console.CallbackPath + "?authCode=x&state=" + made); status != http.StatusBadRequest {
			t.Fatalf("a forged login: %d", status)
		}
	}
	if n := p.codesAsked(); n != 0 {
		t.Errorf("DingTalk was asked for %d codes of forged logins", n)
	}

	var wg sync.WaitGroup
	for range 150 { // more than DingTalk is asked for within the time of a login
		b := p.visit(base)
		b.http.Transport.(tlsProxy).plain.DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext
		u := parse(t, p.agree(b, "boss", "/"))
		wg.Go(func() { b.get(u.Path + "?authCode=guess&state=" + url.QueryEscape(u.Query().Get("state"))) })
	}
	b := p.visit(base)
	if status, page := b.get(p.agree(b, "boss", "/")); status != http.StatusOK {
		t.Errorf("a login beside the others: %d %s", status, around(page, "alert"))
	}
	wg.Wait()
}

// The end of one login, repeated at once, takes the others behind its address neither their places nor their questions to DingTalk.
func TestRepeatedLoginsTakeNothing(t *testing.T) {
	t.Parallel()
	p := open(t).invite()
	base := p.serve()
	first := p.visit(base)
	p.agree(first, "boss", "/")
	kept := first.http.Jar.Cookies(parse(t, base+console.CallbackPath))
	if len(kept) != 1 {
		t.Fatalf("the cookies of a login that began: %v", kept)
	}
	state, _, _ := strings.Cut(kept[0].Value, ".")
	var wg sync.WaitGroup
	var waited, asked atomic.Int64
	for range 60 {
		b := p.visit(base)
		b.http.Jar.SetCookies(parse(t, base+console.CallbackPath), kept)
		wg.Go(func() {
			switch status, _ := b.get(console.CallbackPath + "?authCode=guess&state=" + state); status {
			case http.StatusBadRequest:
			case http.StatusUnauthorized:
				asked.Add(1)
			default:
				waited.Add(1)
			}
		})
	}
	b := p.visit(base)
	if status, page := b.get(p.agree(b, "boss", "/")); status != http.StatusOK {
		t.Errorf("a login beside the others: %d %s", status, around(page, "alert"))
	}
	wg.Wait()
	if asked.Load() != 1 || waited.Load() != 0 {
		t.Errorf("of 60 ends of one login %d asked DingTalk, and %d took the place of another login", asked.Load(), waited.Load())
	}
}

// With a login by DingTalk a request of this machine needs a login: a proxy on it serves others.
func TestLoginIsNeededOnThisMachine(t *testing.T) {
	t.Parallel()
	p := open(t).invite()
	b := p.visit(p.world.serve(func(c *console.Config) {
		c.Token, c.ViewerToken = "", ""
		c.Identity, c.Rights = login.New(login.Config{}), func(sessions.UserID) auth.Rights { return auth.Rights{} }
	}))
	for _, path := range []string{"/sessions", "/api/v1/sessions"} {
		if _, page := b.get(path); strings.Contains(page, "支付网关发布") {
			t.Errorf("%s without a login: %.300s", path, page)
		}
	}
	if status, _ := p.visit(p.world.serve(nil)).get("/login/dingtalk"); status != http.StatusNotFound {
		t.Errorf("a login by DingTalk that is not configured: %d", status)
	}
}

// A memory and a person are forgotten with everything that says so.
func TestForget(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	id := scan[int64](w, "SELECT id FROM memories WHERE scope = 'user'")
	if status, _ := b.post("/memories/"+number(id)+"/forget", nil); status != http.StatusOK || scan[int](w, "SELECT count(*) FROM memories") != 1 {
		t.Errorf("forget a memory: %d", status)
	}
	if _, text := b.get("/people/staff0001/export"); strings.Count(text, "\n") != 21 || !strings.Contains(text, "PO-39") {
		t.Errorf("export has %d lines: %.300s", strings.Count(text, "\n"), text)
	}
	if status, page := b.get("/people/staff0001"); status != http.StatusOK || !strings.Contains(page, "<dd>1</dd>") || !strings.Contains(page, "最近的消息") || strings.Contains(page, "/forget") {
		t.Errorf("a person: %d %s", status, page)
	}
	if status, page := b.get("/people/staff0001?preview=yes"); status != http.StatusOK || !strings.Contains(page, "<dd>20</dd>") || !strings.Contains(page, "/forget") {
		t.Errorf("preview: %d %s", status, page)
	}
	if status, _ := b.post("/people/staff0001/forget", nil); status != http.StatusOK {
		t.Errorf("forget a person: %d", status)
	}
	if n := scan[int](w, "SELECT count(*) FROM dingtalk_session_events WHERE sender_id = 'staff0001' OR content LIKE '%PO-39%'"); n != 0 {
		t.Errorf("%d events are left", n)
	}
	if status, _ := b.post("/people/staff0001/forget", nil); status != http.StatusNotFound {
		t.Errorf("forget again: %d", status)
	}
	if rows := scan[string](w, "SELECT coalesce(string_agg(audit::text, ' '), '') FROM audit WHERE position('staff0001' IN audit::text) > 0"); rows != "" {
		t.Errorf("the audit names the person who was forgotten: %s", rows)
	}
}
