package admin

import (
	"io"
	"net/http"
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
	s := serveWith(t, Options{Token: token, Console: http.NotFoundHandler()})
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

// Without a token there are no profiles, on this machine either: a proxy on it passes on requests of other machines.
func TestProfilesNeedAToken(t *testing.T) {
	t.Parallel()
	s := serveWith(t, Options{Console: http.NotFoundHandler()})
	for _, host := range []string{"", "localhost", "127.0.0.1:8080", "[::1]", "rebound.example.com"} {
		for _, path := range []string{profile, "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1", "/debug/pprof/trace", "/debug/pprof/symbol", "/debug/pprof/cmdline"} {
			for _, authorization := range []string{"", "Bearer ", "Bearer x"} {
				if status, body := ask(t, s, path, authorization, host); status != 403 {
					t.Errorf("%s, Host %q: %d %.60q, want 403", path, host, status, body)
				}
			}
		}
	}
	s = serveWith(t, Options{Token: "a-token-of-32-letters-or-thereby", Console: http.NotFoundHandler()})
	if status, _ := ask(t, s, "/debug/pprof/cmdline", "Bearer a-token-of-32-letters-or-thereby", ""); status != 404 {
		t.Errorf("the command line: %d", status)
	}
}
