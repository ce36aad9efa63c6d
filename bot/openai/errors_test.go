package openai

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"ebb/bot/openai/openaitest"
	"ebb/sessions/llm"
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

// Providers repeat requests in their errors, and logs are shipped. An error has the class, status and code, and a hash that
// identifies the text, but no word of it.
func TestErrorsHaveNoWordOfTheProvider(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply openaitest.Reply
		want  string
	}{
		"a refusal":             {openaitest.Error(400, "", `{"error":{"code":"invalid_request_error","type":"BadRequest","message":"upstream says no SECRETWORD"}}`), "400): the provider answered invalid_request_error BadRequest (27 bytes, hash "},
		"a number":              {openaitest.Error(429, "", `{"error":{"code":1113,"message":"SECRETWORD"}}`), "429): the provider answered 1113 (10 bytes, hash "},
		"a code of words":       {openaitest.Error(400, "", `{"error":{"code":"no SECRETWORD","message":"x"}}`), "the provider answered without a code (1 bytes, hash "},
		"a code with an object": {openaitest.Error(400, "", `{"code":{"is":"SECRETWORD"},"message":"x"}`), "the provider answered without a code (1 bytes, hash "},
		"a text":                {openaitest.Error(500, "", "upstream says no SECRETWORD"), "500): the provider answered without a code (27 bytes, hash "},
		"a page":                {openaitest.Raw(502, "text/html", "<html>SECRETWORD</html>"), "502): the provider answered without a code ("},
		"a detail":              {openaitest.Error(422, "", `{"detail":[{"input":"SECRETWORD"}]}`), "422): the provider answered without a code"},
		"inside a stream":       {openaitest.Events(`{"error":{"code":"upstream_error","message":"SECRETWORD"}}`), "the provider answered upstream_error (10 bytes, hash "},
		"an invalid answer":     {openaitest.Raw(200, "application/json", `SECRETWORD`), "the answer has no choices"},
		"no chunk of a stream":  {openaitest.Events(`SECRETWORD`), "decoding the answer: invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openaitest.NewServer(t, openaitest.WhenFunc(openaitest.IsKind(openaitest.Chat), func(openaitest.Request) openaitest.Reply { return c.reply }))
			_, err := clientOf(t, 0, s).Generate(t.Context(), ask("SECRETWORD"))
			if err == nil || strings.Contains(err.Error(), "SECRETWORD") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A server that speaks no HTTP is quoted by the client's library.
func TestErrorsQuoteNoServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("upstream says \"no\" SECRETWORD\r\n\r\n"))
			_ = conn.Close()
		}
	}()
	c, err := New(Config{Models: []ModelConfig{{Name: "a", BaseURL: "http://" + l.Addr().String() + "/v1", Model: "m", Timeout: 20 * time.Second}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err = c.Generate(t.Context(), ask("Q1")); err == nil || strings.Contains(err.Error(), "SECRETWORD") {
		t.Errorf("got %v", err)
	}
}
