package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// An administrator reads a dead letter of a private chat on the page of the chat, which is in the audit, and not in the list of all.
func TestPrivateDeadLetter(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`INSERT INTO dingtalk_session_events (session_key, role, content, sender_id, sender_nick, msg_id, tokens, state, message)
		VALUES ('` + privateKey + `', 'user', 'secretletter', 'staff0002', 'secretnick', 'pdead', 20, 'dead', '{"conversation_type": "1"}'),
			('` + groupKey + `', 'user', 'PO-dead', 'staff0001', '张伟', 'gdead', 20, 'dead', '{"conversation_type": "2"}')`)
	b := w.enter(w.serve(nil), adminToken)
	_, page := b.get("/attention")
	if strings.Contains(page, "secret") || !strings.Contains(page, "••• (12)") || !strings.Contains(page, "PO-dead") {
		t.Errorf("the list shows a private dead letter, or hides one of a group: %s", around(page, "secret", "PO-dead"))
	}
	if n := scan[int](w, "SELECT count(*) FROM audit"); n != 0 {
		t.Errorf("the list left %d rows in the audit, want 0", n)
	}
	if _, page := b.get("/sessions/" + url.PathEscape(privateKey)); !strings.Contains(page, "secretletter") {
		t.Error("the page of the private chat lacks its dead letter")
	}
	if status, _ := b.post("/messages/"+number(scan[int64](w, "SELECT id FROM dingtalk_session_events WHERE msg_id = 'pdead'"))+"/retry", nil); status != http.StatusOK {
		t.Errorf("the retry of a masked dead letter: %d", status)
	}
}

// The page of a fact from a private chat is in the audit once for each view; that of a group's fact is not.
func TestPrivateFactIsInTheAudit(t *testing.T) {
	t.Parallel()
	w := open(t)
	base := w.serve(nil)
	b, viewer := w.enter(base, adminToken), w.enter(base, viewerToken)
	id := func(scope string) string {
		return number(scan[int64](w, "SELECT id FROM memories WHERE scope = '"+scope+"'"))
	}
	b.get("/memories/" + id("group"))
	viewer.get("/memories/" + id("user"))
	if n := scan[int](w, "SELECT count(*) FROM audit"); n != 0 {
		t.Errorf("a fact of a group, and a masked one, left %d rows in the audit, want 0", n)
	}
	if _, page := b.get("/memories/" + id("user")); !strings.Contains(page, "secretword") {
		t.Error("the administrator does not see the fact")
	}
	want := "view_private " + privateKey + " memory " + id("user") + " done"
	if got := scan[string](w, "SELECT coalesce(string_agg(action || ' ' || session_key || ' ' || detail || ' ' || outcome, ', '), '') FROM audit"); got != want {
		t.Errorf("audit: %s, want %s", got, want)
	}
}

