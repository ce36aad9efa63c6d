package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/bot/console"
	"ebb/sessions"
)

// The privacy page has the periods, providers and gaps of the configuration in force, in both languages.
func TestPrivacyPage(t *testing.T) {
	t.Parallel()
	w := open(t)
	retention := sessions.Retention{Events: 30 * 24 * time.Hour}
	b := w.enter(w.serve(func(cfg *console.Config) {
		cfg.Privacy = func() console.Privacy {
			return console.Privacy{Retention: retention, TaskTTL: time.Hour, Providers: []string{"models.example"}}
		}
	}), viewerToken)
	for lang, want := range map[string][]string{
		"en": {"30 days", "models.example", "Article 19", "No period is set for:</strong> Memories, Log of compactions, Copies of replies", "No digests are written."},
		"zh": {"30 天", "models.example", "第十九条", "还没有设定期限：</strong> 记忆, 压缩记录, 回复副本", "不写日报"},
	} {
		_, page := b.get("/privacy?lang=" + lang)
		for _, text := range want {
			if !strings.Contains(page, text) {
				t.Errorf("the page in %s has no %q", lang, text)
			}
		}
	}
	retention = sessions.Retention{Events: 24 * time.Hour, Memories: time.Hour, CompactionLog: time.Hour, Replies: time.Hour}
	if _, page := b.get("/privacy?lang=en"); !strings.Contains(page, "1 day") || strings.Contains(page, "No period is set") {
		t.Error("the page has not the periods that are in force now")
	}
}

// columnNames are in each cell of a table, for phones.
var columnNames = regexp.MustCompile(` data-label="[^"]*"`)

// The retention page counts the messages that go, by conversation, before they go, also for a period that is not configured. It
// names no private chat by its title.
func TestRetentionPage(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`UPDATE dingtalk_session_events SET created_at = now() - interval '25 days' WHERE session_key = '` + groupKey + `' AND seq <= 10`)
	w.execute(`UPDATE dingtalk_session_events SET created_at = now() - interval '40 days' WHERE session_key = '` + privateKey + `'`)
	b := w.enter(w.serve(nil), viewerToken)
	row := func(path, name string) string {
		t.Helper()
		status, page := b.get(path)
		if status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
		for line := range strings.Lines(page) {
			if strings.Contains(line, url.PathEscape(name)) {
				return columnNames.ReplaceAllString(line, "")
			}
		}
		return ""
	}
	if line := row("/retention?lang=en", groupKey); !strings.Contains(line, `<td class="n">0</td><td class="n">10</td><td class="n">0</td>`) {
		t.Errorf("the row of the group is %q, want 10 messages due in 7 days", line)
	}
	if line := row("/retention", privateKey); !strings.Contains(line, `<td class="n">0</td><td class="n">0</td><td class="n">4</td>`) || strings.Contains(line, "悄悄话") {
		t.Errorf("the row of the private chat is %q, want 4 messages that are kept, without its title", line)
	}
	if line := row("/retention?days=20", groupKey); !strings.Contains(line, `<td class="n">10</td><td class="n">0</td><td class="n">0</td>`) {
		t.Errorf("for 20 days the row of the group is %q, want 10 due messages", line)
	}
	for _, days := range []string{"0", "-1", "x", "99999999999999999999"} {
		if status, _ := b.get("/retention?days=" + days); status != http.StatusBadRequest {
			t.Errorf("days=%s: %d", days, status)
		}
	}
	if status, _ := b.get("/retention?cursor=x"); status != http.StatusBadRequest {
		t.Errorf("a broken cursor: %d", status)
	}
}

// An undo of a compaction whose events are deleted says why it is refused.
func TestUndoAfterRetention(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`UPDATE dingtalk_session_events SET created_at = now() - interval '40 days' WHERE session_key = '` + groupKey + `' AND seq <= 10`)
	if n, err := w.store.ExpireEvents(t.Context(), groupKey, 30*24*time.Hour); err != nil || n != 10 {
		t.Fatalf("deleted %d events (%v), want 10", n, err)
	}
	b := w.enter(w.serve(nil), adminToken)
	b.get("/?lang=en")
	status, page := b.post(w.at("/sessions/{key}/undo?id={attempt}", groupKey), nil)
	if status != http.StatusBadRequest || !strings.Contains(page, "past its retention period") {
		t.Errorf("the undo: %d %.400s", status, page)
	}
}

// tablesWithoutPeople have no data about people: counters, hashes, the state of processes, and the schema's own table.
var tablesWithoutPeople = []string{
	"api_calls", "api_days", "api_months", "deleted_messages", "embedding_cursors", "event_index", "flush_debts", "goose_db_version", "limit_keys", "person_erasures", "replicas", "restarts", "schedule_numbers", "yardstick",
}

// Each table of the database is on the privacy page, or has no data about people.
func TestPrivacyPageHasAllTables(t *testing.T) {
	t.Parallel()
	w := open(t)
	_, page := w.enter(w.serve(nil), viewerToken).get("/privacy")
	for table := range strings.FieldsSeq(scan[string](w, "SELECT string_agg(table_name, ' ') FROM information_schema.tables WHERE table_schema = 'public'")) {
		if !slices.Contains(tablesWithoutPeople, table) && !strings.Contains(page, table) {
			t.Errorf("the page has no table %s", table)
		}
	}
}
