package sessions_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ebb/sessions"
)

// Law: a fingerprint changes with each thing that a summary is made from, in any field, and with nothing else.
func TestHashOfEventsCoversWhatIsSummarized(t *testing.T) {
	t.Parallel()
	text := rapid.SampledFrom([]string{"", "a", "b", "ab", "a\x00", "0"})
	events := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sessions.Event {
		e := sessions.Event{
			Seq: rapid.Int64Range(1, 12).Draw(t, "seq"), Role: sessions.Role(text.Draw(t, "role")), Content: text.Draw(t, "content"),
			ToolCallID: text.Draw(t, "call"), ToolName: text.Draw(t, "tool"),
		}
		for range rapid.IntRange(0, 2).Draw(t, "calls") {
			e.ToolCalls = append(e.ToolCalls, sessions.ToolCall{ID: text.Draw(t, "id"), Name: text.Draw(t, "name"), Arguments: text.Draw(t, "arguments")})
		}
		return e
	}), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		a, b := events.Draw(t, "a"), events.Draw(t, "b")
		if same, equal := fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b), sessions.HashEvents(a) == sessions.HashEvents(b); same != equal {
			t.Fatalf("%+v\nand\n%+v\nhave one fingerprint: %v", a, b, equal)
		}
		for i := range a { // tokens, nicks and times do not make a summary stale
			before := sessions.HashEvents(a)
			a[i].Tokens, a[i].SenderNick, a[i].CreatedAt, a[i].Archived = 9, "x", time.Unix(9, 0), true
			if sessions.HashEvents(a) != before {
				t.Fatal("the fingerprint depends on a field that no summary shows")
			}
		}
	})
}

// Law: the audit of a compaction keeps its fields, and has the number of deleted results with at most a hundred paths.
func TestAuditOfDeletedResults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 150).Draw(t, "n")
		var deleted []string
		for i := range n {
			deleted = append(deleted, sessions.BlobOf(fmt.Sprint(i)))
		}
		var got struct {
			Kept    string   `json:"kept"`
			Deleted int      `json:"offloads_deleted"`
			Files   []string `json:"deleted_files"`
		}
		if err := json.Unmarshal([]byte(sessions.AuditOffloads(`{"kept":"x"}`, deleted)), &got); err != nil {
			t.Fatal(err)
		}
		if got.Kept != "x" || got.Deleted != n || len(got.Files) != min(n, 100) {
			t.Fatalf("of %d: %+v", n, got)
		}
		for _, path := range got.Files {
			if _, ok := sessions.BlobAt(path); !ok {
				t.Fatalf("%q is no path", path)
			}
		}
	})
	if got := sessions.AuditOffloads("", nil); got != `{"deleted_files":[],"offloads_deleted":0}` {
		t.Errorf("of an empty audit: %s", got)
	}
	for _, foreign := range []string{"[1]", "null", "{", `"x"`} {
		if got := sessions.AuditOffloads(foreign, []string{"b"}); got != foreign {
			t.Errorf("%s became %s", foreign, got)
		}
	}
}

// Law: the path of a body leads to it, from no other text.
func TestPathsLeadToBodies(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		blob := sessions.BlobOf(a)
		if (blob == sessions.BlobOf(b)) != (a == b) {
			t.Fatalf("%q and %q have one address: %v", a, b, a != b)
		}
		if got, ok := sessions.BlobAt(sessions.BlobPath(blob)); !ok || got != blob {
			t.Fatalf("the path of %s leads to %q", blob, got)
		}
		var arguments struct {
			Path string `json:"path"`
		}
		name, call, _ := strings.Cut(sessions.BlobCall(blob), " ")
		if err := json.Unmarshal([]byte(call), &arguments); err != nil || name != sessions.GetTool || arguments.Path != sessions.BlobPath(blob) {
			t.Fatalf("the call is %s (%v)", sessions.BlobCall(blob), err)
		}
		if !strings.Contains(sessions.Unavailable(blob), sessions.BlobPath(blob)) {
			t.Fatal("the note of a missing body has no path")
		}
	})
	blob := sessions.BlobOf("x")
	for _, path := range []string{
		"", ".txt", "offloaded/.txt", blob, blob + ".txt", "offloaded/" + blob, "offloaded/" + blob + ".txt.txt", "x/offloaded/" + blob + ".txt",
		"offloaded/" + blob[1:] + ".txt", "offloaded/" + strings.Repeat("z", len(blob)) + ".txt", "offloaded/../" + blob[3:] + ".txt",
	} {
		if got, ok := sessions.BlobAt(path); ok {
			t.Errorf("%q leads to %q", path, got)
		}
	}
}
