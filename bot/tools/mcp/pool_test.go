package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ebb/bot/chat"
	"ebb/sessions"
)

// running returns a pool whose servers were tried, and which ends with the test.
func running(t *testing.T, servers ...Server) *Pool {
	t.Helper()
	p := New(Config{Servers: servers, Version: "test", Now: time.Now})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	p.AwaitTried(ctx)
	return p
}

func find(t *testing.T, p *Pool, name string) chat.Tool {
	t.Helper()
	for _, tool := range p.Tools("cid", sessions.Group) {
		if tool.Spec().Name == name {
			return tool
		}
	}
	t.Fatalf("no tool %s among %v", name, namesOf(p.Tools("cid", sessions.Group)))
	return nil
}

func namesOf(tools []chat.Tool) (names []string) {
	for _, tool := range tools {
		names = append(names, tool.Spec().Name)
	}
	return names
}

func call(t *testing.T, p *Pool, name, args string) (string, error) {
	t.Helper()
	return find(t, p, name).Call(t.Context(), chat.ToolInput{Arguments: args})
}

// both runs a test over each of the two ways to a server.
func both(t *testing.T, f func(t *testing.T, s Server)) {
	t.Helper()
	t.Run("stdio", func(t *testing.T) { t.Parallel(); f(t, stdio(t)) })
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		s, _ := overHTTP(t, nil)
		f(t, s)
	})
}

func TestCallsReachTheServer(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s Server) {
		p := running(t, s)
		if got, err := call(t, p, "odd__echo", `{"text":"你好"}`); err != nil || got != "echo: 你好" {
			t.Errorf("got %q, %v", got, err)
		}
		if _, err := call(t, p, "odd__fail", `{"text":""}`); err == nil || !strings.Contains(err.Error(), "no such document") {
			t.Errorf("a tool's own error: %v", err)
		}
		for _, bad := range []string{"", "null", "[1]", `"x"`, "{"} {
			if _, err := call(t, p, "odd__echo", bad); err == nil || !strings.Contains(err.Error(), "no JSON object") {
				t.Errorf("arguments %q: %v", bad, err)
			}
		}
		if got, err := call(t, p, "odd__picture", `{"text":""}`); err != nil || !strings.Contains(got, "image/png") {
			t.Errorf("a picture: %q, %v", got, err)
		}
		if got, err := call(t, p, "odd__nul", `{"text":""}`); err != nil || got != "ab" {
			t.Errorf("a NUL: %q, %v", got, err)
		}
	})
}

// A tool that hangs costs its own call. Others of the same server answer meanwhile and afterwards.
func TestHangingCallCostsOneCall(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s Server) {
		s.Timeout = 500 * time.Millisecond
		p := running(t, s)
		hung := make(chan error)
		go func() {
			_, err := find(t, p, "odd__hang").Call(t.Context(), chat.ToolInput{Arguments: `{"text":""}`})
			hung <- err
		}()
		if got, err := call(t, p, "odd__echo", `{"text":"a"}`); err != nil || got != "echo: a" {
			t.Errorf("meanwhile: %q, %v", got, err)
		}
		if err := <-hung; err == nil || !strings.Contains(err.Error(), "may have had an effect") {
			t.Errorf("the call that hangs: %v", err)
		}
		if got, err := call(t, p, "odd__echo", `{"text":"b"}`); err != nil || got != "echo: b" {
			t.Errorf("after it: %q, %v", got, err)
		}
	})
}

// A server that dies is started again. Its tools stay offered, and the next call waits for it.
func TestDeadServerIsStartedAgain(t *testing.T) {
	t.Parallel()
	p := running(t, stdio(t))
	version := p.Version()
	for range 2 {
		if _, err := call(t, p, "odd__die", `{"text":""}`); err == nil || !strings.Contains(err.Error(), "broke") {
			t.Errorf("the call that ends the server: %v", err)
		}
		if got, err := call(t, p, "odd__echo", `{"text":"a"}`); err != nil || got != "echo: a" {
			t.Errorf("after it: %q, %v", got, err)
		}
	}
	if p.Version() != version {
		t.Error("the same list of tools counts as another one: prompt caches would be lost")
	}
}

