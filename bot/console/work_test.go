package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// The running work of a session stands on its page with its start, its replica and its latest end. The part that refreshes
// itself is sent again only when it changed, and reports changes of the conversation.
func TestRunningWork(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	b.get("/?lang=en")
	page := "/sessions/" + url.PathEscape(groupKey)
	work := func() (path, text string) {
		t.Helper()
		_, text = b.get(page)
		_, text, _ = strings.Cut(text, `<section id="work"`)
		text, _, _ = strings.Cut(text, "</section>")
		return strings.ReplaceAll(link(t, text, `hx-get="([^"]+)"`), "&amp;", "&"), text
	}
	poll, idle := work()
	if !strings.Contains(idle, "idle") || !strings.Contains(idle, "No replica") {
		t.Errorf("an idle session shows %s", idle)
	}
	if status, text := b.get(poll); status != http.StatusNoContent || text != "" {
		t.Errorf("without a change the part is sent again: %d %s", status, text)
	}
	w.execute(`INSERT INTO replicas (id, heartbeat_at) VALUES ('replica-7', now() - interval '40 seconds')`)
	w.execute(`INSERT INTO compaction_jobs (session_key, gen, from_seq, through_seq, source_hash, attempts, created_at)
		VALUES ('` + groupKey + `', 0, 20, 30, 'x', 2, '2026-01-31 10:11:12Z')`)
	if status, text := b.get(poll); status != http.StatusOK || !strings.Contains(text, "is repeated") {
		t.Errorf("a failed compaction shows %d %s", status, around(text, "work"))
	}
	w.execute(`UPDATE dingtalk_sessions SET lease_owner = 'replica-7', lease_term = 3, upkeep_term = 3, upkeep_until = now() + interval '1 minute'
		WHERE session_key = '` + groupKey + `'`)
	w.execute(`INSERT INTO dingtalk_session_events (session_key, role, content, sender_id, msg_id, state, attempt_term)
		VALUES ('` + groupKey + `', 'user', 'a', 'staff0001', 'w1', 'pending', 3), ('` + groupKey + `', 'user', 'b', 'staff0001', 'w2', 'pending', NULL)`)
	poll, busy := work()
	for _, want := range []string{"compacting", "events 21–30", "since 2026-01-31 10:11:12", "attempt 2", "ends by", "replica-7", "no heartbeat", "answering", "waiting"} {
		if !strings.Contains(busy, want) {
			t.Errorf("the part lacks %q: %s", want, busy)
		}
	}
	w.execute(`UPDATE dingtalk_sessions SET lease_term = 4, last_seq = 41 WHERE session_key = '` + groupKey + `'`)
	status, after := b.get(poll)
	if status != http.StatusOK || strings.Contains(after, "compacting") || strings.Contains(after, "answering") || !strings.Contains(after, "has changed") {
		t.Errorf("marks of an earlier lease, and a changed conversation: %d %s", status, after)
	}
}
