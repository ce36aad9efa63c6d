package console_test

import (
	"context"
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
	retention := sessions.Retention{Events: 30 * 24 * time.Hour, Pictures: 30 * 24 * time.Hour}
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
	retention = sessions.Retention{Events: 24 * time.Hour, Memories: time.Hour, CompactionLog: time.Hour, Replies: time.Hour, Pictures: time.Hour}
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
	if n, err := w.store.Retention.ExpireEvents(t.Context(), groupKey, 30*24*time.Hour); err != nil || n != 10 {
		t.Fatalf("deleted %d events (%v), want 10", n, err)
	}
	b := w.enter(w.serve(nil), adminToken)
	b.get("/?lang=en")
	status, page := b.post(w.at("/sessions/{key}/undo?id={attempt}", groupKey), nil)
	if status != http.StatusBadRequest || !strings.Contains(page, "past its retention period") {
		t.Errorf("the undo: %d %.400s", status, page)
	}
}

// A period on the page is one that the expiry of its rows keeps: no row with a period names a table whose rows stay.
func TestPrivacyPageNamesKeptPeriods(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`INSERT INTO cards (session_key, out_track_id, turn_event_id, state, rating, created_at, settled_at)
		VALUES ('` + groupKey + `', 'card', 1, 'finished', 'good', now() - interval '9 years', now() - interval '9 years')`)
	w.execute(`INSERT INTO memory_digests (session_key, day, done, updated_at) VALUES ('` + groupKey + `', '2017-01-01', true, now() - interval '9 years')`)
	old := map[string]string{"outbox": "settled_at", "memories": "last_seen_at", "compaction_log": "created_at", "memory_flushes": "created_at", "memory_digests": "updated_at", "cards": "settled_at", "audit": "at", "schedules": "settled_at"}
	w.addSchedule(groupKey, 1, "remind", "喝水")
	w.execute("UPDATE schedules SET state = 'done', settled_at = now() - interval '9 years'")
	w.execute("INSERT INTO audit (at, actor, action) VALUES (now() - interval '9 years', 'x', 'undo')")
	w.execute(`INSERT INTO outbox (session_key, body, target, state, sender, settled_at) VALUES ('` + groupKey + `', 'x', '{}', 'sent', 'r', now() - interval '9 years')`)
	w.execute("UPDATE memories SET last_seen_at = now() - interval '9 years', created_at = now() - interval '9 years'")
	w.execute("UPDATE compaction_log SET created_at = now() - interval '9 years'")
	w.execute("UPDATE memory_flushes SET created_at = now() - interval '9 years'")
	const day = 24 * time.Hour
	for _, expire := range []func(context.Context, time.Duration) (int, error){w.store.Retention.ExpireMemories, w.store.Retention.ExpireCompactions, w.store.Retention.ExpireReplies, w.store.Retention.ExpireSchedules, w.store.Retention.ExpireActions} {
		if _, err := expire(t.Context(), day); err != nil {
			t.Fatal(err)
		}
	}
	base := w.serve(func(cfg *console.Config) {
		cfg.Privacy = func() console.Privacy {
			return console.Privacy{Retention: sessions.Retention{Events: day, Memories: day, CompactionLog: day, Replies: day, Audit: day}}
		}
	})
	_, page := w.enter(base, viewerToken).get("/privacy?lang=en")
	for row := range strings.SplitSeq(page, "<tr>") {
		for table, column := range old {
			if !regexp.MustCompile(`\b`+table+`\b`).MatchString(row) || !strings.Contains(row, "1 day") {
				continue
			}
			if n := scan[int](w, "SELECT count(*) FROM "+table+" WHERE "+column+" < now() - interval '1 year'"); n > 0 {
				t.Errorf("the page has a period of a day for %s, and %d rows of 9 years stay", table, n)
			}
		}
	}
}

// tablesWithoutPeople have no data about people: counters, hashes, the state of processes, and the schema's own table.
var tablesWithoutPeople = []string{
	"api_calls", "api_days", "api_months", "deleted_messages", "embedding_cursors", "event_index", "flush_debts", "goose_db_version", "limit_keys", "person_erasures", "replicas", "restarts", "robots", "schedule_numbers", "yardstick",
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
