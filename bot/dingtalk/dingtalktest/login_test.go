package dingtalktest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
)

const callback = "https://console.example/login"

// agree opens the page of a login and returns where it leads, empty if it shows a fault.
func agree(t *testing.T, s *dingtalktest.Server, change map[string]string) *url.URL {
	t.Helper()
	q := url.Values{
		"client_id": {"dingsimapp0001"}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {"openid"}, "prompt": {"consent"}, "state": {"s 1"}, "person": {"u1"},
	}
	for name, value := range change {
		q.Set(name, value)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/oauth2/auth?"+q.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	to, err := resp.Location()
	if err != nil {
		return nil
	}
	return to
}

func exchange(t *testing.T, s *dingtalktest.Server, id, secret, code string) (int, string) {
	t.Helper()
	return request(t, "POST", s.URL+"/v1.0/oauth2/userAccessToken",
		fmt.Sprintf(`{"clientId":%q,"clientSecret":%q,"code":%q,"grantType":"authorization_code"}`, id, secret, code), nil)
}

func newLogins(t *testing.T) *dingtalktest.Server {
	t.Helper()
	o := still()
	o.Apps = []dingtalktest.App{
		{ClientID: "dingsimapp0001", ClientSecret: "sim-secret", RedirectURIs: []string{callback}},
		{ClientID: "dingsimapp0002", ClientSecret: "sim-secret2", RedirectURIs: []string{callback}, Lacks: []string{dingtalktest.PermissionContact, dingtalktest.PermissionMember}},
	}
	o.Users = []dingtalktest.User{{StaffID: "u1", Nick: "Li", UnionID: "union1"}, {StaffID: "u9", External: true}}
	return dingtalktest.NewServer(t, o)
}

// A login leads from the page to the person's staff id, and its code is good for one token of its application.
func TestLoginLeadsToTheStaffID(t *testing.T) {
	t.Parallel()
	s := newLogins(t)
	to := agree(t, s, nil)
	if to == nil || !strings.HasPrefix(to.String(), callback+"?") || to.Query().Get("state") != "s 1" {
		t.Fatalf("the page leads to %v", to)
	}
	code := to.Query().Get("authCode")
	for name, try := range map[string][2]string{"a wrong secret": {"dingsimapp0001", "guess"}, "another application": {"dingsimapp0002", "sim-secret2"}} {
		if status, body := exchange(t, s, try[0], try[1], code); status != 400 {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	status, body := exchange(t, s, "dingsimapp0001", "sim-secret", code)
	var token struct{ AccessToken string }
	if err := json.Unmarshal([]byte(body), &token); err != nil || status != 200 || token.AccessToken == "" {
		t.Fatalf("the exchange: %d %s", status, body)
	}
	if status, body := exchange(t, s, "dingsimapp0001", "sim-secret", code); status != 400 || !strings.Contains(body, "authCode") {
		t.Errorf("a code was taken twice: %d %s", status, body)
	}
	if status, body := api(t, s, token.AccessToken, "GET", "/v1.0/contact/users/me", ""); status != 200 || !strings.Contains(body, `"unionId":"union1"`) || strings.Contains(body, "u1\"") && strings.Contains(body, "userid") {
		t.Errorf("users/me: %d %s", status, body)
	}
	if _, body := request(t, "POST", s.URL+"/topapi/user/getbyunionid?access_token="+token.AccessToken, `{"unionid":"union1"}`, nil); !strings.Contains(body, "40014") {
		t.Errorf("a person's token is taken for an application's: %s", body)
	}
	for union, want := range map[string]string{"union1": `"userid":"u1"`, "unu9": `"contact_type":1`, "none": "60121", "": "40035"} {
		if _, body := request(t, "POST", s.URL+"/topapi/user/getbyunionid?access_token="+token1(t, s), fmt.Sprintf(`{"unionid":%q}`, union), nil); !strings.Contains(body, want) {
			t.Errorf("union id %q: %s", union, body)
		}
	}
}

// token1 is the token of the first application. Repeated fetches are its fault and not the subject here.
func token1(t *testing.T, s *dingtalktest.Server) string {
	t.Helper()
	_, body := request(t, "GET", s.URL+"/gettoken?appkey=dingsimapp0001&appsecret=sim-secret", "", nil)
	var v struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatal(err)
	}
	return v.Token
}

// The page of a login shows faults itself, and leads nowhere then.
func TestLoginPageRefuses(t *testing.T) {
	t.Parallel()
	s := newLogins(t)
	for _, change := range []map[string]string{
		{"client_id": "other"},
		{"redirect_uri": "https://evil.example/"},
		{"redirect_uri": callback + "/more"},
		{"response_type": "token"},
		{"scope": "corpid"},
		{"prompt": ""},
		{"person": "u9"},
		{"person": "unknown"},
		{"person": ""},
	} {
		if to := agree(t, s, change); to != nil {
			t.Errorf("%v leads to %s", change, to)
		}
	}
	code := agree(t, s, nil).Query().Get("authCode")
	s.Advance(6 * time.Minute)
	if status, _ := exchange(t, s, "dingsimapp0001", "sim-secret", code); status != 400 {
		t.Errorf("an old code: %d", status)
	}
	code = agree(t, s, map[string]string{"client_id": "dingsimapp0002"}).Query().Get("authCode")
	_, body := exchange(t, s, "dingsimapp0002", "sim-secret2", code)
	var token struct{ AccessToken string }
	if err := json.Unmarshal([]byte(body), &token); err != nil {
		t.Fatal(err)
	}
	if status, body := api(t, s, token.AccessToken, "GET", "/v1.0/contact/users/me", ""); status != 403 || !strings.Contains(body, dingtalktest.PermissionContact) {
		t.Errorf("without the permission: %d %s", status, body)
	}
}
