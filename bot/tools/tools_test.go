package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"ebb/bot/chat"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
)

// shelf is a memory that keeps what it was asked.
type shelf struct {
	drafts  []memory.Draft
	receipt memory.Receipt
	hits    []memory.Hit
	events  []sessions.Event
	key     sessions.Key
	query   string
	limit   int
	seek    memory.LogQuery
	err     error
}

func (s *shelf) Save(_ context.Context, l sessions.Lease, d []memory.Draft) (memory.Receipt, error) {
	s.key, s.drafts = l.Key, d
	return s.receipt, s.err
}

func (s *shelf) Search(_ context.Context, r memory.Reader, q memory.Query) ([]memory.Hit, error) {
	s.key, s.query, s.limit = r.Key, q.Text, q.Limit
	return s.hits, s.err
}

func (s *shelf) History(_ context.Context, key sessions.Key, q memory.LogQuery) (memory.LogMatches, error) {
	s.key, s.seek, s.limit = key, q, q.Limit
	var out memory.LogMatches
	for _, e := range s.events {
		out.Events = append(out.Events, memory.LogMatch{Event: e})
	}
	return out, s.err
}

func (s *shelf) Range(_ context.Context, key sessions.Key, from, through int64, limit int) ([]sessions.Event, error) {
	s.key = key
	var out []sessions.Event
	for _, e := range slices.Backward(s.events) {
		if e.Seq > from && e.Seq <= through && len(out) < limit {
			out = append(out, e)
		}
	}
	return out, s.err
}

func (s *shelf) Pinned(_ context.Context, r memory.Reader, _ int) ([]memory.Memory, error) {
	s.key = r.Key
	return []memory.Memory{{ID: 1, Scope: memory.ScopeGroup, Content: "the plan"}}, s.err
}

func (s *shelf) Values(_ context.Context, r memory.Reader, id int64) ([]memory.Memory, error) {
	if s.key = r.Key; id != 7 {
		return nil, s.err
	}
	return []memory.Memory{
		{ID: 6, Scope: memory.ScopeGroup, Content: "the old plan", SupersededBy: 7}, {ID: 7, Scope: memory.ScopeGroup, Content: "the plan", SaidBy: "u1"},
	}, s.err
}

// errStorage holds text that only an operator may read.
var errStorage = errors.New("postgres://ebb:hunter2@db.internal/ebb: connection refused")

func (s *shelf) DigestsOf(context.Context, memory.Reader, time.Time, time.Time) ([]memory.Memory, error) {
	return nil, s.err
}

func parts(s *shelf) Parts {
	return Parts{Facts: s, Search: s, Digests: s, Blobs: shelved{}, Files: noFiles{}, Kept: noKept{}}
}

// noFiles is a session without attachments, whose files no test reads.
type noFiles struct{ Files }

func (noFiles) Attachments(context.Context, sessions.Key, []int64) ([]sessions.Media, error) {
	return nil, nil
}

// noKept is a session that keeps no files.
type noKept struct{}

func (noKept) Files(context.Context, sessions.Key) ([]sessions.KeptFile, error) { return nil, nil }

// shelved has one result that was moved out of the view of the session r/c.
type shelved struct{}

var bigResult = strings.Repeat("0123456789", 700) + "\nthe end"

func (shelved) Blob(_ context.Context, key sessions.Key, blob string) (string, error) {
	if key != "r/c" || blob != sessions.BlobOf(bigResult) {
		return "", fmt.Errorf("blob %s: %w", blob, sessions.ErrNotFound)
	}
	return bigResult, nil
}

