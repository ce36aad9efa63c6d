package openaitest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a TB that keeps a test's messages.
type recorder struct {
	mu       sync.Mutex
	errors   []string
	cleanups []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) end() string {
	for _, f := range r.cleanups {
		f()
	}
	return strings.Join(r.errors, "\n")
}

// post sends a chat request on a connection of its own and returns the status and the body as far as it came.
func post(t *testing.T, url, body string) (int, string, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

const (
	hello  = `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"你好"}],"tools":[{"function":{"name":"memory_search","parameters":{"type":"object"}}}]}`
	stream = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"s"},{"role":"user","content":"你好"}]}`
)

func TestAScriptIsFollowed(t *testing.T) {
	t.Parallel()
	s := NewServer(t, Text("一"), When(Contains("别的"), Text("别的")), WhenFunc(IsKind(Chat), func(r Request) Reply { return Text(fmt.Sprint("第", r.N)) }).Times(2), Func(Persona))
	var got []string
	for range 4 {
		_, body, err := post(t, s.URL, hello)
		if err != nil {
			t.Fatal(err)
		}
		var a struct {
			Choices []struct{ Message struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			t.Fatal(err)
		}
		got = append(got, a.Choices[0].Message.Content)
	}
	if want := "一,第2,第3,你好！我在，有事请说。"; strings.Join(got, ",") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ","), want)
	}
}

func TestFailuresAreReportedToTheTest(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	s := NewServer(rec, Text("一"), When(Contains("never"), Text("x")).Times(2))
	for range 2 {
		if _, _, err := post(t, s.URL, hello); err != nil {
			t.Fatal(err)
		}
	}
	reported := rec.end()
	for _, want := range []string{"no step answers request 2 (chat): 你好", "step 2 was used 0 times of 2"} {
		if !strings.Contains(reported, want) {
			t.Errorf("%q is not in %q", want, reported)
		}
	}
	if strings.Contains(reported, "step 1") {
		t.Errorf("a used step is complained of: %q", reported)
	}
}

func TestAStream(t *testing.T) {
	t.Parallel()
	s := NewServer(t, Text("你好，世界").Pieces(2))
	_, body, err := post(t, s.URL, stream)
	if err != nil {
		t.Fatal(err)
	}
	var text, finish string
	var usage, done int
	for sc := bufio.NewScanner(strings.NewReader(body)); sc.Scan(); {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			done++
			continue
		}
		var c struct {
			Choices []struct {
				Delta        struct{ Content string }
				FinishReason string `json:"finish_reason"`
			}
			Usage struct {
				Prompt int `json:"prompt_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for _, ch := range c.Choices {
			text, finish = text+ch.Delta.Content, finish+ch.FinishReason
		}
		usage += c.Usage.Prompt
	}
	if text != "你好，世界" || finish != "stop" || usage == 0 || done != 1 {
		t.Errorf("text %q, finish %q, usage %d, %d ends", text, finish, usage, done)
	}
}

// writes is a ResponseWriter that keeps each write apart.
type writes struct {
	header  http.Header
	each    []string
	flushes int
}

func (w *writes) Header() http.Header { return w.header }

func (w *writes) WriteHeader(int) {}

func (w *writes) Flush() { w.flushes++ }

func (w *writes) Write(b []byte) (int, error) {
	w.each = append(w.each, string(b))
	return len(b), nil
}

func TestSplitsCutRunes(t *testing.T) {
	t.Parallel()
	w := &writes{header: http.Header{}}
	Text("中").Split(2).write(t.Context(), w, Request{Stream: true})
	cut := false
	for _, b := range w.each {
		cut = cut || !utf8.ValidString(b)
		if len(b) > 2 {
			t.Errorf("a write of %d bytes", len(b))
		}
	}
	if all := strings.Join(w.each, ""); !cut || !strings.Contains(all, "中") {
		t.Errorf("no rune was cut apart in %q", all)
	}
}

