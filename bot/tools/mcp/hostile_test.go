package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ebb/bot/tools/mcp/mcptest"
	"ebb/sessions"
)

// scripted answers each method with a fixed JSON, without regard for the protocol's rules.
func scripted(t *testing.T, answers map[string]string) Server {
	t.Helper()
	s, _ := overHTTP(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var asked struct {
				ID     json.RawMessage
				Method string
			}
			if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&asked) != nil {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			if asked.ID == nil {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			body, known := answers[asked.Method]
			if !known {
				body = `"error":{"code":-32601,"message":"method not found"}`
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(asked.ID) + `,` + body + `}`))
		})
	})
	return s
}

const initialized = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"liar","version":"1"}}`

// A tool that is listed on each of endless pages is offered once. Providers refuse a request with two tools of one name, and all turns would fail.
func TestToolListedOnEndlessPagesIsOne(t *testing.T) {
	t.Parallel()
	s := scripted(t, map[string]string{
		"initialize": initialized,
		"tools/list": `"result":{"nextCursor":"again","tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"a","inputSchema":{"type":"object"}}]}`,
	})
	if got := namesOf(running(t, s).Tools("cid", "2")); !slices.Equal(got, []string{"odd__a"}) {
		t.Errorf("got %v", got)
	}
}

// A server that foresees the hash of a name can't make two tools share one.
func TestForeseenHashIsNoCollision(t *testing.T) {
	t.Parallel()
	taken := map[string]bool{"odd__a_b": true}
	foreseen := nameOf("odd", "a.b", taken)
	taken = map[string]bool{}
	for _, name := range []string{strings.TrimPrefix(foreseen, "odd__"), "a_b", "a.b"} {
		full := nameOf("odd", name, taken)
		if taken[full] {
			t.Fatalf("%s becomes %s, as another one", name, full)
		}
		taken[full] = true
	}
}

// Two tools whose names differ in refused characters alone keep their names, whichever the server lists first.
func TestNamesDoNotSwap(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"a.b", "a_b", "a/b"}, {"a/b", "a_b", "a.b"}, {"a_b", "a.b", "a/b"}} {
		taken := map[string]bool{}
		for _, name := range order {
			full := nameOf("odd", name, taken)
			if alone := nameOf("odd", name, map[string]bool{}); full != alone {
				t.Errorf("%s is %s in the order %v, and %s alone", name, full, order, alone)
			}
			taken[full] = true
		}
	}
}

// The * of a pattern stands for any character of a name: a tool with a slash needs its approval, too.
func TestPatternsMatchSlashes(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"*", "*delete*", "repo*", "repo?delete", "repo/delete"} {
		if !matches([]string{pattern}, "repo/delete") {
			t.Errorf("%s does not match repo/delete", pattern)
		}
	}
}

func TestSchemasThatProvidersRefuse(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"type":"object","properties":"all"}`, `{"type":"object","properties":[]}`, `{"type":"object","properties":{"a":null}}`, `{"type":"object","required":"a"}`,
		`{"type":"object","properties":{"a":{"type":"text"}}}`, `{"type":"object","anyOf":[{"type":"object"}]}`, `{"type":"object","properties":{"a":{"enum":[]}}}`,
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/x"}}}`, `{"type":"object","description":5}`,
		strings.Repeat(`{"type":"object","properties":{"a":`, 100) + `{}` + strings.Repeat(`}}`, 100),
	} {
		var schema map[string]any
		if err := json.Unmarshal([]byte(raw), &schema); err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(objectSchema(schema)); string(text) != `{"properties":{},"type":"object"}` {
			t.Errorf("%s is offered as %s", raw, text)
		}
	}
	good := `{"additionalProperties":false,"properties":{"a":{"items":{"type":"string"},"type":["array","null"]},"b":{"anyOf":[{"type":"integer"},{"$ref":"#/$defs/x"}]}},"required":["a"],"type":"object"}`
	var schema map[string]any
	_ = json.Unmarshal([]byte(good), &schema)
	if text, _ := json.Marshal(objectSchema(schema)); string(text) != good {
		t.Errorf("%s is offered as %s", good, text)
	}
}

