package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
)

// exportKey is the session that fillLog writes.
const exportKey sessions.Key = "robot/cidExport"

// fillLog makes a log of eight events in the database. First come four messages and the answer to the last two, which
// arrived first. Then follow the answer to the first two, a dead message and a waiting one.
func fillLog(t *testing.T, url string) *sql.Store {
	t.Helper()
	st, err := sql.Open(t.Context(), sql.Options{URL: url, MaxConns: 2, LeaseTTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	if _, err := st.Leases.Beat(t.Context(), "me"); err != nil {
		t.Fatal(err)
	}
	var lease sessions.Lease
	accept := func(id string) int64 {
		t.Helper()
		a, err := st.Inbox.Accept(t.Context(), "me", exportKey, sessions.Message{
			RobotCode: "robot", ConversationID: "cidExport", ConversationType: sessions.Group, ID: sessions.MessageID(id),
			SenderID: "u1", SenderNick: "张伟", Kind: "text", Text: "text of " + id, SentAt: time.Now(),
		})
		if err != nil {
			t.Fatal(err)
		}
		lease = a.Lease
		return a.EventID
	}
	commit := func(turn sessions.TurnResult) {
		t.Helper()
		if _, err := st.Turns.Commit(t.Context(), lease, turn); err != nil {
			t.Fatal(err)
		}
	}
	first, second, third, fourth := accept("m1"), accept("m2"), accept("m3"), accept("m4")
	answer := func(text string) []sessions.Event {
		return []sessions.Event{{Role: sessions.RoleAssistant, Content: text, Tokens: 1, State: sessions.Done}}
	}
	commit(sessions.TurnResult{Taken: []int64{third, fourth}, TakenTokens: []int{1, 1}, Events: answer("one")})
	commit(sessions.TurnResult{Taken: []int64{first, second}, TakenTokens: []int{1, 1}, Events: answer("two")})
	commit(sessions.TurnResult{Dead: []int64{accept("m5")}})
	accept("m6")
	return st
}

func TestEventsComePageByPage(t *testing.T) {
	t.Parallel()
	st := fillLog(t, sqltest.URL(t))
	for page := 1; page <= 10; page++ {
		var ids []int64
		for after := int64(0); ; after = ids[len(ids)-1] {
			events, err := st.Lists.Events(t.Context(), exportKey, after, page)
			if err != nil {
				t.Fatal(err)
			}
			if len(events) == 0 {
				break
			}
			for _, e := range events {
				ids = append(ids, e.ID)
			}
		}
		if len(ids) != 8 || !slices.IsSorted(ids) || len(slices.Compact(ids)) != 8 {
			t.Errorf("pages of %d: events %v, want each of eight once, in order", page, ids)
		}
	}
}

func TestExportAndShow(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	st := fillLog(t, url)
	getenv := env("DATABASE_URL", url)
	code, stdout, stderr := runBot(t, getenv, "sessions", "export", string(exportKey), "--json", "-c", referencePath)
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d, %q", code, stderr)
	}
	var texts []string
	for line := range strings.Lines(stdout) {
		var e sessions.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		texts = append(texts, e.Content)
	}
	if len(texts) != 8 || !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, "text of m6") }) {
		t.Errorf("exported %q", texts)
	}
	for _, tt := range []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{[]string{"sessions", "export", string(exportKey)}, 0, "text of m1", ""},
		{[]string{"sessions", "export", "nobody"}, 2, "", `there is no session "nobody"`},
		{[]string{"sessions", "list"}, 0, string(exportKey), ""},
		{[]string{"sessions", "show", string(exportKey)}, 0, "conversation", ""},
		{[]string{"sessions", "list"}, 0, "LAST ACTIVE (Asia/Shanghai)", ""},
		{[]string{"compactions", "list"}, 0, "TRIGGER", ""},
		{[]string{"compactions", "list"}, 0, "TIME (Asia/Shanghai)", ""},
		{[]string{"compactions", "list", "--session", string(exportKey)}, 0, "TRIGGER", ""},
		{[]string{"compactions", "list", "--session", "typo"}, 2, "", `there is no session "typo"`},
		{[]string{"compactions", "show", "7"}, 2, "", "there is no compaction 7; bot compactions list"},
	} {
		code, stdout, stderr := runBot(t, getenv, append(tt.args, "-c", referencePath)...)
		if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%v: exit %d\n%s%s\nwant exit %d, %q, %q", tt.args, code, stdout, stderr, tt.code, tt.stdout, tt.stderr)
		}
	}
	if _, err := st.Inbox.Accept(t.Context(), "me", exportKey, sessions.Message{
		RobotCode: "robot", ConversationID: "cidExport", ConversationType: sessions.Group, ID: "m7", SenderID: "u1",
		SenderNick: "\x1b[8m张伟", Kind: "text", Text: "look \x1b]0;evil\x07 here", SentAt: time.Now(),
	}); err != nil {
		t.Fatal(err)
	}
	if _, stdout, _ := runBot(t, getenv, "sessions", "export", string(exportKey), "-c", referencePath); strings.ContainsAny(stdout, "\x1b\x07") || !strings.Contains(stdout, "evil") {
		t.Errorf("a message's control characters reach the terminal: %q", stdout)
	}
	if code, _, stderr := runBot(t, env("DATABASE_URL", sqltest.Empty(t)), "sessions", "list", "-c", referencePath); code != 1 || !strings.Contains(stderr, "run bot migrate") {
		t.Errorf("without a schema: exit %d, %q; want exit 1 and what to do", code, stderr)
	}
}