// A lean server sends a stream without delays in one piece, and each other one chunk by chunk.
func TestLeanStreamsAreSentAtOnce(t *testing.T) {
	t.Parallel()
	for _, lean := range []bool{false, true} {
		s := New(Options{Lean: lean, Reply: func(Request) Reply { return Text("你好，世界").Pieces(1) }})
		defer s.Close()
		w := &writes{header: http.Header{}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(stream))
		if err != nil {
			t.Fatal(err)
		}
		s.chat(w, req)
		if all := strings.Join(w.each, ""); !strings.Contains(all, "世") || !strings.HasSuffix(all, "[DONE]\n\n") || (w.flushes == 0) != lean {
			t.Errorf("lean %t: %d flushes of %q", lean, w.flushes, all)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s := NewServer(t, Error(429, "7", ""), Raw(502, "text/html", "<html>"), Text("长长的一句话").BreakAfter(0), Text("长长的一句话").Pieces(1).EndAfter(2))
	if status, body, _ := post(t, s.URL, hello); status != 429 || !strings.Contains(body, `"error"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body, _ := post(t, s.URL, hello); status != 502 || body != "<html>" {
		t.Errorf("%d %s", status, body)
	}
	if _, _, err := post(t, s.URL, hello); err == nil {
		t.Error("the connection did not break")
	}
	if _, body, err := post(t, s.URL, stream); err != nil || strings.Count(body, "data:") != 2 || strings.Contains(body, "[DONE]") {
		t.Errorf("%v %s", err, body)
	}
}

func TestCloseEndsAHang(t *testing.T) {
	t.Parallel()
	s := New(Options{Steps: []Script{Hang()}})
	ended := make(chan error, 1)
	go func() {
		_, _, err := post(t, s.URL, hello)
		ended <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if r, err := s.Wait(ctx, IsKind(Chat)); err != nil || r.N != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	s.Close()
	if err := <-ended; err == nil {
		t.Error("a hanging request was answered")
	}
}

func TestKeysAndPathsAreChecked(t *testing.T) {
	t.Parallel()
	s := New(Options{APIKey: "right"})
	defer s.Close()
	if status, _, _ := post(t, s.URL, hello); status != 401 {
		t.Errorf("without the key: %d", status)
	}
	if status, _, _ := post(t, s.URL+"/nowhere", hello); status != 404 {
		t.Errorf("at another path: %d", status)
	}
}

func TestIllegalRequests(t *testing.T) {
	t.Parallel()
	msgs := func(m string) string { return `{"messages":[` + m + `]}` }
	const sys, user = `{"role":"system","content":"s"}`, `{"role":"user","content":"u"}`
	call := func(id, name, args string) string {
		return fmt.Sprintf(`{"role":"assistant","tool_calls":[{"id":%q,"function":{"name":%q,"arguments":%q}}]}`, id, name, args)
	}
	result := func(id string) string { return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"r"}`, id) }
	cases := map[string]struct{ body, want string }{
		"legal":                 {msgs(sys + "," + user + "," + call("1", "f", "{}") + "," + result("1")), ""},
		"no system":             {msgs(user), "one system message stands first"},
		"two systems":           {msgs(sys + "," + user + "," + sys), "one system message stands first"},
		"no user":               {msgs(sys), "no user message"},
		"empty content":         {msgs(sys + `,{"role":"user","content":" "}`), "it is empty"},
		"empty assistant":       {msgs(sys + "," + user + `,{"role":"assistant"},` + user), "it is empty"},
		"a Chinese name":        {msgs(sys + `,{"role":"user","name":"张三","content":"u"}`), `name "张三"`},
		"call without result":   {msgs(sys + "," + user + "," + call("1", "f", "{}") + "," + user), "stands between calls and their results"},
		"call at the end":       {msgs(sys + "," + user + "," + call("1", "f", "{}")), "have no results"},
		"result without call":   {msgs(sys + "," + user + "," + result("1")), "answers no call"},
		"result of another":     {msgs(sys + "," + user + "," + call("1", "f", "{}") + "," + result("2")), "answers no call"},
		"call without id":       {msgs(sys + "," + user + "," + call("", "f", "{}") + "," + result("")), "without id or name"},
		"call without name":     {msgs(sys + "," + user + "," + call("1", "", "{}") + "," + result("1")), "without id or name"},
		"id used twice":         {msgs(sys + "," + user + "," + call("1", "f", "{}") + "," + result("1") + "," + call("1", "f", "{}") + "," + result("1")), "used twice"},
		"arguments not JSON":    {msgs(sys + "," + user + "," + call("1", "f", "{") + "," + result("1")), "not a JSON object"},
		"assistant last":        {msgs(sys + "," + user + `,{"role":"assistant","content":"a"}`), "the last message is the assistant's"},
		"unknown role":          {msgs(sys + "," + user + `,{"role":"robot","content":"a"}`), "no such role"},
		"choice without tools":  {`{"tool_choice":"required","messages":[` + sys + "," + user + `]}`, "tool_choice without tools"},
		"choice not offered":    {`{"tool_choice":{"function":{"name":"g"}},"tools":[{"function":{"name":"f","parameters":{"type":"object"}}}],"messages":[` + sys + "," + user + `]}`, "not on offer"},
		"schema not an object":  {`{"tools":[{"function":{"name":"f","parameters":{}}}],"messages":[` + sys + "," + user + `]}`, "not an object's"},
		"a tool offered twice":  {`{"tools":[{"function":{"name":"f","parameters":{"type":"object"}}},{"function":{"name":"f","parameters":{"type":"object"}}}],"messages":[` + sys + "," + user + `]}`, "used twice"},
		"a tool without a name": {`{"tools":[{"function":{"name":"","parameters":{"type":"object"}}}],"messages":[` + sys + "," + user + `]}`, "not allowed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New(Options{Strict: true})
			defer s.Close()
			status, _, err := post(t, s.URL, tc.body)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(s.Illegal(), "; ")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if (status == 400) != (tc.want != "") {
				t.Errorf("status %d", status)
			}
		})
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	tool := func(name string) Tool { return Tool{Name: name} }
	cases := map[string]struct {
		r    Request
		want Kind
	}{
		"tools":             {Request{Tools: []Tool{tool("memory_save"), tool("memory_search")}}, Chat},
		"a named tool":      {Request{Tools: []Tool{tool("memory_save"), tool("memory_search")}, ToolChoice: "memory_save"}, Flush},
		"required":          {Request{Tools: []Tool{tool("memory_save")}, ToolChoice: "required"}, Flush},
		"memory_save alone": {Request{Tools: []Tool{tool("memory_save")}, ToolChoice: "auto"}, Flush},
		"JSON":              {Request{JSON: true}, Flush},
		"written out":       {Request{Messages: []Message{{Content: "the arguments of memory_save"}}}, Flush},
		"no tools":          {Request{}, Summary},
	}
	for name, tc := range cases {
		if got := kindOf(tc.r); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
