package main

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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
	var target atomic.Pointer[url.URL]
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target.Load())
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(proxy.Close)
	b := w.openWith(t, desk, func(d *dingtalktest.Server) map[string]any {
		d.AddUser(dingtalktest.User{StaffID: rig.Zhang.ID, Nick: "Zhang"})
		d.AddRedirect(proxy.URL + config.LoginPath)
		return map[string]any{"redirect_uri": proxy.URL + config.LoginPath, "authorize_url": strings.Replace(d.URL, "127.0.0.1", "localhost", 1) + "/oauth2/auth"}
	})
	console, err := url.Parse(b.console)
	if err != nil {
		t.Fatal(err)
	}
	target.Store(console)
	b.console = proxy.URL
	b.visit("/sessions?q=" + url.QueryEscape(release.title))
	b.follow("main a[href^='/login/dingtalk']", "")
	if host := evaluate[string](b, "location.hostname"); host != "localhost" {
		t.Fatalf("the login leads to %s", host)
	}
	b.follow("a", "Zhang")
	b.run("the page after the login", chromedp.WaitReady(chromedp.CSS("nav a[href='/sessions'][aria-current=page]")))
	b.sees("td a", release.title)
	b.sees(".who", "Zhang")
	b.follow(".who button", "")
	b.visit("/sessions")
	if b.has("nav", "") || !b.has("main a[href^='/login/dingtalk']", "") {
		t.Errorf("after the logout the page is %s", b.text())
	}
}
