package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A conversation with more compactions than a page reads shows the newest ones and those of its old events. It offers the undo of the
// newest one alone.
func TestManyCompactions(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`INSERT INTO dingtalk_session_events (session_key, seq, role, content, sender_id, msg_id, tokens)
		SELECT '` + groupKey + `', i, 'user', 'x', 'staff0001', 'g' || i, 20 FROM generate_series(41, 600) i`)
	w.execute(`INSERT INTO compaction_log (session_key, trigger, policy, mode, tokens_before, tokens_after, start_seq, end_seq, outcome, view_before)
		SELECT '` + groupKey + `', 'threshold', 'turns', 'summary_only', 100000 + i, 2500, 1, 20 + 2 * i, 'committed', '{"compacted_seq": 20, "summaries": [], "pinned": ""}'
		FROM generate_series(1, 280) i`)
	w.execute(`UPDATE dingtalk_sessions SET last_seq = 600, compacted_seq = 580, flushed_seq = 580, compaction_count = 281 WHERE session_key = '` + groupKey + `'`)
	first, last := scan[int64](w, "SELECT min(id) FROM compaction_log"), scan[int64](w, "SELECT max(id) FROM compaction_log")
	b := w.enter(w.serve(nil), adminToken)
	_, page := b.get("/sessions/" + url.PathEscape(groupKey))
	if field := `name="id" value="` + number(last) + `"`; !strings.Contains(page, `id="c`+number(last)+`"`) || !strings.Contains(page, field) {
		t.Errorf("the page lacks the newest compaction #%d or its undo: %s", last, around(page, "/undo"))
	}
	if !strings.Contains(page, "100,280") {
		t.Errorf("the chart ends before the newest compaction: %s", around(page, "<svg"))
	}
	if _, page := b.get("/sessions/" + url.PathEscape(groupKey) + "?at=20"); !strings.Contains(page, `id="c`+number(first)+`"`) {
		t.Error("the page of the oldest events lacks their compaction")
	}
	attempt := func(id int64) string {
		_, page := b.get("/compactions/" + url.PathEscape(groupKey) + "/" + number(id))
		return page
	}
	if !strings.Contains(attempt(last), "/undo") {
		t.Error("the page of the newest compaction offers no undo")
	}
	if strings.Contains(attempt(last-81), "/undo") || strings.Contains(attempt(first), "/undo") {
		t.Error("the page of an older compaction offers an undo")
	}
}

// An undo is of the compaction that the page showed: after a newer one it is refused, and nothing changes.
func TestUndoOfAnOlderCompaction(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	shown := w.at("/sessions/{key}/undo?id={attempt}", groupKey)
	w.execute(`INSERT INTO compaction_log (session_key, trigger, policy, mode, tokens_before, tokens_after, start_seq, end_seq, outcome, view_before)
		VALUES ('` + groupKey + `', 'threshold', 'turns', 'summary_only', 4000, 2500, 21, 30, 'committed', '{"compacted_seq": 20, "summaries": [], "pinned": ""}')`)
	w.execute(`UPDATE dingtalk_sessions SET compacted_seq = 30 WHERE session_key = '` + groupKey + `'`)
	for lang, want := range map[string]string{"zh": "会话在此期间有变化", "en": "changed meanwhile"} {
		b.get("/?lang=" + lang)
		for _, path := range []string{shown, "/sessions/" + url.PathEscape(groupKey) + "/undo"} {
			if status, page := b.post(path, nil); status != http.StatusBadRequest || !strings.Contains(page, want) {
				t.Errorf("%s: %d %s", path, status, around(page, "alert"))
			}
		}
	}
	if n := scan[int](w, "SELECT count(*) FROM compaction_log WHERE undone_at IS NOT NULL OR trigger = 'undo'"); n != 0 {
		t.Errorf("%d rows of an undo, want 0", n)
	}
	if seq := scan[int64](w, "SELECT compacted_seq FROM dingtalk_sessions WHERE session_key = '"+groupKey+"'"); seq != 30 {
		t.Errorf("compacted through %d, want 30", seq)
	}
}
