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

// An attempt names the person who asked for it, by the name that its group knows. A private chat's name is masked in lists. Requests
// and undos of the console keep the login's name. Memories of a group are named likewise.
func TestRequestersOfCompactions(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`UPDATE compaction_log SET requested_by = 'staff0001', trigger = 'manual'`)
	w.execute(`INSERT INTO compaction_log (session_key, trigger, policy, mode, tokens_before, tokens_after, start_seq, end_seq, outcome, requested_by)
		VALUES ('` + privateKey + `', 'manual', 'turns', 'summary_only', 300, 200, 1, 2, 'committed', 'staff0002')`)
	base := w.serve(nil)
	admin, viewer := w.enter(base, adminToken), w.enter(base, viewerToken)
	if _, page := viewer.get(w.at("/compactions/{key}/{attempt}", groupKey)); !strings.Contains(page, "<dd>张伟 <code>staff0001</code></dd>") {
		t.Errorf("the attempt's page does not name who asked: %s", around(page, "staff0001", "发起人"))
	}
	list := func(token string) string {
		_, text := admin.do("GET", "/api/v1/compactions", "", "Authorization", "Bearer "+token)
		return text
	}
	for _, token := range []string{adminToken, viewerToken} {
		text := list(token)
		if !strings.Contains(text, `"requested_by":"staff0001","requested_by_nick":"张伟"`) || !strings.Contains(text, `"requested_by":"staff0002"`) || strings.Contains(text, "secretnick") {
			t.Errorf("the list of %s is %s", token, text)
		}
	}
	private := w.at("/compactions/{key}/{attempt}", privateKey)
	if _, page := viewer.get(private); strings.Contains(page, "secretnick") {
		t.Error("a viewer sees the name of a private chat")
	}
	if _, page := admin.get(private); !strings.Contains(page, "secretnick") {
		t.Error("an administrator who opens a private chat does not see who asked")
	}
	for _, b := range []*browser{admin, viewer} {
		if _, page := b.get("/memories"); !strings.Contains(page, `<a href="/people/staff0001">张伟</a>`) || strings.Contains(page, "secretnick") {
			t.Errorf("the list of memories does not name a group's speaker, or names a private chat's: %s", around(page, "staff0001"))
		}
	}
	if status, page := admin.post(w.at("/sessions/{key}/undo?id={attempt}", groupKey), nil); status != http.StatusOK {
		t.Fatalf("undo: %d %s", status, around(page, "alert"))
	}
	if status, page := admin.post(w.at("/sessions/{key}/compact", groupKey), nil); status != http.StatusOK {
		t.Fatalf("compact: %d %s", status, around(page, "alert"))
	}
	if by := scan[string](w, "SELECT l.requested_by || ' ' || q.requested_by FROM compaction_log l, compaction_requests q WHERE l.trigger = 'undo'"); by != "admin.token admin.token" {
		t.Errorf("undo and request are by %q, want the name in the audit", by)
	}
}

// The overview counts a compaction and its undo as one compaction.
func TestUndoIsNoCompaction(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	if status, page := b.post(w.at("/sessions/{key}/undo?id={attempt}", groupKey), nil); status != http.StatusOK {
		t.Fatalf("undo: %d %s", status, around(page, "alert"))
	}
	if n := scan[int](w, "SELECT count(*) FROM compaction_log"); n != 2 {
		t.Fatalf("the log has %d rows, want the compaction and its undo", n)
	}
	if _, page := b.get("/sessions/" + url.PathEscape(groupKey)); strings.Count(page, `class="cut"`) != 1 || strings.Count(page, `<circle class="mark"`) != 2 || strings.Count(page, `<path class="undo"`) != 2 || !strings.Contains(page, "撤销, 2,500 → 4,100") {
		t.Errorf("the conversation's page has not one cut, and one mark and a legend for it and for the undo: %s", around(page, `class="undo"`))
	}
	if _, page := b.get("/?lang=en"); !strings.Contains(page, "<b>1</b><span>compaction in 24 hours</span>") {
		t.Errorf("the overview does not count one compaction: %s", around(page, "compaction in 24 hours"))
	}
}

// A summary that is written again after an erasure is no compaction: the context does not fall, and the list of attempts alone has it.
func TestRewritingIsNoCompaction(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	w.execute(`INSERT INTO compaction_log (session_key, trigger, policy, mode, tokens_before, tokens_after, start_seq, end_seq, summary_id, outcome)
		SELECT c.session_key, 'rewrite', 'balanced', 'summary_only', 2500, 2500, 1, 20, c.summary_id, 'committed' FROM compaction_log c`)
	if _, page := b.get("/?lang=en"); !strings.Contains(page, "<b>1</b><span>compaction in 24 hours</span>") {
		t.Errorf("the overview does not count one compaction: %s", around(page, "compaction in 24 hours"))
	}
	if _, page := b.get("/sessions/" + url.PathEscape(groupKey)); strings.Count(page, `class="cut"`) != 1 || strings.Count(page, `<circle class="mark"`) != 2 || !strings.Contains(page, "falls at each of 1 compaction,") {
		t.Errorf("the conversation's page has not one cut, and one mark with its legend: %s", around(page, `class="cut"`, "<desc"))
	}
	if _, page := b.get("/compactions"); !strings.Contains(page, "rewriting after an erasure") {
		t.Errorf("the list of attempts lacks the rewriting: %s", around(page, "<table"))
	}
}
