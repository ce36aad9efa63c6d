package admin

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const profile = "/debug/pprof/goroutine?debug=1"

// ask sends a request with an Authorization header and a Host, where they are given.
func ask(t *testing.T, s *Server, path, authorization, host string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	if host != "" {
		req.Host = host
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// With a token, being on the same machine is not enough, and no answer repeats it.
func TestProfilesNeedTheToken(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-32-letters-or-thereby"
	s := serveWith(t, Options{Token: token})
	for _, c := range []struct {
		name, authorization string
		status              int
	}{
		{"none", "", 401},
		{"another", "Bearer another", 401},
		{"its beginning", "Bearer " + token[:31], 401},
		{"more than it", "Bearer " + token + "x", 401},
		{"nothing after the scheme", "Bearer ", 401},
		{"another scheme", "Basic " + token, 401},
		{"no scheme", token, 401},
		{"the token", "Bearer " + token, 200},
		{"the scheme in small letters", "bearer " + token, 200},
	} {
		for _, host := range []string{"", "localhost", "ebb.example.com"} {
			status, body := ask(t, s, profile, c.authorization, host)
			if status != c.status || strings.Contains(body, "goroutine profile:") != (c.status == 200) || strings.Contains(body, token) {
				t.Errorf("%s, Host %q: %d %.60q, want %d", c.name, host, status, body, c.status)
			}
		}
	}
	if status, _ := ask(t, s, "/healthz", "", ""); status != 200 {
		t.Errorf("a probe without the token: %d", status)
	}
}

// Without a token only requests on this machine by this machine's own name are answered. A page from elsewhere that a
// browser on this machine loaded gives itself away by the name that now leads here.
func TestProfilesWithoutATokenAreForThisMachine(t *testing.T) {
	t.Parallel()
	s := serveWith(t, Options{})
	for host, want := range map[string]int{
		"": 200, "localhost": 200, "LOCALHOST:8080": 200, "127.0.0.1:8080": 200, "127.8.0.1": 200, "[::1]:8080": 200, "[::1]": 200,
		"rebound.example.com": 403, "rebound.example.com:8080": 403, "localhost.example.com": 403, "127.0.0.1.example.com": 403,
		"192.0.2.7": 403, "0.0.0.0": 403, "10.0.0.1:8080": 403, "localhost.": 403,
	} {
		if status, body := ask(t, s, profile, "", host); status != want {
			t.Errorf("Host %q: %d %.60q, want %d", host, status, body, want)
		}
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1", "/debug/pprof/trace", "/debug/pprof/symbol"} {
		if status, _ := ask(t, s, path, "", "rebound.example.com"); status != 403 {
			t.Errorf("%s under another name: %d", path, status)
		}
	}
	if status, _ := ask(t, s, "/debug/pprof/cmdline", "", ""); status != 404 {
		t.Errorf("the command line: %d", status)
	}
}

// The origin of a request is its connection's address; a forwarded request comes from elsewhere.
func TestOnlyLoopbackIsThisMachine(t *testing.T) {
	t.Parallel()
	passed := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for _, c := range []struct {
		from, header string
		status       int
	}{
		{"127.0.0.1:5000", "", 204},
		{"[::1]:5000", "", 204},
		{"[::ffff:127.0.0.1]:5000", "", 204},
		{"192.0.2.7:5000", "", 403},
		{"[2001:db8::7]:5000", "", 403},
		{"10.0.0.7:5000", "", 403},
		{"", "", 403},
		{"127.0.0.1:5000", "X-Forwarded-For", 403},
		{"127.0.0.1:5000", "Forwarded", 403},
		{"127.0.0.1:5000", "Via", 403},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, profile, nil)
		r.RemoteAddr, r.Host = c.from, "localhost"
		if c.header != "" {
			r.Header.Set(c.header, "127.0.0.1")
		}
		w := httptest.NewRecorder()
		guard("", passed).ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("from %q with %q: %d, want %d", c.from, c.header, w.Code, c.status)
		}
	}
}