// A stored result is read by the path that the view shows, page by page, and only by the session that it belongs to.
func TestStoredResult(t *testing.T) {
	t.Parallel()
	path := sessions.BlobPath(sessions.BlobOf(bigResult))
	for arguments, want := range map[string]string{
		`{"path":"` + path + `"}`:                                          `page 1 of 2; next: memory_get {"path":"` + path + `","page":2}` + "\n0123456789",
		`{"path":"` + path + `","page":2}`:                                 "the end",
		`{"path":"` + sessions.BlobPath(sessions.BlobOf("another")) + `"}`: "[Content unavailable: ",
	} {
		got, err := run(t, &shelf{}, "memory_get", arguments)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v, %q, want %q in it", arguments, err, got, want)
		}
	}
	current := chat.ToolInput{
		Arguments: `{"path":"` + sessions.BlobPath(sessions.BlobOf("of this turn")) + `"}`, Reader: memory.Reader{Key: "r/c"},
		Current: []sessions.Event{{Seq: 9, Role: sessions.RoleUser, Content: "x"}, {Seq: 10, Role: sessions.RoleTool, Content: "of this turn"}},
	}
	for _, tool := range All(parts(&shelf{}), time.UTC) {
		if tool.Spec().Name == sessions.GetTool {
			if got, err := tool.Call(t.Context(), current); err != nil || !strings.Contains(got, "of this turn") {
				t.Errorf("a result of the running turn: %q, %v", got, err)
			}
		}
	}
	// P72
	for _, path := range []string{"/etc/passwd", "offloaded/../../etc/passwd", "offloaded/" + strings.Repeat("z", 32) + ".txt"} {
		if got, err := run(t, &shelf{}, "memory_get", `{"path":"`+path+`"}`); err == nil {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// run calls a built-in tool as the model would.
func run(t *testing.T, s *shelf, name, arguments string) (string, error) {
	t.Helper()
	for _, tool := range All(parts(s), time.UTC) {
		if tool.Spec().Name == name {
			return tool.Call(t.Context(), chat.ToolInput{
				Arguments: arguments, Lease: sessions.Lease{Key: "r/c"}, Reader: memory.Reader{Key: "r/c"},
				Chat: draft.Chat{Key: "r/c", Robot: "r", Conversation: "c", Roster: map[string]sessions.UserID{"Alice": "u1"}},
			})
		}
	}
	t.Fatalf("no tool %s", name)
	return "", nil
}

// The model's answers for valid and invalid arguments: an error names the correction.
func TestCalls(t *testing.T) {
	t.Parallel()
	full := func() *shelf {
		return &shelf{
			receipt: memory.Receipt{Saved: []int64{7}, Duplicate: []int64{3}},
			hits: []memory.Hit{
				{Path: "memory/group/2026-11-20.md#7", Content: "the\nplan", Who: "Alice", At: time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC), Why: []string{"plan", "2026-11-20"}},
				{Path: "session_events/4", Content: "the old plan", Who: "Bob", At: time.Date(2026, 11, 1, 9, 30, 0, 0, time.UTC), Outdated: true},
			},
			events: []sessions.Event{{Seq: 9, Role: sessions.RoleUser, SenderNick: "Bob", Content: "later"}, {Seq: 8, Role: sessions.RoleUser, SenderNick: "Bob", Content: "earlier"}},
		}
	}
	for _, c := range []struct {
		tool, arguments string
		want            string // words of the result, in order, separated by |
		fails           bool
	}{
		{"memory_save", `{"facts":[{"content":"the release is on Friday","kind":"fact"},{"content":"Alice writes the notes","kind":"task"}]}`, "saved 1, 1 known already", false},
		{"memory_save", `{"facts":[{"content":"the release is on Friday"},{"content":"password: x1"}]}`, "saved 1|not saved: facts[1].content", false},
		{"memory_save", `{"facts":[],"nothing_to_save":true}`, "nothing to save", false},
		{"memory_save", `{"facts":[]}`, "no usable fact", true},
		{"memory_save", `{"facts":"x"}`, "arguments of memory_save", true},
		{"memory_save", ``, "arguments of memory_save", true},
		{"memory_search", `{"query":"plan"}`, "memory/group/2026-11-20.md#7|Alice|the plan", false},
		{"memory_search", `{"query":"old plan"}`, "memory/group/2026-11-20.md#7 (2026-11-20 09:30 Alice; matched: plan, 2026-11-20): the plan|session_events/4 (2026-11-01 09:30 Bob; OUTDATED, corrected later 已被更正): the old plan", false},
		{"memory_search", `{"query":"  "}`, "query is empty", true},
		{"memory_search", `{}`, "query is empty", true},
		{"memory_search", `{"query":7}`, "arguments of memory_search", true},
		{"memory_search", `not json`, "arguments of memory_search", true},
		{"memory_get", `{"path":"MEMORY.md"}`, "the plan", false},
		{"memory_get", `{"path":"../../etc/passwd"}`, "no such path|memory_search", true},
		{"memory_get", `{"path":"/MEMORY.md"}`, "no such path|memory_search", true},
		{"memory_get", `{"path":"memory/user/../group/2026-11-20.md"}`, "no such path|memory_search", true},
		{"memory_get", `{"path":"memory/everybody/2026-11-20.md"}`, "no such path|user|group|team|session", true},
		{"memory_get", `{"path":"memory/group/2026-11-20.md#8"}`, "no memory #8|memory_search", true},
		{"memory_get", `{"path":"memory/group/2026-11-20.md#7"}`, "#6|OUTDATED|see #7|the old plan|#7|said by u1|the plan", false},
		{"query_history", `{}`, "earlier|later", false},
		{"query_history", `{"before":"x"}`, "arguments of query_history", true},
		{"query_history", `{"range":"8-9"}`, "#8|earlier|#9|later", false},
		{"query_history", `{"range":9}`, "#9|later", false},
		{"query_history", `{"range":"9","before":9}`, "nothing before 9", true},
		{"query_history", `{"range":"20-10"}`, "10-20", true},
		{"query_history", `{"range":"70"}`, "no events with the numbers 70", false},
		{"query_history", `{"since":"yesterday"}`, "YYYY-MM-DD", true},
		{"query_history", `{"limit":2}`, `older ones: query_history {"before":8,"limit":2}|earlier|later`, false},
		{"memory_get", `{"path":"session_events/8-9"}`, "earlier|later", false},
	} {
		got, err := run(t, full(), c.tool, c.arguments)
		if (err != nil) != c.fails {
			t.Errorf("%s %s: error %v, want one: %v", c.tool, c.arguments, err, c.fails)
		}
		if err != nil {
			got = err.Error()
		}
		at := 0
		for w := range strings.SplitSeq(c.want, "|") {
			i := strings.Index(got[at:], w)
			if i < 0 {
				t.Errorf("%s %s: %q lacks %q", c.tool, c.arguments, got, w)
				break
			}
			at += i + len(w)
		}
	}
}

// Facts go where the chat they were said in allows, and to the session of the turn.
func TestSaveRoutes(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	if _, err := run(t, s, "memory_save", `{"facts":[{"content":"Alice likes green tea","kind":"preference","subject":"Alice"}]}`); err != nil {
		t.Fatal(err)
	}
	if s.key != "r/c" || len(s.drafts) != 1 || s.drafts[0].Scope != memory.ScopeGroup || s.drafts[0].ScopeID != "r/c" || s.drafts[0].SubjectID != "u1" {
		t.Errorf("saved %+v in %s", s.drafts, s.key)
	}
	s = &shelf{}
	got, err := run(t, s, "memory_save", `{"facts":[{"content":"Alice likes green tea","kind":"preference","subject":"Alice","scope":"team","scope_id":"all"}]}`)
	if err == nil || len(s.drafts) > 0 || !strings.Contains(err.Error(), "scope") {
		t.Errorf("a scope that the model chose: %q, %v, saved %+v", got, err, s.drafts)
	}
}

// Limits out of range become the default, and every read is of the turn's own session.
func TestLimits(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]int{`{"query":"x"}`: 8, `{"query":"x","limit":3}`: 3, `{"query":"x","limit":9999}`: 8, `{"query":"x","limit":-1}`: 8} {
		s := &shelf{}
		if got, err := run(t, s, "memory_search", arguments); err != nil || s.limit != want || s.key != "r/c" || !strings.HasPrefix(got, "没有找到 / nothing found for \"x\"") {
			t.Errorf("%s: limit %d of %s, %q, %v", arguments, s.limit, s.key, got, err)
		}
	}
	for arguments, want := range map[string]int{`{}`: 20, `{"limit":50}`: 50, `{"limit":51}`: 20, `{"limit":0}`: 20} {
		s := &shelf{}
		if _, err := run(t, s, "query_history", arguments); err != nil || s.limit != want || s.key != "r/c" {
			t.Errorf("%s: limit %d of %s, %v", arguments, s.limit, s.key, err)
		}
	}
	s := &shelf{}
	if _, err := run(t, s, "query_history", `{"query":"release","before":17,"since":"2026-11-20","until":"2026-11-21"}`); err != nil || s.seek.Words != "release" ||
		s.seek.Through != 16 || s.seek.Since.Day() != 20 || s.seek.Until.Day() != 22 {
		t.Errorf("asked %+v, %v", s.seek, err)
	}
}

