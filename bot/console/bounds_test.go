package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"ebb/bot/console"
	"ebb/sessions"
)

// While statements of pages, of the API and of a search hang, messages are stored without a wait. The pages themselves end with a reason.
func TestHangingPagesKeepNoMessage(t *testing.T) {
	t.Parallel()
	w := open(t)
	base := w.serve(nil)
	admin := w.enter(base, adminToken)
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), "LOCK TABLE compaction_log, memories, schedules"); err != nil {
		t.Fatal(err)
	}
	statuses := make(chan string, 40)
	var requests sync.WaitGroup
	for i := range 20 {
		path := []string{"/compactions", "/api/v1/memories", "/people/staff0001?preview=yes", "/sessions/" + url.PathEscape(groupKey)}[i%4]
		requests.Go(func() {
			status, text := admin.do("GET", path, "", "Authorization", "Bearer "+viewerToken)
			if strings.HasPrefix(path, "/compactions") && !strings.Contains(text, "服务器没能及时完成") {
				text = "no reason: " + text
			}
			statuses <- fmt.Sprint(status, " ", path, " ", text)
		})
	}
	began := time.Now()
	for i := range 20 {
		m := sessions.Message{RobotCode: "robot", ConversationID: "cidGroup", ConversationType: sessions.Group, ID: sessions.MessageID(fmt.Sprint("new", i)), SenderID: "staff0001", Text: "几点开会"}
		if _, err := w.store.Inbox.Accept(t.Context(), "r1", groupKey, m); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 8*time.Second { // below the bound of a page's statement
		t.Errorf("20 messages took %v", took)
	}
	requests.Wait()
	close(statuses)
	for s := range statuses {
		if !strings.HasPrefix(s, "503 ") || strings.Contains(s, "no reason") {
			t.Errorf("a page that hangs answers %.300s", s)
		}
	}
}

// A filter is bounded before the storage sees it, on every list with one.
func TestLongFiltersAreRefused(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	for name, q := range map[string]string{
		"many words": strings.Repeat("a ", 9), "a long word": strings.Repeat("长", 301), "many values": strings.Repeat("group:a ", 9), "a word of 60 KB": strings.Repeat("x", 60_000),
	} {
		for _, path := range []string{"/sessions", "/compactions", "/memories", "/schedules", "/people", "/api/v1/sessions", "/api/v1/compactions", "/api/v1/memories", "/api/v1/schedules"} {
			if strings.HasSuffix(path, "/people") && strings.HasPrefix(name, "many") {
				continue // its text is one name
			}
			if status, text := b.do("GET", path+"?q="+url.QueryEscape(q), "", "Authorization", "Bearer "+adminToken); status != http.StatusBadRequest {
				t.Errorf("%s with %s: %d %.200s", path, name, status, text)
			}
		}
	}
	if status, _ := b.get("/sessions?q=" + url.QueryEscape(`state:busy group:支付 "a b" c d e f g`)); status != http.StatusOK {
		t.Errorf("eight words: %d", status)
	}
}

// Two exports run at once. The next one is asked to wait, and runs after one has ended.
func TestExportsAreBounded(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`INSERT INTO dingtalk_session_events (session_key, seq, role, content) SELECT '` + groupKey + `', 100 + i, 'assistant', repeat('长', 5000) FROM generate_series(1, 1200) i`)
	base := w.serve(nil)
	b := w.visit(base)
	lines := "/api/v1/sessions/" + url.PathEscape(groupKey) + "/events"
	var open []*http.Response
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+lines, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+viewerToken)
		r.Header.Set("Accept", "application/x-ndjson")
		resp, err := b.http.Do(r) // nothing reads the body: the export waits for its reader
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		open = append(open, resp)
	}
	admin := w.enter(base, adminToken)
	for _, path := range []string{lines, "/people/staff0001/export", "/usage?format=csv"} {
		if status, text := admin.do("GET", path, "", "Authorization", "Bearer "+adminToken, "Accept", "application/x-ndjson"); status != http.StatusTooManyRequests {
			t.Errorf("a third export, %s: %d %.200s", path, status, text)
		}
	}
	if status, _ := admin.get("/sessions"); status != http.StatusOK {
		t.Errorf("a page beside exports: %d", status)
	}
	_ = open[0].Body.Close()
	until := time.Now().Add(time.Minute)
	for status := 0; status != http.StatusOK; {
		if status, _ = admin.get("/usage?format=csv"); time.Now().After(until) {
			t.Fatalf("after one has ended: %d", status)
		}
	}
}

// No part of a cell is read as a formula by a spreadsheet, whatever the language's separator.
func TestCellsAreNoFormulas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"张伟": "张伟", "a-b": "a-b", "=1": "'=1", "＝1": "'＝1", " \t=1": "' \t=1", "x;=cmd()": "x;'=cmd()", "x; +1": "x;' +1", "x\n@a": "x\n'@a", "x\ty": "x\ty", "\ufeff-1": "'\ufeff-1", `"=1`: `'"=1`,
	} {
		if got := console.SpreadsheetText(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
