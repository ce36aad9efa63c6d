// Package openaitest is a scripted model behind the OpenAI chat API, for tests and the demo. It answers real clients
// over HTTP, streamed or not, always alike to the same requests, and simulates faults on request.
//
// A script is a list of steps; the first one that matches a request and is not used up answers it:
//
//	s := openaitest.NewServer(t,
//		openaitest.Error(429, "1", ""),                        // the first request
//		openaitest.Calls("memory_search", `{"query":"x"}`),    // the second
//		openaitest.When(openaitest.IsKind(openaitest.Summary), openaitest.Text("## …")), // whenever it matches
//		openaitest.Func(openaitest.Persona),                   // everything else
//	)
//
// Requests returns what was asked, for goldens; Illegal what providers refuse.
package openaitest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"ebb/sessions/retry"
)

// Options configures a server; the zero value is the persona on a free port.
type Options struct {
	// Addr defaults to 127.0.0.1:0.
	Addr  string
	Steps []Script
	// Reply answers requests without a step. Default Persona.
	Reply func(Request) Reply
	// APIKey is the required key, if set; others get a 401.
	APIKey string
	// Latency delays each answer's first byte, TokenDelay each further chunk.
	Latency, TokenDelay time.Duration
	// Usage counts the tokens of a request and its answer. Default: one for every three bytes, rounded up.
	Usage func(Request, Reply) (prompt, completion int)
	// Strict answers requests with findings of Illegal with a 400.
	Strict bool
	// Found is called for each request with findings of Illegal, if set.
	Found func(Request, []string)
	// Synonyms are groups of words with the same meaning, for embeddings.
	Synonyms [][]string
	// EmbedFault replaces the answer to a request for vectors, if it returns one.
	EmbedFault func(EmbedRequest) (Reply, bool)
	// KeepRequests bounds Requests and Illegal to the newest. 0: all.
	KeepRequests int
	// Lean is for measurements of a client. It omits Raw and the schemas of tools: decoding them takes most of the
	// time. It sends a stream without delays at once: each write would wake both processes.
	Lean bool
	// Connected is called for each new connection.
	Connected func()
	// Behaviours are switched on at the start, see [Server.Behave].
	Behaviours []string
}

// TB is NewServer's part of testing.TB: the demo must not import testing.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
}

// Server is a running scripted model, safe for concurrent use.
type Server struct {
	// URL is the base URL, ending in /v1.
	URL string

	opts Options
	http *http.Server
	done chan struct{}
	stop sync.Once

	mu      sync.Mutex
	behaves []behaving
	script  []*step
	taken   int // requests so far
	seen    []Request
	embeds  []EmbedRequest
	changed chan struct{}
	now     int
	peak    int
}

// New starts a server, which the caller closes. It panics when it cannot listen, like httptest.
func New(o Options) *Server {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.Usage == nil {
		o.Usage = countBytes
	}
	ln, err := net.Listen("tcp", o.Addr)
	if err != nil {
		panic(fmt.Sprintf("openaitest: listening on %s: %v", o.Addr, err))
	}
	s := &Server{
		URL: "http://" + ln.Addr().String() + "/v1", opts: o,
		done: make(chan struct{}), changed: make(chan struct{}),
	}
	s.Add(o.Steps...)
	s.Behave(o.Behaviours...)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("POST /v1/embeddings", s.embeddings)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, "no such path: "+r.URL.Path)
	})
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, ConnState: func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew && o.Connected != nil {
			o.Connected()
		}
	}}
	go func() { _ = s.http.Serve(ln) }()
	return s
}

// NewServer starts a server until the end of a test, which unanswered requests and unused steps fail.
func NewServer(t TB, steps ...Script) *Server {
	t.Helper()
	s := New(Options{Steps: steps, Reply: func(r Request) Reply {
		t.Errorf("openaitest: no step answers request %d (%s): %s", r.N, r.Kind, r.Last().Content)
		return Error(http.StatusTeapot, "", "unscripted request")
	}})
	t.Cleanup(func() {
		s.Close()
		for _, left := range s.Unused() {
			t.Errorf("openaitest: %s", left)
		}
	})
	return s
}

// Close stops the server and its requests.
func (s *Server) Close() {
	s.stop.Do(func() {
		close(s.done)
		_ = s.http.Close()
	})
}

// Add appends steps to the script.
func (s *Server) Add(steps ...Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sc := range steps {
		st := sc.step()
		s.script = append(s.script, &st)
	}
}