// A storage that is away is said to the model without the storage's own words.
func TestStorageErrorsStayFromTheModel(t *testing.T) {
	t.Parallel()
	for name, arguments := range map[string]string{
		"memory_save": `{"facts":[{"content":"a"}]}`, "memory_search": `{"query":"x"}`, "memory_get": `{"path":"MEMORY.md"}`, "query_history": `{}`,
	} {
		_, err := run(t, &shelf{err: errStorage}, name, arguments)
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "db.internal") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Only what has no effect may be repeated after a crash; schemas are what providers take.
func TestSpecs(t *testing.T) {
	t.Parallel()
	for _, tool := range All(parts(&shelf{}), time.UTC) {
		s := tool.Spec()
		r, ok := tool.(chat.Repeatable)
		if repeatable := ok && r.Repeatable(); repeatable == (s.Name == draft.SaveTool) {
			t.Errorf("%s may be repeated: %v", s.Name, repeatable)
		}
		properties, ok := s.Schema["properties"].(map[string]any)
		if s.Schema["type"] != "object" || !ok || len(properties) == 0 || s.Description == "" {
			t.Errorf("%s: %+v", s.Name, s)
		}
		required, _ := s.Schema["required"].([]string)
		for _, name := range required {
			if properties[name] == nil {
				t.Errorf("%s requires %q, which it does not describe", s.Name, name)
			}
		}
	}
}

// The prompt and the built-in tools leave the window to the conversation, and each request pays for them: at most 3 KB in either language.
func TestPromptAndToolsAreSmall(t *testing.T) {
	t.Parallel()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	tokens, size := 0, 0
	for _, tool := range append(All(parts(&shelf{}), time.UTC), Remind(nil)) {
		s := tool.Spec()
		b, err := json.Marshal(map[string]any{"type": "function", "function": map[string]any{"name": s.Name, "description": s.Description, "parameters": s.Schema}})
		if err != nil {
			t.Fatal(err)
		}
		tokens, size = tokens+counter.Count(string(b)), size+len(b)
	}
	source, err := os.ReadFile("../view/prompts/system.md")
	if err != nil {
		t.Fatal(err)
	}
	prompt := template.Must(template.New("").Parse(string(source)))
	for _, chinese := range []bool{true, false} {
		var b strings.Builder
		if err := prompt.Execute(&b, map[string]any{"Chinese": chinese, "Name": "Ebb", "Extra": ""}); err != nil {
			t.Fatal(err)
		}
		message, err := json.Marshal(map[string]string{"role": "system", "content": strings.TrimSpace(b.String())})
		if err != nil {
			t.Fatal(err)
		}
		tokens, size := tokens+counter.Count(b.String()), size+len(message)
		if tokens >= 800 || size > 3<<10 {
			t.Errorf("%d tokens, %d bytes of JSON (Chinese: %v); want less than 800, and at most 3 KB", tokens, size, chinese)
		}
	}
}
