package openai

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"ebb/bot/llm"
	"ebb/bot/openai/openaitest"
)

// An endpoint without a listener is unreachable.
func TestUnreachableEndpoint(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{free, "nowhere.invalid"} {
		c, err := New(Config{Models: []ModelConfig{{Name: "a", BaseURL: "http://" + address + "/v1", Model: "m", Timeout: 20 * time.Second}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		_, err = c.Generate(t.Context(), ask("Q1"))
		class(t, err, llm.Unreachable)
		if log := err.Error(); !strings.HasPrefix(log, "model a: unreachable: ") || strings.Contains(log, "busy") {
			t.Errorf("%s: logged as %q", address, log)
		}
	}
}

// A provider's fault with its own address, keys or bills is no fault of the request, whatever the status.
func TestWhoIsToBlame(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply openaitest.Reply
		own   bool
	}{
		"no such model":     {openaitest.Error(404, "", `{"error":{"code":"model_not_found","message":"The model does not exist"}}`), false},
		"a web server":      {openaitest.Error(404, "", "<html>404 page not found</html>"), false},
		"a login page":      {openaitest.Error(302, "", "login"), false},
		"a wrong path":      {openaitest.Error(405, "", "method not allowed"), false},
		"a bill":            {openaitest.Error(400, "", `{"error":{"code":"billing_hard_limit_reached","message":"Billing hard limit has been reached"}}`), false},
		"another bill":      {openaitest.Error(400, "", `{"error":{"message":"Your credit balance is too low to access the API."}}`), false},
		"not found inside":  {openaitest.Error(200, "", `{"error":{"code":404,"message":"no such deployment"}}`), false},
		"refused inside":    {openaitest.Error(200, "", `{"error":{"code":400,"message":"messages[3].content is invalid"}}`), true},
		"an invalid body":   {openaitest.Error(400, "", `{"error":{"code":"invalid_request_error","message":"messages[3].content is invalid"}}`), true},
		"unprocessable":     {openaitest.Error(422, "", `{"detail":"content: field required"}`), true},
		"a filter":          {openaitest.Error(400, "", `{"error":{"code":"data_inspection_failed","message":"inappropriate content"}}`), true},
		"a filter by a 403": {openaitest.Error(403, "", `{"error":{"code":"content_filter","message":"violates the content policy"}}`), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := clientOf(t, 0, openaitest.NewServer(t, c.reply)).Generate(t.Context(), llm.Request{Messages: ask("Q").Messages})
			fault, ok := errors.AsType[*llm.CallError](err)
			if !ok || fault.RequestFault() != c.own {
				t.Errorf("got %v, blaming the request: %v", err, ok && fault.RequestFault())
			}
		})
	}
}