// Unused describes the steps with fewer requests than their number.
func (s *Server) Unused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for i, st := range s.script {
		if st.times > st.used {
			out = append(out, fmt.Sprintf("step %d was used %d times of %d", i+1, st.used, st.times))
		}
	}
	return out
}

// Requests returns the requests, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.seen...)
}

// RequestsOf returns those of one kind.
func (s *Server) RequestsOf(k Kind) []Request {
	var out []Request
	for _, r := range s.Requests() {
		if r.Kind == k {
			out = append(out, r)
		}
	}
	return out
}

// Peak returns the maximum of concurrent requests.
func (s *Server) Peak() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peak
}

// Wait returns the first matching request, now or when it arrives.
func (s *Server) Wait(ctx context.Context, m Matcher) (Request, error) {
	for from := 0; ; {
		s.mu.Lock()
		seen, changed := s.seen, s.changed
		s.mu.Unlock()
		for ; from < len(seen); from++ {
			if m(seen[from]) {
				return seen[from], nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Request{}, fmt.Errorf("waiting for a request among %d: %w", len(seen), ctx.Err())
		}
	}
}

func (s *Server) chat(w http.ResponseWriter, hr *http.Request) {
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		return
	}
	req, err := parse(body, s.opts.Lean)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	req.Key = strings.TrimPrefix(hr.Header.Get("Authorization"), "Bearer ")
	reply, req := s.take(req)
	defer s.leave()
	if s.opts.APIKey != "" && req.Key != s.opts.APIKey {
		fail(w, http.StatusUnauthorized, "Incorrect API key provided: "+req.Key)
		return
	}
	if bad := s.findings(req); s.opts.Strict && len(bad) > 0 {
		fail(w, http.StatusBadRequest, strings.Join(bad, "; "))
		return
	}
	ctx, cancel := s.open(hr)
	defer cancel()
	if !retry.Sleep(ctx, s.opts.Latency+reply.after) {
		panic(http.ErrAbortHandler)
	}
	if reply.delay == 0 {
		reply.delay = s.opts.TokenDelay
	}
	prompt, completion := s.opts.Usage(req, reply)
	reply.count(prompt, completion)
	reply.atOnce = s.opts.Lean && reply.delay == 0
	reply.write(ctx, w, req)
}

// findings are those of Illegal, for the options that want them.
func (s *Server) findings(r Request) []string {
	if !s.opts.Strict && s.opts.Found == nil {
		return nil
	}
	bad := illegal(r, s.formed())
	if len(bad) > 0 && s.opts.Found != nil {
		s.opts.Found(r, bad)
	}
	return bad
}

// A step's function is called outside the lock.
func (s *Server) take(r Request) (Reply, Request) {
	s.mu.Lock()
	s.taken++
	r.N, r.At = s.taken, time.Now()
	s.seen = append(s.seen, r)
	if n := s.opts.KeepRequests; n > 0 && len(s.seen) > n {
		s.seen = slices.Clone(s.seen[len(s.seen)-n:])
	}
	close(s.changed)
	s.changed = make(chan struct{})
	s.now++
	s.peak = max(s.peak, s.now)
	answer, on := s.opts.Reply, s.behaves
	s.mu.Unlock()
	if no, refused := refusal(on, r); refused {
		return no, r
	}
	whole := r
	r = cutFor(on, r)
	s.mu.Lock()
	for _, st := range s.script {
		if (st.times == 0 || st.used < st.times) && st.match(r) {
			st.used++
			answer = st.reply
			break
		}
	}
	s.mu.Unlock()
	if answer == nil {
		answer = Persona
	}
	return changed(on, r, answer(r)), whole
}

// The context also ends with the server.
func (s *Server) open(hr *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(hr.Context())
	go func() { // ends with the request
		select {
		case <-s.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func (s *Server) leave() {
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
}

func fail(w http.ResponseWriter, status int, message string) {
	b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error"}})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

func countBytes(r Request, a Reply) (prompt, completion int) {
	n := 0
	for _, m := range r.Messages {
		n += len(m.Content) + 12
		for _, c := range m.ToolCalls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	for _, t := range r.Tools {
		schema, _ := json.Marshal(t.Schema)
		n += len(t.Name) + len(t.Description) + len(schema)
	}
	out := len(a.text) + len(a.reasoning)
	for _, c := range a.calls {
		out += len(c.Name) + len(c.Arguments)
	}
	return (n + 2) / 3, (out + 2) / 3
}