// Answers of any size cost one call, and the log gets a bounded text.
func TestLargeAnswersAreBounded(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s Server) {
		s.Timeout = time.Minute // a busy machine needs seconds for the bytes, and a call without an answer is another test
		p := running(t, s)
		got, err := call(t, p, "odd__flood", `{"text":""}`)
		if err != nil || len(got) > maxText+100 || !strings.HasSuffix(got, "[The result had 5000000 bytes, and ends here.]") {
			t.Errorf("5 MB: %d bytes, %v", len(got), err)
		}
		if _, err := call(t, p, "odd__deluge", `{"text":""}`); err == nil {
			t.Error("20 MB were taken")
		}
		if got, err := call(t, p, "odd__echo", `{"text":"a"}`); err != nil || got != "echo: a" {
			t.Errorf("after it: %q, %v", got, err)
		}
	})
}

// A child process sees the configured variables and none of the bot's.
func TestChildSeesNoSecretOfTheBot(t *testing.T) {
	t.Setenv("LLM_API_KEY", "sk-of-the-bot")
	got, err := call(t, running(t, stdio(t)), "odd__environment", `{"text":""}`)
	if err != nil || strings.Contains(got, "sk-of-the-bot") || !strings.Contains(got, "ODD_KEY=***") || !strings.Contains(got, "PATH=") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestNewToolsAreOffered(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s Server) {
		p := running(t, s)
		version := p.Version()
		if _, err := call(t, p, "odd__grow", `{"text":""}`); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(30 * time.Second); p.Version() == version; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the list of tools was not read again")
			}
		}
		if got, err := call(t, p, "odd__grown", `{"text":""}`); err != nil || got != "grown" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A server is offered where the configuration allows it, and one with a person's credentials in that person's private chat alone.
func TestToolsOfAConversation(t *testing.T) {
	t.Parallel()
	all, some, own := stdio(t), stdio(t), stdio(t)
	all.Name, all.Allow = "all", []string{"echo"}
	some.Name, some.Allow, some.Groups, some.Confirm = "some", []string{"e*"}, []string{"cid1"}, []string{"echo"}
	own.Name, own.Allow, own.Groups, own.Personal = "own", []string{"echo"}, []string{"cid3", "cid5", "*"}, true
	p := running(t, all, some, own)
	for _, c := range []struct {
		id   sessions.ConversationID
		kind sessions.ConversationType
		want string
	}{
		{"cid1", sessions.Group, "all__echo some__echo some__environment"},
		{"cid2", sessions.Group, "all__echo"},
		{"cid3", sessions.Private, "all__echo own__echo"},
		{"cid4", sessions.Private, "all__echo"},
		{"cid5", sessions.Group, "all__echo"},
	} {
		if got := strings.Join(namesOf(p.Tools(c.id, c.kind)), " "); got != c.want {
			t.Errorf("%s: got %s, want %s", c.id, got, c.want)
		}
	}
}

// A server that can't be reached delays nothing, is tried again, and its status names the reason without a secret.
func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	s, _ := overHTTP(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !up.Load() {
				http.Error(w, "refused: "+r.Header.Get("Authorization"), http.StatusServiceUnavailable)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	missing := Server{Name: "missing", Command: "no-such-program-anywhere", Allow: []string{"*"}, Groups: []string{"*"}, Timeout: time.Second}
	p := running(t, s, missing)
	for _, status := range p.Status() {
		if status.Connected || status.Fault == "" || status.Failures == 0 {
			t.Errorf("%+v", status)
		}
		for _, secret := range []string{"token-of-the-bot", "key-in-the-address"} {
			if strings.Contains(status.Fault, secret) {
				t.Errorf("the fault shows a secret: %s", status.Fault)
			}
		}
	}
	up.Store(true)
	for end := time.Now().Add(30 * time.Second); !p.Status()[0].Connected; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server was not tried again")
		}
	}
	if got, err := call(t, p, "odd__echo", `{"text":"a"}`); err != nil || got != "echo: a" {
		t.Errorf("%q, %v", got, err)
	}
}