// An answer of a server has none of its credentials, which a group would read, and no NUL, which some providers refuse.
func TestAnswersHaveNoCredentials(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		`"result":{"content":[{"type":"text","text":"401 for token-of-the-bot"}],"isError":true}`, `"result":{"content":[{"type":"text","text":"Bearer token-of-the-bot"}]}`,
		`"error":{"code":-32000,"message":"bad\u0000 token-of-the-bot"}`,
	} {
		p := running(t, scripted(t, map[string]string{
			"initialize": initialized, "tools/list": `"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`, "tools/call": answer,
		}))
		got, err := call(t, p, "odd__a", `{}`)
		if err != nil {
			got += err.Error()
		}
		if !strings.Contains(got, masked) || strings.Contains(got, "token-of-the-bot") || strings.Contains(got, "\x00") {
			t.Errorf("%s gave %q", answer, got)
		}
	}
}

// A server whose first word never comes is ended with the pool, at once.
func TestSilentProgramEndsWithThePool(t *testing.T) {
	t.Parallel()
	s := Server{Name: "mute", Command: "sh", Args: []string{"-c", "trap '' TERM; while :; do sleep 1; done"}, Allow: []string{"*"}, Groups: []string{"*"}, Timeout: time.Second}
	began := time.Now()
	if _, err := Check(shortly(t), s, Config{Now: time.Now}); err == nil {
		t.Error("a silent program passes")
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %s", took)
	}
}

func shortly(t *testing.T) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(stop)
	return ctx
}

// Tools that are left out, or have another name, are named with the reason, and so are patterns that match no tool.
func TestOddToolsAreNamed(t *testing.T) {
	t.Parallel()
	s := scripted(t, map[string]string{
		"initialize": initialized,
		"tools/list": `"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"a","inputSchema":{"type":"object"}},{"name":"b.c","inputSchema":{"type":"object"}},{"name":"","inputSchema":{"type":"object"}}]}`,
	})
	s.Allow, s.Confirm = []string{"*", "a", "raed_*"}, []string{"b.*", "wirte"}
	p := running(t, s)
	got := p.Odd("cid", sessions.Group)
	for _, want := range []string{`odd "a": left out, it is listed twice`, `odd "b.c": offered as odd__b_c_`, `odd "": left out, it has no name`, `odd allow "raed_*": matches no`, `odd confirm "wirte": matches no`} {
		if !slices.ContainsFunc(got, func(one string) bool { return strings.HasPrefix(one, want) }) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if n := p.Status()[0].Tools; len(got) != 5 || n != 2 {
		t.Errorf("%d tools, %q", n, got)
	}
}

// A list of 10,000 tools is offered up to the bound, and as many others are named.
func TestEndlessListIsBounded(t *testing.T) {
	t.Parallel()
	tools := make([]map[string]any, 10_000)
	for i := range tools {
		tools[i] = map[string]any{"name": fmt.Sprintf("t%05d", i), "inputSchema": map[string]any{"type": "object"}}
	}
	raw, err := json.Marshal(map[string]any{"tools": tools})
	if err != nil {
		t.Fatal(err)
	}
	p := running(t, scripted(t, map[string]string{"initialize": initialized, "tools/list": `"result":` + string(raw)}))
	if status := p.Status()[0]; !status.Connected || status.Tools != maxTools || len(status.Odd) != maxTools {
		t.Errorf("connected %v, %d tools, %d odd ones: %s", status.Connected, status.Tools, len(status.Odd), status.Fault)
	}
}

// Names of any bytes become names that providers accept, and are shown to people on one line.
func TestNamesOfOddBytes(t *testing.T) {
	t.Parallel()
	p := running(t, scripted(t, map[string]string{
		"initialize": initialized,
		"tools/list": `"result":{"tools":[{"name":"a\u0000b","inputSchema":{"type":"object"}},{"name":"../../x","inputSchema":{"type":"object"}},{"name":"查询","inputSchema":{"type":"object"}},` +
			`{"name":"a\n# b\u202e","inputSchema":{"type":"object"}},{"name":"` + strings.Repeat("long", 1000) + `","inputSchema":{"type":"object"}},{"name":"\ud800","inputSchema":{"type":"object"}}]}`,
		"tools/call": `"result":{"content":[{"type":"text","text":"ran"}]}`,
	}))
	tools, names := p.Tools("cid", sessions.Group), map[string]bool{}
	for _, tool := range tools {
		name := tool.Spec().Name
		if names[name] || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r > '~' || r < '-' }) {
			t.Errorf("a tool is offered as %q", name)
		}
		names[name] = true
		if got, err := call(t, p, name, `{}`); err != nil || got != "ran" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if len(tools) != 6 {
		t.Errorf("%d tools are offered: %v", len(tools), namesOf(tools))
	}
	for _, one := range p.Odd("cid", sessions.Group) {
		if len(one) > 400 || strings.ContainsFunc(one, unicode.IsControl) || strings.Contains(one, "\u202e") {
			t.Errorf("people read %q", one)
		}
	}
}