// A fact that was said in a private chat first, and in a group later, is in the audit under the private chat.
func TestEarlierPrivateValueIsInTheAuditOfItsChat(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, start_seq, end_seq, said_by, source_group, superseded_by)
		SELECT 'group', 'robot/cidGroup', 'decision', 'secretword 5 月 18 日', '\x03', '` + privateKey + `', 1, 2, 'staff0002', '', m.id FROM memories m WHERE m.scope = 'group'`)
	now := number(scan[int64](w, "SELECT id FROM memories WHERE scope = 'group' AND superseded_by IS NULL"))
	b := w.enter(w.serve(nil), adminToken)
	if _, page := b.get("/memories/" + now); !strings.Contains(page, "secretword") || !strings.Contains(page, "5 月 20 日") {
		t.Errorf("the page lacks a value of the fact: %s", around(page, "5 月"))
	}
	want := "view_private " + privateKey + " memory " + now
	if got := scan[string](w, "SELECT coalesce(string_agg(action || ' ' || session_key || ' ' || detail, ', '), '') FROM audit"); got != want {
		t.Errorf("audit: %s, want %s", got, want)
	}
}

// plantSecret puts a word into each text of a private chat and of a fact from it, also into those that groups refer to.
func (w *world) plantSecret(word string) {
	w.t.Helper()
	w.execute(`UPDATE dingtalk_sessions SET title = '` + word + `', pinned = '` + word + `', compact_error = '` + word + `', compact_failures = 1 WHERE session_key = '` + privateKey + `'`)
	w.execute(`UPDATE dingtalk_session_events SET content = '` + word + ` 年假 ' || seq WHERE session_key = '` + privateKey + `'`)
	w.execute(`UPDATE memories SET content = '` + word + `', fact_key = '` + word + `' WHERE source_session = '` + privateKey + `'`)
	w.execute(`INSERT INTO dingtalk_session_events (session_key, role, content, sender_id, sender_nick, msg_id, tokens, state, message)
		VALUES ('` + privateKey + `', 'user', '` + word + ` dead', 'staff0002', 'secretnick', 'pdead', 20, 'dead', '{"conversation_type": "1"}'),
			('` + privateKey + `', 'user', '` + word + ` waits', 'staff0002', 'secretnick', 'pwaits', 20, 'pending', '{"conversation_type": "1"}')`)
	w.execute(`WITH s AS (INSERT INTO session_summaries (session_key, gen, start_seq, end_seq, start_msg_id, end_msg_id, msg_count, summary, tokens, model)
			VALUES ('` + privateKey + `', 0, 1, 2, 1, 2, 2, '` + word + `', 80, 'main') RETURNING id),
		f AS (INSERT INTO memory_flushes (session_key, trigger, from_seq, through_seq, saved)
			SELECT '` + privateKey + `', 'threshold', 0, 2, array_agg(m.id) FROM memories m WHERE m.scope = 'user' RETURNING id)
		INSERT INTO compaction_log (session_key, trigger, policy, mode, focus, error, tokens_before, tokens_after, start_seq, end_seq, summary_id, flush_id, audit, outcome, view_before)
		SELECT '` + privateKey + `', 'manual', 'balanced', 'summary_only', '` + word + `', '` + word + `', 400, 250, 1, 2, s.id, f.id, '{"missing": ["` + word + `"]}', 'committed',
			'{"compacted_seq": 0, "summaries": [], "pinned": ""}' FROM s, f`)
	w.execute(`UPDATE memory_flushes SET duplicate = (SELECT array_agg(id) FROM memories WHERE scope = 'user') WHERE session_key = '` + groupKey + `'`)
	w.execute(`INSERT INTO flush_debts (session_key, from_seq, through_seq, failures, reason) VALUES ('` + privateKey + `', 2, 4, 1, 'storage')`)
	w.execute(`INSERT INTO model_usage (session_key, day, kind, model, person, prompt_tokens, cost) VALUES ('` + privateKey + `', (now() AT TIME ZONE 'UTC')::date, 'turn', 'main', 'staff0002', 100, 1)`)
}

// No list shows a text of a private chat to any role, and each page that shows one has left its row in the audit. The test opens
// the pages of all routes, in a private chat and in a group that refers to a fact from one. The lists of the API are among them.
func TestPrivateTextsAreInTheAudit(t *testing.T) {
	t.Parallel()
	const word = "plantedword"
	w := open(t)
	w.plantSecret(word)
	base := w.serve(nil)
	visit := func(token, path string, header ...string) (shows bool, rows int) {
		t.Helper()
		w.execute("DELETE FROM audit")
		b := w.enter(base, token)
		status, page := b.do("GET", path, "", header...)
		if status != http.StatusOK && !(token == viewerToken && status == http.StatusForbidden) {
			t.Errorf("%s: %d", path, status)
		}
		return strings.Contains(page, word), scan[int](w, "SELECT count(*) FROM audit WHERE action = 'view_private' AND outcome = 'done' AND session_key = '"+privateKey+"'")
	}
	shown := 0
	for _, a := range routes {
		if path, ok := strings.CutPrefix(a.route, "GET "); !ok || path == "/people/{id}/export" { // an action of its own in the audit
			continue
		}
		targets := []string{groupKey, privateKey}
		if !strings.Contains(a.path, "{") {
			targets = targets[:1]
		}
		for _, key := range targets {
			path := strings.NewReplacer("staff0001", "staff0002", "q=PO-1", "q="+url.QueryEscape("年假")).Replace(w.at(a.path, key))
			isPage := key == privateKey
			shows, rows := visit(adminToken, path)
			if shows && !(isPage && rows == 1) || rows > 0 && !isPage {
				t.Errorf("%s shows an administrator the text: %v, with %d rows in the audit", path, shows, rows)
			}
			if shows {
				shown++
			}
			if shows, rows := visit(viewerToken, path); rows > 0 || shows {
				t.Errorf("%s shows a viewer the text: %v, with %d rows in the audit", path, shows, rows)
			}
		}
	}
	if shown < 4 {
		t.Errorf("%d pages show the text, want those of the chat, its compaction, its fact and its search", shown)
	}
	for _, token := range []string{adminToken, viewerToken} {
		for _, list := range []string{"sessions", "compactions", "memories", "restarts", "usage", "usage?by=session"} {
			if shows, rows := visit(token, "/api/v1/"+list, "Authorization", "Bearer "+token); shows || rows > 0 {
				t.Errorf("the list %s of the API shows the text: %v, with %d rows in the audit", list, shows, rows)
			}
		}
	}
	if shows, rows := visit(adminToken, "/api/v1/sessions/"+url.PathEscape(privateKey)+"/events", "Authorization", "Bearer "+adminToken); !shows || rows != 1 {
		t.Errorf("the events of the private chat show the text: %v, with %d rows in the audit", shows, rows)
	}
}
