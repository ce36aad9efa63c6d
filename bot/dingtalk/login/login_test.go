package login_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ebb/bot/dingtalk"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/dingtalk/login"
	"ebb/memory/pages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const callback = "https://console.example/login/dingtalk/callback"

// world is a simulator, and a login of its first application.
type world struct {
	t      *testing.T
	sim    *dingtalktest.Server
	login  *login.Login
	client *http.Client
}

func open(t *testing.T, lacks ...string) *world {
	t.Helper()
	o := dingtalktest.Fast()
	o.Apps = []dingtalktest.App{{ClientID: "app1", ClientSecret: "secret-of-app1", RedirectURIs: []string{callback}, Lacks: lacks}}
	o.Users = []dingtalktest.User{{StaffID: "u1", Nick: "李\n雷\u202e<b>"}, {StaffID: "u2"}}
	sim := dingtalktest.NewServer(t, o)
	transport := &http.Transport{DisableKeepAlives: true} // a request on a kept connection is repeated after a reset
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	w := &world{t: t, sim: sim, client: client}
	w.login = w.with("secret-of-app1")
	return w
}

func (w *world) with(secret string) *login.Login {
	w.t.Helper()
	tokens, err := dingtalk.New(dingtalk.Config{ClientID: "app1", ClientSecret: secret, APIBase: w.sim.URL, OAPIBase: w.sim.URL, HTTP: w.client})
	if err != nil {
		w.t.Fatal(err)
	}
	return login.New(login.Config{
		ClientID: "app1", ClientSecret: secret, APIBase: w.sim.URL, OAPIBase: w.sim.URL, AuthorizeURL: w.sim.URL + "/oauth2/auth",
		RedirectURI: callback, Tokens: tokens, HTTP: w.client,
	})
}

// agree is a person who agrees to a login. It returns the code.
func (w *world) agree(person string) string {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.login.Address("state 1")+"&person="+person, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = resp.Body.Close()
	to, err := resp.Location()
	if err != nil || to.Query().Get("state") != "state 1" {
		w.t.Fatalf("the page leads to %v, %v", to, err)
	}
	return to.Query().Get("authCode")
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	w := open(t)
	for person, nick := range map[string]string{"u1": "李 雷<b>", "u2": "User u2"} {
		if got, err := w.login.Identify(t.Context(), w.agree(person)); err != nil || string(got.ID) != person || got.Nick != nick {
			t.Errorf("%s is %q, %v", person, got, err)
		}
	}
	w.sim.RevokeTokens() // a refused token of the application is renewed
	if got, err := w.login.Identify(t.Context(), w.agree("u1")); err != nil || got.ID != "u1" {
		t.Errorf("after a revocation: %q, %v", got, err)
	}
	if v := w.sim.Violations(); len(v) > 0 {
		t.Errorf("violations: %v", v)
	}
}

// Each refusal has its reason, and no error has a code, a token or a secret.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := open(t)
	used := w.agree("u1")
	if _, err := w.login.Identify(t.Context(), used); err != nil {
		t.Fatal(err)
	}
	old := w.agree("u1")
	w.sim.Advance(6 * time.Minute)
	late := open(t)
	gone := late.agree("u1")
	late.sim.AddUser(dingtalktest.User{StaffID: "u1", External: true})
	for name, try := range map[string]struct {
		login *login.Login
		code  string
		want  error
	}{
		"a used code": {w.login, used, pages.ErrLoginCode}, "an old code": {w.login, old, pages.ErrLoginCode}, "no code": {w.login, "", pages.ErrLoginCode},
		"a code of nothing": {w.login, "guess", pages.ErrLoginCode}, "a code of 1 MB": {w.login, strings.Repeat("x", 1<<20), pages.ErrLoginCode},
		"a code of another platform": {w.login, gone, pages.ErrLoginCode}, "a wrong secret": {w.with("wrong-secret"), w.agree("u1"), pages.ErrLoginSetup},
		"an external contact": {late.login, gone, pages.ErrOutsider},
	} {
		got, err := try.login.Identify(t.Context(), try.code)
		if !errors.Is(err, try.want) || got.ID != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		for _, secret := range []string{"secret-of-app1", "wrong-secret", try.code} {
			if len(secret) > 5 && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error has a secret: %.200s", name, err)
			}
		}
	}
	for _, permission := range []string{dingtalktest.PermissionContact, dingtalktest.PermissionMember} {
		w := open(t, permission)
		if _, err := w.login.Identify(t.Context(), w.agree("u1")); !errors.Is(err, pages.ErrLoginSetup) || !strings.Contains(err.Error(), permission) {
			t.Errorf("without %s: %v", permission, err)
		}
	}
}

// A platform that answers nonsense, redirects or breaks off identifies no one.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	for _, route := range []string{dingtalktest.RouteUserToken, dingtalktest.RouteMe, dingtalktest.RouteUserByUnionID} {
		for name, fault := range map[string]dingtalktest.Action{
			"a failure": {Status: 502, Body: "<html>"}, "no JSON": {Status: 200, Body: "hello"}, "null": {Status: 200, Body: "null"}, "other types": {Status: 200, Body: `{"accessToken":3,"unionId":[],"errcode":"x","result":7}`},
			"a redirect": {Status: 307, Header: map[string]string{"Location": "http://127.0.0.1:9/"}}, "a cut": {Cut: dingtalktest.CutTruncate}, "a reset": {Cut: dingtalktest.CutReset},
			"no contact type": {Status: 200, Body: `{"errcode":0,"result":{"userid":"u1"}}`}, "a broken id": {Status: 200, Body: `{"errcode":0,"result":{"contact_type":0,"userid":"u1\u0000"}}`},
		} {
			w := open(t)
			code := w.agree("u1")
			w.sim.AddFault(dingtalktest.Fault{Route: route, Action: fault, Count: 1})
			if got, err := w.login.Identify(t.Context(), code); err == nil || got.ID != "" {
				t.Errorf("%s of %s: %q, %v", name, route, got, err)
			} else if strings.Contains(err.Error(), "access_token=") || strings.Contains(err.Error(), url.QueryEscape(w.sim.URL)) {
				t.Errorf("%s of %s: the error has the address: %v", name, route, err)
			}
		}
	}
}