// Results of any form are a text or a failure of their call. The next call has its own.
func TestResultsOfOddForms(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"no base64":        `{"content":[{"type":"image","mimeType":"image/png","data":"!!!"}]}`,
		"an empty picture": `{"content":[{"type":"image","mimeType":"","data":""}]}`,
		"no resource":      `{"content":[{"type":"resource"}]}`,
		"a resource":       `{"content":[{"type":"resource","resource":{"uri":"x://%zz","blob":"AAAA"}}]}`,
		"an unknown part":  `{"content":[{"type":"hologram","data":1}]}`,
		"no parts":         `{"content":null}`,
		"a list":           `[]`,
		"a word":           `"done"`,
		"nothing":          `null`,
		"a link to a file": `{"content":[{"type":"resource_link","uri":"file:///etc/passwd","name":"x"}]}`,
	}
	for name, answer := range answers {
		said := map[string]string{
			"initialize": initialized, "tools/list": `"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`, "tools/call": `"result":` + answer,
		}
		p := running(t, scripted(t, said))
		got, err := call(t, p, "odd__a", `{}`)
		if err == nil && got == "" || len(got) > 1000 {
			t.Errorf("%s: the model reads %q", name, got)
		}
		if got, again := call(t, p, "odd__a", `{}`); (err == nil) != (again == nil) || again != nil && strings.Contains(again.Error(), errAway.Error()) {
			t.Errorf("%s: the next call gave %q, %v", name, got, again)
		}
	}
}

// An answer that comes after the time of its call is no answer of the next one, and the connection stays.
func TestLateAnswerIsDropped(t *testing.T) {
	t.Parallel()
	first := make(chan struct{})
	var calls atomic.Int32
	s, _ := overHTTP(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(raw))
			if bytes.Contains(raw, []byte(`"tools/call"`)) && calls.Add(1) == 1 {
				<-first
			}
			h.ServeHTTP(w, r)
		})
	})
	s.Timeout = time.Second
	p := running(t, s)
	since := p.Status()[0].Since
	if _, err := call(t, p, "odd__echo", `{"text":"first"}`); err == nil || !strings.Contains(err.Error(), "no answer within 1s") {
		t.Errorf("the late call: %v", err)
	}
	close(first)
	for _, text := range []string{"second", "third"} {
		if got, err := call(t, p, "odd__echo", `{"text":"`+text+`"}`); err != nil || got != "echo: "+text {
			t.Errorf("after it: %q, %v", got, err)
		}
	}
	if status := p.Status()[0]; !status.Connected || !status.Since.Equal(since) {
		t.Error("the connection was made again")
	}
}

// A server that announces another list all the time is asked for it at growing pauses.
func TestFloodOfChangesIsSlowed(t *testing.T) {
	t.Parallel()
	var lists atomic.Int32
	server := mcptest.New()
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	s, _ := overHTTP(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(raw))
			if bytes.Contains(raw, []byte(`"tools/list"`)) {
				lists.Add(1)
			}
			h.ServeHTTP(w, r)
		})
	})
	p := running(t, s)
	announce := time.NewTicker(20 * time.Millisecond)
	defer announce.Stop()
	began := time.Now()
	for i := 0; time.Since(began) < 3*time.Second; i++ {
		<-announce.C
		server.RemoveTools(fmt.Sprint("new", i-1))
		server.AddTool(&mcp.Tool{Name: fmt.Sprint("new", i), InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, nil
		})
	}
	if n := lists.Load(); n < 2 || n > 5 {
		t.Errorf("the list was read %d times in three seconds", n)
	}
	if got, err := call(t, p, "odd__echo", `{"text":"a"}`); err != nil || got != "echo: a" {
		t.Errorf("meanwhile: %q, %v", got, err)
	}
}
