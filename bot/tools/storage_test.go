package tools_test

import (
	"strings"
	"testing"
	"time"

	"ebb/bot/chat"
	"ebb/bot/tools"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
)

// A model reads no word of the storage about a fault, in any tool: it would repeat it to a group.
func TestFaultsOfTheStorageStayInTheLog(t *testing.T) {
	t.Parallel()
	store, err := sql.Open(t.Context(), sql.Options{URL: sqltest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
	key := sessions.NewKey(roomRobot, roomChat, "")
	calls := map[string][]string{
		"memory_save":   {`{"facts":[{"content":"The mascot is a quokka named Bob","kind":"fact"}]}`},
		"memory_search": {`{"query":"mascot"}`},
		"memory_get": {
			`{"path":"MEMORY.md"}`, `{"path":"session_events/1"}`,
			`{"path":"` + sessions.BlobPath(sessions.BlobOf("never stored")) + `"}`,
		},
		"query_history": {`{"query":"mascot"}`, `{"range":"1-3"}`, `{"since":"2026-01-01"}`},
	}
	for _, tool := range tools.All(partsOf(store), time.UTC) {
		given := calls[tool.Spec().Name]
		if len(given) == 0 {
			t.Errorf("%s is not called", tool.Spec().Name)
		}
		for _, arguments := range given {
			out, err := tool.Call(t.Context(), chat.ToolInput{
				Arguments: arguments, Lease: sessions.Lease{Key: key, Owner: "a", Term: 1}, Room: 4000,
				Reader: memory.Reader{Key: key, Robot: roomRobot, Conversation: roomChat},
			})
			if err == nil {
				t.Logf("%s %s gives %q", tool.Spec().Name, arguments, out)
				continue
			}
			if text := err.Error(); strings.Contains(text, "pool") || strings.Contains(text, "closed") || strings.Contains(text, string(key)) {
				t.Errorf("%s %s says %q", tool.Spec().Name, arguments, text)
			}
		}
	}
}

func partsOf(s *sql.Store) tools.Parts {
	return tools.Parts{Facts: s.Facts, Search: s.Search, Digests: s.Digests, Blobs: s.Compactions, Files: s.Media, Kept: s.Files}
}
