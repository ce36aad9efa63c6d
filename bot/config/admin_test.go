package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A login leads back to the console alone, by https or on this machine.
func TestLoginAddresses(t *testing.T) {
	t.Parallel()
	for uri, ok := range map[string]bool{
		"": true, "https://ebb.example.com" + LoginPath: true, "https://ebb.example.com:8443" + LoginPath: true, "http://localhost:8080" + LoginPath: true,
		"http://127.0.0.1" + LoginPath: true, "http://[::1]:80" + LoginPath: true,
		"http://ebb.example.com" + LoginPath: false, "http://localhost.example.com" + LoginPath: false, "https://ebb.example.com/": false, "https://ebb.example.com" + LoginPath + "/": false,
		"https://ebb.example.com" + LoginPath + "?next=x": false, "https://ebb.example.com" + LoginPath + "#x": false, "https://user@ebb.example.com" + LoginPath: false,
		LoginPath: false, "//ebb.example.com" + LoginPath: false, "https:" + LoginPath: false, "javascript://x" + LoginPath: false, "https://ebb.example.com/x/.." + LoginPath: false,
	} {
		_, err := parseConfig("f.jsonc", []byte(fmt.Sprintf(`{"admin": {"dingtalk_login": {"redirect_uri": %q}}}`, uri)), env(), NeedNothing)
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "admin.dingtalk_login.redirect_uri") {
			t.Errorf("%q: %v, want accepted: %v", uri, err, ok)
		}
	}
	for page, ok := range map[string]bool{"https://login.dingtalk.com/oauth2/auth": true, "http://127.0.0.1:9/oauth2/auth": true, "": false, "http://login.dingtalk.com/oauth2/auth": false, "https://login.dingtalk.com/?a=b": false} {
		_, err := parseConfig("f.jsonc", []byte(fmt.Sprintf(`{"admin": {"dingtalk_login": {"authorize_url": %q}}}`, page)), env(), NeedNothing)
		if (err == nil) != ok {
			t.Errorf("%q: %v, want accepted: %v", page, err, ok)
		}
	}
}

// A token that is short enough to be guessed is accepted with a warning, which does not show it.
func TestTokenLengths(t *testing.T) {
	t.Parallel()
	for token, long := range map[string]bool{"": true, "secret-token-16c": true, "secret-token-15": false, "令牌令牌令牌令牌": false, "密": false} {
		for _, key := range []string{"token", "viewer_token"} {
			cfg := mustParse(t, fmt.Sprintf(`{"admin": {%q: %q}}`, key, token))
			said := strings.Join(cfg.Warnings, "\n")
			if warned := strings.Contains(said, "admin."+key); warned == long || warned && strings.Contains(said, token) {
				t.Errorf("admin.%s of %q: warnings %q", key, token, said)
			}
		}
	}
}

// One token for both roles makes each viewer an administrator.
func TestTokensDiffer(t *testing.T) {
	t.Parallel()
	const token = "secret-token-16c"
	_, err := parseConfig("f.jsonc", []byte(fmt.Sprintf(`{"admin": {"token": %q, "viewer_token": %q}}`, token, token)), env(), NeedNothing)
	if err == nil || !strings.Contains(err.Error(), "admin.viewer_token") || strings.Contains(err.Error(), token) {
		t.Errorf("equal tokens: %v", err)
	}
	if _, err := parseConfig("f.jsonc", []byte(`{"admin": {"token": "", "viewer_token": ""}}`), env(), NeedNothing); err != nil {
		t.Errorf("no tokens: %v", err)
	}
}

// A person administers the groups that list their staff id, which is never empty.
func TestAdministers(t *testing.T) {
	t.Parallel()
	cfg := mustParse(t, groupsFile(`"b": {"admins": ["staff01", "staff02"]}, "a": {"admins": ["staff01"]}, "c": {}`))
	for person, want := range map[string][]string{"staff01": {"a", "b"}, "staff02": {"b"}, "staff0": nil, "": nil} {
		if got := cfg.Administers(person); !slices.Equal(got, want) {
			t.Errorf("%q administers %q, want %q", person, got, want)
		}
	}
	if _, err := parseConfig("f.jsonc", []byte(groupsFile(`"a": {"admins": [""]}`)), env(), NeedNothing); err == nil || !strings.Contains(err.Error(), "admins[0]") {
		t.Errorf("an empty id: %v", err)
	}
}
