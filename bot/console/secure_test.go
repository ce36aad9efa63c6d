package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"ebb/bot/console"
)

// Behind TLS the cookie is Secure, also where the proxy does not name its scheme: the browser's Origin does.
func TestCookieIsSecureBehindTLS(t *testing.T) {
	t.Parallel()
	base := open(t).serve(nil)
	for header, want := range map[string]bool{"Origin: https://ebb.example": true, "X-Forwarded-Proto: https": true, "Origin: http://ebb.example": false} {
		name, value, _ := strings.Cut(header, ": ")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/login", strings.NewReader(url.Values{"token": {adminToken}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "ebb.example"
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set(name, value)
		client := &http.Client{CheckRedirect: stay, Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if cookie := resp.Header.Get("Set-Cookie"); cookie == "" || strings.Contains(cookie, "; Secure") != want {
			t.Errorf("with %s the cookie is %q", header, cookie)
		}
	}
}

// A login by a link has no form, whose origin a browser would name. Behind TLS its cookie is Secure all the same: by the site that the browser
// names over TLS alone, or by the address that DingTalk leads back to. On this machine a browser names the site without TLS.
func TestCookieOfALinkIsSecureBehindTLS(t *testing.T) {
	t.Parallel()
	w := open(t)
	code := ""
	base := w.serve(func(c *console.Config) {
		c.Token, c.ViewerToken, c.ShowCode = "", "", func(next string) { code = next }
	})
	for _, c := range []struct {
		host, site string
		want       bool
	}{
		{"ebb.example", "none", true}, {"ebb.example:8443", "cross-site", true}, {"ebb.example", "", false}, {"127.0.0.1:8080", "none", false}, {"localhost:8080", "none", false}, {"[::1]:8080", "none", false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/login?code="+code, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		client := &http.Client{CheckRedirect: stay, Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if cookie := resp.Header.Get("Set-Cookie"); !strings.Contains(cookie, "ebb_console=") || strings.Contains(cookie, "; Secure") != c.want {
			t.Errorf("at %s with the site %q the cookie is %q", c.host, c.site, cookie)
		}
	}

	p := w.invite()
	b := p.visit(p.serve())
	back := p.agree(b, "boss", "/")
	for _, step := range []struct {
		b    *browser
		path string
	}{{p.visit(b.base), "/login/dingtalk"}, {b, back}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, step.b.base+step.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		step.b.http.CheckRedirect = stay
		resp, err := step.b.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		cookies := resp.Header.Values("Set-Cookie")
		if len(cookies) == 0 || slices.ContainsFunc(cookies, func(c string) bool { return !strings.Contains(c, "; Secure") }) {
			t.Errorf("%s: the cookies are %q", step.path, cookies)
		}
	}
}
