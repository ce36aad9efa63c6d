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
