package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"ebb/bot/console"
)

// Without a token no request is an administrator's by its origin: a proxy on the machine passes on those of other machines. The code that the
// process shows admits once, then the next one does. A code that is wrong or was used does not.
func TestNoTokenMeansAOneTimeCode(t *testing.T) {
	t.Parallel()
	w := open(t)
	var codes []string
	base := w.serve(func(c *console.Config) {
		c.Token, c.ViewerToken, c.ShowCode = "", "", func(code string) { codes = append(codes, code) }
	})
	b := w.visit(base)
	for _, path := range append(w.paths()[:4], "/api/v1/sessions") {
		for _, header := range [][]string{nil, {"X-Forwarded-For", "203.0.113.9"}, {"Authorization", "Bearer "}, {"Authorization", "Bearer " + codes[0]}} {
			if _, page := b.do("GET", path, "", header...); strings.Contains(page, "支付网关发布") || strings.Contains(page, "PO-1") {
				t.Fatalf("%s with %q is open: %.300s", path, header, page)
			}
		}
	}
	if status, _ := b.post("/people/staff0001/forget", nil); status != http.StatusUnauthorized {
		t.Errorf("an action without a login: %d", status)
	}
	for _, wrong := range []string{"", "x", codes[0][:20]} {
		if status, page := w.visit(base).get("/login?code=" + wrong); wrong != "" && status == http.StatusOK || !strings.Contains(page, "一次性登录码") {
			t.Errorf("the code %q: %d %s", wrong, status, around(page, "alert"))
		}
	}
	if status, _ := w.visit(base).do("HEAD", "/login?code="+codes[0], ""); status != http.StatusOK || len(codes) != 1 {
		t.Errorf("a look at the link takes the code: %d, %d codes", status, len(codes))
	}
	if _, page := b.get("/login?next=/sessions&code=" + codes[0]); !strings.Contains(page, "支付网关发布") {
		t.Errorf("the link of the log leads to %.300s", page)
	}
	if _, page := b.get("/login?next=/sessions&code=" + codes[0]); !strings.Contains(page, "支付网关发布") {
		t.Errorf("the same browser with the link again is at %.300s", page)
	}
	if _, page := w.visit(base).get("/login?next=/sessions&code=" + codes[0]); strings.Contains(page, "支付网关发布") {
		t.Error("another browser enters by a used code")
	}
	if len(codes) != 2 || codes[0] == codes[1] {
		t.Fatalf("%d codes are shown after one login: %q", len(codes), codes)
	}
	other := w.visit(base)
	if status, _ := other.post("/login", url.Values{"token": {" " + codes[1] + "\n"}}); status != http.StatusOK {
		t.Errorf("the next code in the form: %d", status)
	}
	for range 6 {
		b.post("/login", url.Values{"token": {"guess"}})
	}
	if status, _ := w.visit(base).post("/login", url.Values{"token": {codes[2]}}); status != http.StatusOK {
		t.Errorf("the right code after many wrong ones: %d", status)
	}
	if n := scan[int](w, "SELECT count(*) FROM console_logins WHERE actor = 'code'"); n != 3 {
		t.Errorf("%d logins by code", n)
	}
}
