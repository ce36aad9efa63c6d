package console_test

import (
	"strings"
	"testing"
)

// Words next to figures have their number, and times the words of the language. A range begins with its first event. A digest in a list has no
// marks of Markdown.
func TestFiguresReadWell(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`INSERT INTO dingtalk_session_events (session_key, role, content, sender_id, sender_nick, msg_id, tokens, state, message)
		VALUES ('` + groupKey + `', 'user', 'PO-dead', 'staff0001', '张伟', 'gdead', 20, 'dead', '{"conversation_type": "2"}')`)
	w.execute(`INSERT INTO flush_debts (session_key, from_seq, through_seq, failures) VALUES ('` + groupKey + `', 0, 8, 1)`)
	w.execute(`INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, start_seq, end_seq, said_by, source_group)
		VALUES ('group', '` + groupKey + `', 'digest', E'# Digest of a day\n\n## What happened\n- first thing\n- second * thing\n', '\x05', '` + groupKey + `', 7, 7, 'staff0001', '` + groupKey + `')`)
	w.execute(`INSERT INTO replicas (id, heartbeat_at) VALUES ('one', now() - interval '90 seconds')`)
	b := w.enter(w.serve(nil), adminToken)
	digest := number(scan[int64](w, "SELECT id FROM memories WHERE kind = 'digest'"))
	for _, c := range []struct{ path, has, lacks string }{
		{"/?lang=en", "<b>1</b><span>dead letter</span>", "letters"},
		{"/?lang=en", "<b>1</b><span>flush owed</span>", "flushes owed"},
		{"/?lang=en", "<b>0</b><span>messages waiting</span>", "{"},
		{"/?lang=en", "1 minute ago", "1m30s"},
		{"/?lang=zh", "1 分钟前", "1m30s"},
		{"/attention?lang=zh", ">1–8<", ">0–8<"},
		{"/memories?lang=zh", "Digest of a day · What happened · first thing · second * thing", "##"},
		{"/memories/" + digest + "?lang=zh", ">7</a>", "7–7"},
		{"/privacy?lang=zh", "好评和差评", "👍"},
	} {
		if status, page := b.get(c.path); status != 200 || !strings.Contains(page, c.has) || strings.Contains(mainOf(page), c.lacks) {
			t.Errorf("%s: %d, want %q and not %q in\n%s", c.path, status, c.has, c.lacks, mainOf(page))
		}
	}
}

// mainOf is the part of a page below its navigation.
func mainOf(page string) string {
	_, main, _ := strings.Cut(page, "<main")
	return main
}
