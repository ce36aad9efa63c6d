package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
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
