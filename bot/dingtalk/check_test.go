package dingtalk

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/sessions"
)

func TestCheckCredentials(t *testing.T) {
	t.Parallel()
	s := simulator(t)
	if err := newTransport(t, s.URL, nil).CheckCredentials(testContext(t)); err != nil {
		t.Errorf("the right secret: %v", err)
	}
	err := newTransport(t, s.URL, func(c *Config) { c.ClientSecret = "wrong-secret" }).CheckCredentials(testContext(t))
	if !errors.Is(err, ErrCredentials) || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("a wrong secret: %v", err)
	}
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	if err := newTransport(t, dead.URL, nil).CheckCredentials(testContext(t)); err == nil || errors.Is(err, ErrCredentials) {
		t.Errorf("no server: %v", err)
	}
}

func TestNewRefusesInvalidSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"no id":          {ClientSecret: "s"},
		"no secret":      {ClientID: "i"},
		"base":           {ClientID: "i", ClientSecret: "s", APIBase: "api.dingtalk.com"},
		"webhook base":   {ClientID: "i", ClientSecret: "s", OAPIBase: "ftp://x"},
		"base with user": {ClientID: "i", ClientSecret: "s", APIBase: "https://u:p@x"},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	tr, err := New(Config{ClientID: "i", ClientSecret: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for hook, ok := range map[string]bool{
		"https://oapi.dingtalk.com/robot/sendBySession?session=1":     true,
		"https://oapi.dingtalk.com:443/robot/sendBySession?session=1": true,
		"https://OAPI.dingtalk.com/robot/sendBySession?session=1":     true,
		"http://oapi.dingtalk.com/robot/sendBySession?session=1":      false,
		"https://oapi.dingtalk.com:8443/robot/sendBySession":          false,
		"https://oapi.dingtalk.com.evil.example/robot/sendBySession":  false,
		"https://oapi.dingtalk.com@evil.example/robot/sendBySession":  false,
	} {
		if err := tr.sender.webhooks.check(sessions.Target{Webhook: hook}); (err == nil) != ok {
			t.Errorf("%s: %v", hook, err)
		}
	}
}

// An app that the gateway alone refuses, wrong credentials and a gateway that is away fail the check of the stream; no secret shows. Only
// the refusal of an app with the right credentials suggests the mode of the bot.
func TestCheckStream(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, dingtalktest.Fast())
	if err := newTransport(t, s.URL, nil).CheckStream(testContext(t)); err != nil {
		t.Fatal(err)
	}
	err := newTransport(t, s.URL, func(c *Config) { c.ClientSecret = "wrong-secret" }).CheckStream(testContext(t))
	if !errors.Is(err, ErrCredentials) || errors.Is(err, ErrStream) || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("a wrong secret: %v", err)
	}
	for status, refused := range map[int]bool{401: true, 403: true, 429: false, 500: false, 503: false} {
		s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteOpen, Action: dingtalktest.Action{
			Status: status, Body: `{"code":"authFailed","message":"no stream mode for ` + testSecret + `"}`,
		}})
		tr := newTransport(t, s.URL, nil)
		if err := tr.CheckCredentials(testContext(t)); err != nil {
			t.Fatal(err)
		}
		err := tr.CheckStream(testContext(t))
		if err == nil || strings.Contains(err.Error(), testSecret) || errors.Is(err, ErrStream) != refused || errors.Is(err, ErrCredentials) {
			t.Errorf("status %d: %v", status, err)
		}
	}
	gone := dingtalktest.New(dingtalktest.Fast())
	gone.Close()
	err = newTransport(t, gone.URL, nil).CheckStream(testContext(t))
	if err == nil || strings.Contains(err.Error(), "stream mode") {
		t.Errorf("without an answer: %v", err)
	}
}
