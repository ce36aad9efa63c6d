package main

import (
	"context"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"ebb/bot/config"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/cmd/lab/rig"
)

// logInByDingTalk logs an administrator in by DingTalk, which is another site. The strict cookie of the login is there on the next
// page, which a redirect from the other site would not have.
func (w *world) logInByDingTalk(t *testing.T) {
	t.Helper()
	b := w.openLogin(t)
	b.visit("/sessions?q=" + url.QueryEscape(release.title))
	b.agree("Zhang")
	b.sees("nav a[href='/sessions'][aria-current=page]", "")
	b.sees("td a", release.title)
	b.sees(".who", "Zhang")
	b.follow(".who button", "")
	b.visit("/sessions")
	if b.has("nav", "") || !b.has("main a[href^='/login/dingtalk']", "") {
		t.Errorf("after the logout the page is %s", b.text())
	}
}

// openLogin opens a tab on a console with logins by DingTalk, without one.
func (w *world) openLogin(t *testing.T) *tab {
	t.Helper()
	var target atomic.Pointer[url.URL]
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target.Load())
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(proxy.Close)
	b := w.openWith(t, desk, func(d *dingtalktest.Server) map[string]any {
		d.AddUser(dingtalktest.User{StaffID: rig.Zhang.ID, Nick: "Zhang"})
		d.AddUser(dingtalktest.User{StaffID: rig.Alex.ID, Nick: "Alex of checkout"})
		d.AddRedirect(proxy.URL + config.LoginPath)
		return map[string]any{"redirect_uri": proxy.URL + config.LoginPath, "authorize_url": strings.Replace(d.URL, "127.0.0.1", "localhost", 1) + "/oauth2/auth"}
	})
	console, err := url.Parse(b.console)
	if err != nil {
		t.Fatal(err)
	}
	target.Store(console)
	b.console = proxy.URL
	return b
}

// agree logs a person in on DingTalk's page.
func (b *tab) agree(name string) {
	b.t.Helper()
	b.follow("main a[href^='/login/dingtalk']", "")
	if host := evaluate[string](b, "location.hostname"); host != "localhost" {
		b.t.Fatalf("the login leads to %s", host)
	}
	b.press("a", name) // a page of the console leads on at once
	b.run("the page after the login", chromedp.WaitReady(chromedp.CSS("nav a[aria-current=page]")))
}

// foreign are texts of other groups and of private chats.
var foreign = []string{
	release.title, release.id, longest.title, longest.id, verbose.Name, verbose.ID, orderNumber, orderAsked, forgetful, "想换到风控组", logLine, "检查发布窗口", "提交转组申请",
}

// walkAsGroupAdministrator opens each page that a link leads a group's administrator to, and addresses outside the group. A page with
// a text of another group is a fault.
func (w *world) walkAsGroupAdministrator(t *testing.T) {
	t.Helper()
	b := w.openLogin(t)
	b.visit("/")
	b.agree("Alex of checkout")
	seen, queue := map[string]bool{"/": true}, []string{"/"}
	for len(queue) > 0 && len(seen) < 150 {
		path := queue[0]
		queue = queue[1:]
		b.walk(path, http.StatusOK)
		for _, next := range evaluate[[]string](b, `[...document.querySelectorAll('a[href]')].map(a => new URL(a.href)).filter(u => u.origin === location.origin && !u.searchParams.has('lang')).map(u => u.pathname + u.search)`) {
			if !seen[next] {
				seen[next], queue = true, append(queue, next)
			}
		}
	}
	for _, part := range []string{"/sessions/", "/compactions/", "/memories/", "/schedules", "/usage?", "/attention", "/audit", "/privacy"} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(seen)), func(path string) bool { return strings.HasPrefix(path, part) }) {
			t.Errorf("no link leads to %s: %q", part, slices.Sorted(maps.Keys(seen)))
		}
	}
	for path, status := range map[string]int{
		b.paths.Session: 404, b.paths.Longest: 404, b.paths.Private: 404, b.paths.Attempt: 404, b.paths.Memory: 404, b.paths.Person: 403, "/people": 403,
		"/restarts": 403, "/settings": 403, "/retention": 403, b.paths.Session + "/work": 404, b.paths.Session + "/search?q=x": 403, "/schedules?q=" + url.QueryEscape("group:支付"): 200,
	} {
		b.walk(path, status)
	}
}

// walk opens a page, or reads a file, and checks its status and its texts.
func (b *tab) walk(path string, want int) {
	b.t.Helper()
	status, text := 0, ""
	if strings.Contains(path, "format=csv") {
		answer := evaluate[struct {
			Status int
			Text   string
		}](b, fmt.Sprintf("fetch(%q).then(async r => ({Status: r.status, Text: await r.text()}))", path))
		status, text = answer.Status, answer.Text
	} else {
		ctx, stop := context.WithTimeout(b.ctx, patience)
		defer stop()
		response, err := chromedp.RunResponse(ctx, chromedp.Navigate(b.console+path))
		if err != nil {
			b.t.Fatalf("%s: %v", path, err)
		}
		b.fits(path)
		status, text = int(response.Status), evaluate[string](b, "document.documentElement.outerHTML")
	}
	if status != want {
		b.t.Errorf("%s: %d, want %d", path, status, want)
	}
	for _, one := range foreign {
		if text = strings.ReplaceAll(text, html.EscapeString(path), ""); strings.Contains(text, one) {
			b.t.Errorf("%s shows %q", path, one)
		}
	}
}