// A wait for the server of a tool ends with its first connection, or with the wait's time. Tools without a server of the conversation are not
// waited for.
func TestConnectionIsAwaited(t *testing.T) {
	t.Parallel()
	s := stdio(t)
	s.Groups = []string{"cid"}
	p := New(Config{Servers: []Server{s}, Version: "test", Now: time.Now})
	waits := func(ctx context.Context, id sessions.ConversationID, tool string) bool {
		return p.Connected(ctx, id, sessions.Group, tool)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if waits(ended, "cid", "odd__echo") {
		t.Error("a server that was never started is connected")
	}
	for _, other := range []struct {
		id   sessions.ConversationID
		tool string
	}{{"other", "odd__echo"}, {"cid", "even__echo"}, {"cid", "remind"}} {
		if !waits(ended, other.id, other.tool) {
			t.Errorf("%s of %s is waited for", other.tool, other.id)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	defer func() { stop(); <-done }()
	if !waits(t.Context(), "cid", "odd__echo") || len(p.Tools("cid", sessions.Group)) == 0 {
		t.Error("the first connection ended no wait, or its tools are unknown then")
	}
}

// A server that forgot its sessions, as after a restart, can't have run a call: it is made again.
func TestForgottenSessionIsRenewed(t *testing.T) {
	t.Parallel()
	var forgotten atomic.Value
	s, _ := overHTTP(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if id := r.Header.Get("Mcp-Session-Id"); id != "" && id == forgotten.Load() {
				http.NotFound(w, r)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	p := running(t, s)
	session, err := p.connections[0].link.awaitShortly(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if session.ID() == "" {
		t.Fatal("the session has no id")
	}
	forgotten.Store(session.ID())
	if got, err := call(t, p, "odd__echo", `{"text":"a"}`); err != nil || got != "echo: a" {
		t.Errorf("%q, %v", got, err)
	}
}

// The credentials of a server go to its own origin only.
func TestRedirectsGetNoCredentials(t *testing.T) {
	t.Parallel()
	var stolen atomic.Bool
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stolen.Store(true)
		http.Error(w, "thanks", http.StatusTeapot)
	}))
	t.Cleanup(thief.Close)
	s, _ := overHTTP(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		})
	})
	if p := running(t, s); p.Status()[0].Connected || stolen.Load() {
		t.Errorf("a redirect was followed: %+v", p.Status())
	}
}

// Each name is one that providers accept, and no two tools share one.
func TestNamesAreSafe(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		taken := map[string]bool{}
		for _, name := range rapid.SliceOfNDistinct(rapid.String(), 1, 20, rapid.ID).Draw(t, "names") {
			full := nameOf("files", name, taken)
			if len(full) > maxName || taken[full] || strings.ContainsFunc(full, func(r rune) bool {
				return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", r)
			}) {
				t.Fatalf("%q became %q", name, full)
			}
			taken[full] = true
		}
	})
}

// FuzzSchema holds that any schema of a server becomes one of an object that fits into a request.
func FuzzSchema(f *testing.F) {
	for _, seed := range []string{`{"type":"object"}`, `{}`, `null`, `{"type":["object"]}`, `{"$schema":"x","type":"object","properties":{"a":{}}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var schema map[string]any
		if json.Unmarshal([]byte(raw), &schema) != nil {
			return
		}
		got := objectSchema(schema)
		text, err := json.Marshal(got)
		if err != nil || got["type"] != "object" || got["properties"] == nil || len(text) > maxSchema+100 {
			t.Errorf("%s became %s, %v", raw, text, err)
		}
	})
}

func TestFaultsAreMasked(t *testing.T) {
	t.Parallel()
	s, _ := overHTTP(t, nil)
	s.Env = map[string]string{"TOKEN": "a-secret-token"}
	s.Args = []string{"postgres://reader:db-password@db/docs", "--api-key", "key-behind-it", "--auth-token=key-in-it", "/srv/handbook"}
	got := s.faultOf(errors.New(`Post "` + s.URL + `": a-secret-token Bearer token-of-the-bot postgres://reader:db-password@db/docs key-behind-it key-in-it /srv/handbook` + strings.Repeat(" x", 1000)))
	if len(got) > maxFault+5 || slices.ContainsFunc([]string{"a-secret", "token-of-the-bot", "key-in-the-address", "db-password", "key-behind-it", "key-in-it"}, func(secret string) bool { return strings.Contains(got, secret) }) {
		t.Errorf("got %s", got)
	}
	if !strings.Contains(got, "/srv/handbook") {
		t.Errorf("a directory is masked: %s", got)
	}
}
