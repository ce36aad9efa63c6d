package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

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

// Tools that are left out, or have another name, are named with the reason.
func TestOddToolsAreNamed(t *testing.T) {
	t.Parallel()
	p := running(t, scripted(t, map[string]string{
		"initialize": initialized,
		"tools/list": `"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"a","inputSchema":{"type":"object"}},{"name":"b.c","inputSchema":{"type":"object"}},{"name":"","inputSchema":{"type":"object"}}]}`,
	}))
	got := p.Odd("cid", sessions.Group)
	for _, want := range []string{`odd "a": left out, it is listed twice`, `odd "b.c": offered as odd__b_c_`, `odd "": left out, it has no name`} {
		if !slices.ContainsFunc(got, func(one string) bool { return strings.HasPrefix(one, want) }) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if n := p.Status()[0].Tools; len(got) != 3 || n != 2 {
		t.Errorf("%d tools, %q", n, got)
	}
}
